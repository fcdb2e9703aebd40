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
Hear = Callable[[str, dict[str, int]], None]
SIGNALS_AT_ONCE = 2  # more: each has a loop of its own to be caught in
_OTHER = {"start": "stop", "stop": "start"}


class CollectorListener:
    """Calls `act` with the phase and the numbers as each collection begins and ends."""

    def __init__(self, act: Hear, guard: ErrorGuard) -> None:
        self._act, self._guard = act, guard
        self._owed: list[tuple[BaseException, bool]] = []  # each: did it come up while suspended?
        self._ours: list[object] = []  # in gc.callbacks: what listens, and what raises anew
        self._phase, self._is_told, self._waits = "stop", False, False

    @property
    def listens(self) -> bool:
        """Whether it has begun and not ended."""
        return bool(self._ours)

    def begin(self) -> None:
        """Listen from now on."""
        self._phase, self._is_told, self._waits = "stop", False, False
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

    def _heard(self, levels: int = SIGNALS_AT_ONCE) -> Generator[int, Any, None]:
        """Take the phase and the numbers of each collection by turns, whatever comes up.

        Where it was suspended something may come up as it goes on, and what it was given is lost.
        So may it at the jump to the head of the loop, which ends this level: the one around it
        begins it anew. What is caught is noted without a call, as after a call one more may come.
        """
        while True:
            try:
                if levels:
                    yield from self._heard(levels - 1)
                else:
                    if self._waits:  # what was given as it went on is lost
                        self._waits, self._is_told = False, not self._is_told
                        self._phase = _OTHER[self._phase] if self._is_told else self._phase
                    if not self._is_told:
                        if self._owed and self._phase == "stop":
                            self._pay()
                        self._waits = True
                        self._phase = yield 0
                        self._waits, self._is_told = False, True
                    self._take_back(1)  # it has raised
                    self._waits = True
                    numbers = yield 0
                    self._waits = self._is_told = False
                    if not self._guard.broken:
                        self._act(self._phase, numbers)
                    del numbers
            except GeneratorExit as error:  # noqa: PERF203
                trace = error.__traceback__
                if trace is None or trace.tb_next is None:
                    return  # nobody holds it any more
                self._owed += [(error, self._waits or levels > 0)]
            except BaseException as error:
                self._owed += [(error, self._waits or levels > 0)]

    def _pay(self) -> None:
        """Raise the first error that is the program's, once the collection is over.

        What comes up while the listener is suspended is never ours.
        """
        self._owed, owed = [], self._owed
        of_program = [error for error, suspended in owed if suspended or _is_of_program(error)]
        for error, _ in owed:
            if not any(error is each for each in of_program):
                self._guard.keep(error)  # type: ignore[arg-type]
        self._owed += [(error, True) for error in of_program[1:]]
        if of_program and len(self._ours) == 1:
            self._register(_raiser(of_program[0]))


def _is_of_program(error: BaseException) -> bool:
    return not isinstance(error, Exception) or is_of_program(error)


def _raiser(error: BaseException) -> Callable[..., object]:
    """Return a C function that raises an error anew in this thread, as it was raised at first."""
    return partial(_raise_in_thread, get_ident(), _made_again(raised_by_handler(error)))


def _made_again(error: BaseException) -> type:
    """Return a class that makes this very error: Python raises classes alone in a thread.

    Up to 3.10 `except` looks at that class, not at what it made.
    """
    kind = type(error) if sys.version_info < (3, 11) else BaseException
    namespace = {"__new__": lambda *_: error, "__module__": type(error).__module__}
    try:
        return type(type(error).__name__, (kind,), namespace)
    except Exception:  # the class says how it may be derived from
        return type(error)
