"""What all tests share: one thread a process, whole programs under `leakcheck run`, known skips.

The programs are forks of one process that has imported torch already, and leakcheck: to import
torch, and what an optimizer's first step imports, is 3.4 of the 7 s that a program takes. What was
imported is taken off the heap: 330,000 objects that each look would pass, at 0.1 s a look.
"""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest

hypothesis.settings.register_profile("suite", deadline=None)  # no test fails on time
hypothesis.settings.load_profile("suite")

# tests run beside each other, and their programs are tiny
os.environ.setdefault("OMP_NUM_THREADS", "1")

SERVER = """
import gc, importlib, json, os, signal, sys
import torch, torch._dynamo
from leakcheck.cli import leakcheck

for name in ("cli.run", "report.terminal", "runtime.live", "static.check"):
    importlib.import_module("leakcheck." + name)
gc.collect()
gc.freeze()
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

# why a test may be skipped where all that can be installed is: the machine's nature, or a rule's
EXPECTED_SKIPS = (
    "no CUDA device",
    "one device only",
    "nothing was captured on a device",
    "the device exists",
    "only root may give files away",
    "root may write to everything",
    "CPython 3.10 knows no columns",
    "they are in a dictionary",  # instance attributes, up to Python 3.10
    "the file system takes only names in UTF-8",
    "this torch does not shard on the CPU",
    "this torch has no fully_shard there",
    "no edge cases",
    "the rule offers no edits",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("skips")
    group.addoption(
        "--strict-skips",
        action="store_true",
        help="fail the run when a test is skipped for a reason not listed in tests/conftest.py",
    )
    group.addoption(
        "--may-lack",
        action="append",
        default=[],
        metavar="NAME",
        help="with --strict-skips: let tests be skipped because NAME is not installed",
    )


def pytest_configure(config: pytest.Config) -> None:
    # with xdist the workers' reports come to the process that distributes
    if config.getoption("--strict-skips") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(StrictSkips(config.getoption("--may-lack")))


class StrictSkips:
    """Fails a run that left out more than it may."""

    def __init__(self, lacking: list[str]) -> None:
        missing = (rf"{re.escape(name)}\b.* not installed" for name in lacking)
        self.expected = re.compile("|".join((*map(re.escape, EXPECTED_SKIPS), *missing)))
        self.unexpected: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._count(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._count(report)  # of a module that is skipped as a whole

    def _count(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):  # else it is an xfail
            reason = report.longrepr[2].removeprefix("Skipped: ")
            if not self.expected.fullmatch(reason):
                self.unexpected[reason] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.unexpected and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.line(f"unexpected skips: {self.unexpected.total()}")
        for reason, count in self.unexpected.items():
            terminalreporter.line(f"  {count} x {reason}")


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
