"""Whole programs under `leakcheck run`, in forks of one process that has imported torch already.

To import it, and what an optimizer's first step imports, is 3.4 of the 7 s that a program takes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

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


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(scope="session")
def leakcheck_run() -> Iterator[Callable[..., Ended]]:
    """Run `leakcheck run` with some arguments, in a folder."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:

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
