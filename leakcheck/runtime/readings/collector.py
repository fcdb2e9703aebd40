"""Hears the garbage collector, and loses nothing that the handler of a signal raises meanwhile.

CPython runs a handler at the first bytecode of the function that runs next. During a collection
that is a function in `gc.callbacks`, ahead of any `try` of it, and the collector drops what comes
up there: of the Ctrl-C sent to a loop one in thirty was lost. So what is in `gc.callbacks` is a C
function, which resumes a generator that is suspended inside `try`; what comes up there is raised
anew as the collection ends, in the thread and the frame that it would have come up in.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Generator
from functools import partial
from threading import get_ident
from typing import Any

from leakcheck.runtime.guard import ErrorGuard, is_of_program, raised_by_handler

# the last two take the phase and the collector's numbers, with which every callback is called
_raise_in_thread = ctypes.PyDLL(None)["PyThreadState_SetAsyncExc"]
_raise_in_thread.argtypes = [ctypes.c_ulong, *[ctypes.py_object] * 3]
Act = Callable[[str, dict[str, int]], None]


_OTHER = {"start": "stop", "stop": "start"}


class CollectorListener:
    """Calls `act` with the phase and the numbers as each collection begins and ends."""

    def __init__(self, act: Act, guard: ErrorGuard) -> None:
        self._act, self._guard = act, guard
        self._owed: list[BaseException] = []
        self._ours: list[object] = []  # in gc.callbacks: what listens, and what raises anew

    def begin(self) -> None:
        """Listen from now on."""
        heard = self._heard()
        next(heard)
        # `max` is the C function that calls another one with each of two arguments
        self._register(partial(max, key=heard.send))

    def end(self) -> None:
        """Listen no more."""
        self._take_back(0)

    def _register(self, callback: Callable[..., object]) -> None:
        self._ours.append(callback)
        gc.callbacks.append(callback)

    def _take_back(self, kept: int) -> None:
        gone = set(map(id, self._ours[kept:]))
        if gone:
            gc.callbacks[:] = [each for each in gc.callbacks if id(each) not in gone]
            del self._ours[kept:]

    def _heard(self) -> Generator[int, Any, None]:
        """Take the phase and the numbers of each collection by turns, whatever comes up.

        Where it was suspended something may come up as it goes on, and what it was given is lost.
        A jump back to the head of a loop is such a place too, so that a loop is around each `try`.
        """
        phase, is_told, waits = "stop", False, False
        while True:
            try:
                while True:
                    try:
                        while True:
                            if not is_told:
                                waits = True
                                phase = yield 0
                                waits, is_told = False, True
                                self._take_back(1)  # it has raised
                            waits = True
                            numbers = yield 0
                            waits = is_told = False
                            self._hear(phase, numbers)
                    except GeneratorExit:  # noqa: PERF203
                        return
                    except BaseException as error:
                        if waits:
                            waits, is_told = False, not is_told
                            phase = _OTHER[phase] if is_told else phase
                        self._keep(error)
                        if is_told:
                            self._take_back(1)
                        else:
                            self._pay(phase)
            except BaseException as error:  # noqa: PERF203
                self._keep(error)

    def _hear(self, phase: str, numbers: dict[str, int]) -> None:
        if not self._guard.broken:
            self._act(phase, numbers)
        self._pay(phase)

    def _keep(self, error: BaseException) -> None:
        if isinstance(error, Exception) and not is_of_program(error):
            self._guard.keep(error)
        else:
            self._owed.append(error)

    def _pay(self, phase: str) -> None:
        """Raise what is owed, once the collection is over: one error after each."""
        if phase == "stop" and self._owed and len(self._ours) == 1:
            self._register(_raiser(self._owed.pop(0)))


def _raiser(error: BaseException) -> Callable[..., object]:
    """Return a C function that raises an error anew in this thread, as it was raised at first."""
    return partial(_raise_in_thread, get_ident(), _made_again(raised_by_handler(error)))


def _made_again(error: BaseException) -> type:
    """Return a class that makes this very error: Python raises classes alone in a thread.

    Up to 3.10 `except` looks at that class, not at what it made.
    """
    kind = type(error) if sys.version_info < (3, 11) else BaseException
    namespace = {"__new__": lambda *_: error, "__module__": type(error).__module__}
    return type(type(error).__name__, (kind,), namespace)
