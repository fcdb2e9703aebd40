"""What all tests share: one thread a process, and whole programs under `leakcheck run`.

The programs are forks of one process that has imported torch already: to import it, and what an
optimizer's first step imports, is 3.4 of the 7 s that a program takes.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# tests run beside each other, and their programs are tiny
os.environ.setdefault("OMP_NUM_THREADS", "1")

SERVER = """
import json, os, signal, sys
import torch, torch._dynamo
from leakcheck.cli import leakcheck

for line in sys.stdin:
    args, folder = json.loads(line)
    if (child := os.fork()) == 0:
        signal.alarm(300)  # ends a program that hangs
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, name in ((1, "stdout.txt"), (2, "stderr.txt")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.exit(leakcheck(args, prog_name="leakcheck"))
    status = os.waitpid(child, 0)[1]
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


def pytest_collection_finish() -> None:
    """Take what pytest has collected off the heap: 500,000 objects that each look would pass."""
    gc.collect()
    gc.freeze()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(scope="session")
def leakcheck_run() -> Iterator[Callable[..., Ended]]:
    """Run `leakcheck run` with some arguments, in a folder."""
    command = [sys.executable, "-c", SERVER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as server:

        def run(*args: str, folder: Path) -> Ended:
            orders, answers = server.stdin, server.stdout
            assert orders is not None
            assert answers is not None
            orders.write(json.dumps([["run", *args], str(folder)]) + "\n")
            orders.flush()
            status = int(answers.readline())
            texts = [(folder / f"{name}.txt").read_text() for name in ("stdout", "stderr")]
            return Ended(status, *texts)

        yield run
        server.communicate()


@pytest.fixture
def watched(
    leakcheck_run: Callable[..., Ended], tmp_path: Path
) -> Callable[[Path], dict[str, Any]]:
    """Run a program under the sentinel and return its report as JSON says it."""

    def watched(program: Path) -> dict[str, Any]:
        target = tmp_path / "report.json"
        target.unlink(missing_ok=True)
        done = leakcheck_run("--json", str(target), str(program), folder=tmp_path)
        assert target.is_file(), done.stdout + done.stderr
        report: dict[str, Any] = json.loads(target.read_text())
        return report | {"exit_status": done.returncode, "stderr": done.stderr}

    return watched
