"""The process of each trial: a fork of the fork server, or a fresh one where that is not safe."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from leakcheck.cli.forkserver import READY, ForkOrder, Opening
from leakcheck.cli.isolate_stages import LAST_WORDS_S, ended
from leakcheck.cli.tried import TrialOrder

# -c puts "" first on sys.path, where the program's folder comes: ours must not be looked up there
_CHILD = (
    "import sys; first = sys.path.pop(0); from leakcheck.cli import {module}; "
    "sys.path.insert(0, first); {module}.main()"
)
_MAY_FORK = sys.platform == "linux"


@dataclass(slots=True)
class Processes:
    """Runs orders one after another, each in a process of its own."""

    server: ForkServer | None

    @property
    def forks(self) -> bool:
        """Whether the next order is run by a fork."""
        return self.server is not None

    def run(self, order: TrialOrder, folder: Path, timeout_s: float) -> int | None:
        """Run an order to its end; the exit status, None when the time was over."""
        stdout, stderr = folder / "stdout", folder / "stderr"
        if self.server is not None:
            with contextlib.suppress(_ServerGone):
                return self.server.run(ForkOrder(order, str(stdout), str(stderr)), timeout_s)
            self.server = None
        return ended(command_of("tried", order), stdout, timeout_s, stderr)


@contextlib.contextmanager
def processes(opening: Opening, timeout_s: float) -> Iterator[Processes]:
    """Start a fork server for a program, if it can be forked, and end it afterwards."""
    if not _MAY_FORK:
        yield Processes(None)
        return
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command_of("forkserver", opening),
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,
    ) as process:
        server = ForkServer(process)
        try:
            yield Processes(server if server.opens(timeout_s) else None)
        finally:
            process.kill()  # between two orders, or just before it is told that one has ended


class _ServerGone(Exception):
    """The fork server has ended."""


@dataclass(slots=True)
class ForkServer:
    """Speaks with a fork server: one line for an order, one for each answer."""

    process: subprocess.Popen[bytes]
    _begun: bytes = field(default=b"")  # of the next line

    def opens(self, timeout_s: float) -> bool:
        """Wait until the program's first imports are there; False when it cannot be forked."""
        try:
            return self._answer(timeout_s) == READY
        except _ServerGone:
            return False

    def run(self, order: ForkOrder, timeout_s: float) -> int | None:
        """Run an order in a fork; the exit status, None when the time was over."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(msgspec.json.encode(order) + b"\n")
        except BrokenPipeError:
            raise _ServerGone from None
        begun = self._answer(timeout_s)
        if begun is None:
            raise _ServerGone
        status = None
        try:
            status = self._answer(timeout_s)
            return None if status is None else int(status)
        finally:
            if status is None:
                self._end(int(begun))

    def _end(self, pid: int) -> None:
        try:
            _signal(os.kill, pid, signal.SIGTERM)
            gone = self._answer(LAST_WORDS_S) is not None
        except _ServerGone:
            gone = False
        finally:
            _signal(os.killpg, pid, signal.SIGKILL)  # its worker processes too
        if not gone:
            with contextlib.suppress(_ServerGone):
                self._answer(LAST_WORDS_S)

    def _answer(self, timeout_s: float) -> str | None:
        """Return the next line, None when the time is over."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._begun:
                if not selector.select(timeout_s):
                    return None
                read = os.read(self.process.stdout.fileno(), 4096)
                if not read:
                    raise _ServerGone
                self._begun += read
        line, _, self._begun = self._begun.partition(b"\n")
        return line.decode()


def command_of(module: str, order: msgspec.Struct) -> list[str]:
    """Return the command that runs a module of ours with an order as its first argument."""
    return [sys.executable, "-c", _CHILD.format(module=module), msgspec.json.encode(order).decode()]


def _signal(send: object, pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        send(pid, number)  # type: ignore[operator]
