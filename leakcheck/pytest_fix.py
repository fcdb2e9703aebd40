"""`pytest --leakcheck-fix`: which edit ends the leak of a test, from `leakcheck fix` on that test.

Each run of it is a pytest of its own, in which nothing is watched but by the run, and whose
standard output is that of the test alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pytest

Item = TypeVar("Item")
TRIES = 4
# edited files are loaded by Python's own import, which is what can load a text in their place
_PLAIN = ("-s", "--assert=plain", "-p", "no:cacheprovider", "--leakcheck-trial")


def proved_edit(item: pytest.Item, steps: int) -> str:
    """Run `leakcheck fix` on a test; the proved diff with its proof, or why there is none."""
    options = ["--tries", str(TRIES), "--steps", str(max(30, steps)), "--name", item.nodeid]
    command = [sys.executable, "-m", "leakcheck", "fix", *options, "-m", "pytest"]
    done = subprocess.run(
        [*command, *_arguments(item)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    told = done.stdout.strip() or done.stderr.strip()
    return told if done.returncode == 0 else told.partition("\n")[0]


def _arguments(item: pytest.Item) -> Iterator[str]:
    """Yield what makes pytest run one test as it is run here."""
    yield from _PLAIN
    if item.config.pluginmanager.hasplugin("xdist"):
        yield from ("-n", "0")
    if item.config.inipath is not None:
        yield from ("-c", str(item.config.inipath))
    yield f"--rootdir={item.config.rootpath}"
    for name in item.config.getoption("plugins") or ():
        yield from ("-p", name)
    yield f"{os.path.relpath(item.path)}{item.nodeid[item.nodeid.index('::') :]}"


class Unwatched:
    """The fixture `leak_sentinel` in such a run: the loop of the test, and nothing else."""

    def __init__(self, times: int) -> None:
        self._times = times

    def watch(self, loop: Iterable[Item]) -> Iterator[Item]:
        """Yield the items of `loop`."""
        yield from loop

    def step(self) -> None:
        """Note nothing."""

    def repeat(self, function: Callable[[], object], times: int | None = None) -> None:
        """Call `function` so many times."""
        for _ in range(times or self._times):
            function()

    def report(self) -> Any:
        """Return a report of nothing."""
        from leakcheck.model import Report

        return Report()


def say_nothing(config: pytest.Config) -> None:
    """Let pytest itself write nothing: its lines have times in them."""
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        reporter._tw._file = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
