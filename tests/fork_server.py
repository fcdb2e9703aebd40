"""A process that has imported torch, pytest and leakcheck, and forks as what `python` would run.

To import torch, and what an optimizer's first step imports, is 3.4 of the 7 s that a program takes;
all of leakcheck and its rules is 1.0 s where no bytecode may be written.
What was imported is off the heap of the forks: 330,000 objects that each look would pass, at 0.1 s
a look. A test of what looks do to a program asks for the whole heap, and so does one whose leak is
held by an imported module.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import multiprocessing.spawn
import os
import pkgutil
import random
import resource
import runpy
import selectors
import signal
import socket
import sys
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, NoReturn

from fork_client import FORWARDED, REFUSED

IMPORTED = ("pytest", "torch", "torch._dynamo")
# bring packages that may call what the program defines, or run when they are imported
NOT_IMPORTED = ("leakcheck.integrations.", "leakcheck.lsp", "leakcheck.__main__")
# which an interpreter, its allocator or torch reads as it starts
READ_AT_THE_START = ("PYTHON", "LD_", "MALLOC_", "GLIBC_", "OMP_", "MKL_", "TORCH_LOGS")
FOUND_THERE = "PYTHONPATH"  # a fork can follow it
MOST_BYTES, MOST_DESCRIPTORS = 1 << 20, 64
ABOVE_ALL = 256  # descriptors that are in nobody's way
FILE = "<forks>"  # the name that this runs by
Order = dict[str, Any]


class Server:
    """Forks once an order, tells its status, and ends it when nobody waits for it any more."""

    def __init__(self, place: str) -> None:
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listening.bind(f"{place}.new")
        self._listening.listen()
        os.rename(f"{place}.new", place)  # who waits for it may connect at once
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._selector.register(0, selectors.EVENT_READ)  # its end is ours
        self._lines: dict[int, tuple[socket.socket, int]] = {}  # by the fork's descriptor

    def serve(self) -> tuple[Order, list[int]]:
        """Serve until our input ends; returns what to be, in each fork."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == 0:
                    for _, pid in self._lines.values():
                        _kill(pid)
                    sys.exit()
                if key.fileobj is self._listening:
                    line, _ = self._listening.accept()
                    order = self._ordered(line)
                    if order is not None:
                        return order
                elif key.data is None:
                    self._ended(key.fd)
                else:
                    self._asked(key.fileobj, key.data)

    def _ordered(self, line: socket.socket) -> tuple[Order, list[int]] | None:
        """Fork for an order; returns it in the fork alone."""
        text, descriptors, _, _ = socket.recv_fds(line, MOST_BYTES, MOST_DESCRIPTORS)
        if not text:  # who asked is gone already
            line.close()
            return None
        order = json.loads(text)
        if others := _at_the_start(order["environment"]) ^ _at_the_start(os.environ):
            with line, contextlib.suppress(BrokenPipeError):
                line.send(f"{REFUSED}{', '.join(sorted(name for name, _ in others))}".encode())
        elif pid := os.fork():
            process = os.pidfd_open(pid)
            self._lines[process] = line, pid
            self._selector.register(process, selectors.EVENT_READ)
            self._selector.register(line, selectors.EVENT_READ, pid)
        else:
            self._leave(line)
            return order, descriptors
        for each in descriptors:
            os.close(each)
        return None

    def _leave(self, line: socket.socket) -> None:
        self._selector.close()
        self._listening.close()
        line.close()
        for process, (other, _) in self._lines.items():
            os.close(process)
            other.close()

    def _ended(self, process: int) -> None:
        line, pid = self._lines.pop(process)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self._selector.unregister(process)
        with contextlib.suppress(KeyError):
            self._selector.unregister(line)
        os.close(process)
        with line, contextlib.suppress(BrokenPipeError):
            line.send(str(status).encode())

    def _asked(self, line: socket.socket, pid: int) -> None:
        if line.fileno() < 0:  # the fork has ended in the same round
            return
        asked = b""
        with contextlib.suppress(ConnectionResetError):
            asked = line.recv(1)
        if asked:
            os.kill(pid, asked[0])
            return
        self._selector.unregister(line)  # who asked is gone
        _kill(pid)


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):  # it had no session of its own yet
        os.killpg(pid, signal.SIGKILL)


def _at_the_start(environment: Mapping[str, str]) -> set[tuple[str, str]]:
    return {
        (name, value)
        for name, value in environment.items()
        if name.startswith(READ_AT_THE_START) and name != FOUND_THERE
    }


def become(order: Order, descriptors: list[int]) -> NoReturn:
    """Be the process that was ordered, to its end.

    What Python tears down after the functions of `atexit`, 0.3 s of it torch's, and what the
    imports wanted to be called for then, 0.04 s, is left to the system.
    """
    _take_over(order, descriptors)
    status = 0
    try:
        run(order["arguments"])
    except SystemExit as ending:
        status = _status(ending.code)
    except BaseException as error:
        error.__traceback__ = _of_program(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        status = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # closed, or gone
            stream.flush()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _take_over(order: Order, descriptors: list[int]) -> None:
    """Take what a process is given: session, descriptors, folder, variables, path and limits."""
    os.setsid()
    aside = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, ABOVE_ALL) for each in descriptors]
    for each in descriptors:
        os.close(each)
    os.closerange(0, 3)  # a shell's `2>&-` leaves none
    for number, descriptor in zip(order.get("descriptors", range(3)), aside, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(order["folder"])
    before = os.environ.get(FOUND_THERE, "").split(os.pathsep)
    os.environ.clear()
    os.environ.update(order["environment"])
    found = os.environ.get(FOUND_THERE, "").split(os.pathsep)
    sys.path[:] = [*filter(None, found), *(each for each in sys.path if each not in before)]
    sys.executable = sys.argv[2]  # what it starts are forks, too
    multiprocessing.spawn.set_executable(sys.executable)
    for limit, values in order.get("limits", ()):
        resource.setrlimit(limit, tuple(values))
    for number in FORWARDED:
        default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        ignored = number in order.get("ignored", ())  # as a shell's & ignores SIGINT
        signal.signal(number, signal.SIG_IGN if ignored else default)
    if order.get("unbuffered"):
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(write_through=True)  # type: ignore[union-attr]
    random.seed()
    if order.get("whole_heap"):
        gc.unfreeze()
    else:  # `leakcheck fix` would, in each run of the program as it is: 3 s in place of 0.5
        gc.unfreeze = lambda: None  # type: ignore[assignment]


def _status(code: object) -> int:
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    print(code, file=sys.stderr)
    return 1


def _of_program(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename == FILE:
        traceback = traceback.tb_next
    return traceback


def import_all() -> None:
    """Import what the forks would, and load the rules."""
    for name in IMPORTED:
        importlib.import_module(name)
    package = importlib.import_module("leakcheck")
    for module in pkgutil.walk_packages(package.__path__, "leakcheck."):
        if not module.name.startswith(NOT_IMPORTED):
            importlib.import_module(module.name)
    importlib.import_module("leakcheck.static.registry").builtin_rules()
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        finalizer.atexit = False


def run(arguments: list[str]) -> None:
    """Run a script, a module or a command as `__main__`."""
    kind, rest = arguments[0], arguments[1:]
    main = sys.modules["__main__"] = ModuleType("__main__")
    if kind == "-m":
        sys.argv = ["-m", *rest[1:]]
        sys.path.insert(0, os.getcwd())
        runpy._run_module_as_main(rest[0])  # type: ignore[attr-defined]
    elif kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv = arguments
        sys.path.insert(0, str(Path(kind).resolve().parent))
        main.__file__ = os.path.abspath(kind)
        exec(compile(Path(kind).read_bytes(), main.__file__, "exec"), main.__dict__)


if __name__ == "__main__":
    del sys.path[0]  # where this file is
    server = Server(sys.argv[1])
    import_all()
    gc.collect()
    gc.freeze()
    become(*server.serve())
