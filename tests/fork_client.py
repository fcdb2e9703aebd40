"""Asks the fork server for a process, and stands for it: what it is asked is what Python would be.

It imports little, because it is the executable itself of every such process.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from itertools import takewhile

REFUSED = "refused: "  # what only a new interpreter can be; the variables that ask for one follow
LIMITS = (resource.RLIMIT_FSIZE, resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_CPU)
# as torchrun starts its ranks; what multiprocessing says of bytecode is in the variables, too
FLAGS = ("-u", "-B")
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Refused(Exception):
    """The server cannot be forked for this."""


class Fork:
    """A process that the server forks; negative as its status is a signal, as in `subprocess`."""

    def __init__(self, place: str, order: Mapping[str, object], descriptors: Sequence[int]) -> None:
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.connect(place)
        socket.send_fds(self._line, [json.dumps(order).encode()], descriptors)

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._line.send(bytes([number]))

    def wait(self) -> int:
        """Return its status once it has ended."""
        with self._line:
            told = self._line.recv(1024).decode()
        if told.startswith(REFUSED):
            raise Refused(told.removeprefix(REFUSED))
        return int(told)


def _open_descriptors() -> list[int]:
    """Return the streams and what else was left open, such as the pipe from who spawns a child."""
    named = sorted(map(int, os.listdir("/dev/fd")))  # read through one that is closed by now
    return list(filter(_is_open, named))


def _is_open(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:
        return False


def main(place: str, python: str, *, whole_heap: bool) -> None:
    """Be the Python that was asked for: a fork, or an interpreter where that does not do."""
    arguments = sys.argv[1:]
    flags = list(takewhile(FLAGS.__contains__, arguments))
    del arguments[: len(flags)]
    if arguments and arguments[0][:2] in ("-c", "-m") and len(arguments[0]) > 2:
        arguments[:1] = arguments[0][:2], arguments[0][2:]
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-c", "-m")):
        os.execv(python, [python, *sys.argv[1:]])
    order = {
        "arguments": arguments,
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "unbuffered": "-u" in flags,
        "whole_heap": whole_heap,
        "limits": [(limit, resource.getrlimit(limit)) for limit in LIMITS],
        "descriptors": _open_descriptors(),
        "ignored": [number for number in FORWARDED if signal.getsignal(number) == signal.SIG_IGN],
    }
    fork = Fork(place, order, order["descriptors"])
    for number in FORWARDED:
        signal.signal(number, lambda number, _: fork.signal(number))
    try:
        status = fork.wait()
    except Refused:
        os.execv(python, [python, *sys.argv[1:]])
    if status >= 0:
        os._exit(status)
    if -status != signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
