"""What all tests share: one thread a process, whole programs under `leakcheck run`, known skips."""

from __future__ import annotations

import gc
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import hypothesis
import pytest

from tests.forks import Ended, Forks, forks

hypothesis.settings.register_profile("suite", deadline=None)  # no test fails on time
hypothesis.settings.load_profile("suite")

# tests run beside each other, and their programs are tiny
os.environ.setdefault("OMP_NUM_THREADS", "1")
# else each of a hundred interpreters compiles the package anew, 0.4 s
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# why a test may be skipped where all that can be installed is: the machine's nature
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
    "this processor has no LSTM in bfloat16",
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
    _freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Take what a file's tests have imported off the heap: 400,000 objects of Ray's alone."""
    yield
    if nextitem is not None and nextitem.path != item.path:
        _freeze()


def _freeze() -> None:
    gc.collect()  # first: garbage that is frozen stays for ever
    gc.freeze()


@pytest.fixture
def thawed() -> Iterator[None]:
    """The heap with what was there before the first test."""
    gc.unfreeze()
    yield
    _freeze()


@pytest.fixture(scope="session")
def forked() -> Iterator[Forks]:
    """Processes that need not import torch, pytest or leakcheck: see `tests.forks`."""
    with forks() as started:
        yield started


@pytest.fixture
def forked_python(forked: Forks, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let what runs Python in this test, and what that runs in turn, be forks."""
    monkeypatch.setattr(sys, "executable", forked.python)
    return forked.python


@pytest.fixture(scope="session")
def leakcheck_run(forked: Forks) -> Callable[..., Ended]:
    """Run `leakcheck run` with some arguments, in a folder."""
    return partial(forked.run, "leakcheck", "run")


@pytest.fixture
def runpytest(forked: Forks, pytester: pytest.Pytester) -> Callable[..., pytest.RunResult]:
    """Run pytest in a fork, as `pytester.runpytest_subprocess` does in a new process."""

    def run(*args: str) -> pytest.RunResult:
        begun_s = perf_counter()
        folder = pytester.path.parent / "output"
        folder.mkdir(exist_ok=True)
        asked = (f"--basetemp={pytester.path / 'basetemp'}", *args)
        done = forked.run("pytest", *asked, folder=pytester.path, output=folder)
        print(done.stdout, done.stderr, sep="\n")  # for a test that fails
        lines = (text.splitlines() for text in (done.stdout, done.stderr))
        return pytest.RunResult(done.returncode, *lines, perf_counter() - begun_s)

    return run


@pytest.fixture
def watched(leakcheck_run: Callable[..., Ended], tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Run a program under the sentinel and return its report as JSON says it."""

    def watched(program: Path, *, whole_heap: bool = False) -> dict[str, Any]:
        target = tmp_path / "report.json"
        target.unlink(missing_ok=True)
        args = ("--json", str(target), str(program))
        done = leakcheck_run(*args, folder=tmp_path, whole_heap=whole_heap)
        assert target.is_file(), done.stdout + done.stderr
        report: dict[str, Any] = json.loads(target.read_text())
        return report | {"exit_status": done.returncode, "stderr": done.stderr}

    return watched
