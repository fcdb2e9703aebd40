"""The one place where what goes wrong in leakcheck ends, so that it never reaches the program.

Hooks, loop ticks, trace functions and callbacks of the collector run in the middle of the program's
own calls. Each runs under a guard: the first error is kept, and the sentinel ends the watch with
it as a note at the next step. What the program raises meanwhile, as by the handler of a signal, is
not ours to keep.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from types import FrameType, TracebackType
from typing import Any, TypeVar

from leakcheck.runtime.introspection.frames import is_ours
from leakcheck.runtime.introspection.line_events import LineEvents

Act = TypeVar("Act", bound=Callable[..., Any])
_raised_anew = 0  # id of an error; the error itself would keep the frames of its traceback
# objects of our own: what the program sets on those of ctypes.pythonapi is not for us
_python = ctypes.PyDLL(None)
# from Python 3.11 on; `sys.settrace(None)` in place of them makes debuggers warn
_enter_tracing: Any = getattr(_python, "PyThreadState_EnterTracing", None)
_leave_tracing: Any = getattr(_python, "PyThreadState_LeaveTracing", None)
_this_thread: Any = _python.PyThreadState_Get
_this_thread.restype = ctypes.c_void_p
for _function in filter(None, (_enter_tracing, _leave_tracing)):
    _function.argtypes = (ctypes.c_void_p,)
_tool_of: Any = getattr(getattr(sys, "monitoring", None), "get_tool", None)  # from 3.12 on
_TOOLS = range(6)
_NOBODY_S = (type(None), LineEvents)


class ErrorGuard:
    """Keeps the first error of ours; `broken` tells it in a line, "" as long as all is well."""

    def __init__(self) -> None:
        self.broken = ""

    def keep(self, error: Exception) -> None:
        """Keep an error of ours; raise one of the program's again."""
        if is_of_program(error):
            raise error
        if not self.broken:
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.broken = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
        if os.environ.get("LEAKCHECK_DEBUG"):
            traceback.print_exception(error, file=sys.stderr)

    def check(self) -> None:
        """Raise what was kept, in a place where that ends the watch."""
        if self.broken:
            raise RuntimeError(self.broken)

    def guarded(self, act: Act) -> Act:
        """Return `act` so that it never raises; once it would have, it does nothing."""

        def run(*args: Any) -> Any:
            if self.broken:
                return None
            try:
                return act(*args)
            except Exception as error:
                self.keep(error)

        return run  # type: ignore[return-value]

    def hidden(self, act: Act) -> Act:
        """Return `act` guarded, so that the program's tracer or profiler does not see what it does.

        That it is called they see.
        """
        if _enter_tracing is None:
            return self.guarded(act)

        def run(*args: Any) -> Any:
            if self.broken:
                return None
            entered = False
            try:
                tracer = sys.gettrace()  # ours is not called for our own files
                observed = type(tracer) not in _NOBODY_S or sys.getprofile() is not None
                if observed or (_tool_of is not None and any(map(_tool_of, _TOOLS))):
                    # a signal's handler runs after a call: it is noted as entered before
                    thread, entered = _this_thread(), True
                    _enter_tracing(thread)
                return act(*args)
            except Exception as error:
                self.keep(error)
            finally:
                if entered:
                    _leave_tracing(thread)

        return run  # type: ignore[return-value]


def raised_by_handler(error: BaseException) -> BaseException:
    """Return an error with the part of its traceback that is its handler's, to be raised anew."""
    global _raised_anew
    _raised_anew = id(error)
    return error.with_traceback(_handler_s(error))


def forget_what_was_raised() -> None:
    """Forget an error that was raised anew: by the next step it is gone, and another has its id."""
    global _raised_anew
    _raised_anew = 0


def in_main_thread() -> bool:
    """Say whether this is the thread that signals come to."""
    return threading.get_ident() == threading.main_thread().ident


def is_of_program(error: BaseException) -> bool:
    """Say whether the handler of a signal that came meanwhile raised an error."""
    return id(error) == _raised_anew or _handler_s(error) is not None


def _handler_s(error: BaseException) -> TracebackType | None:
    handlers, trace = set(map(id, _handler_codes())), error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        known = id(frame.f_code) in handlers
        if known or (not is_ours(frame.f_code) and _is_called_as_handler(frame)):
            return trace
        trace = trace.tb_next
    return None


def _is_called_as_handler(frame: FrameType) -> bool:
    """Say whether a function was given a signal and a frame: it may be no handler any more."""
    named = [frame.f_locals.get(name) for name in frame.f_code.co_varnames[:3]]
    given = [each for one in named for each in (one if type(one) is tuple else (one,))]
    return any(type(one) is int and type(other) is FrameType for one, other in pairwise(given))


def _handler_codes() -> Iterator[Any]:
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while isinstance(handler, partial):
            handler = handler.func
        function = getattr(handler, "__func__", handler)
        yield getattr(function, "__code__", getattr(type(handler).__call__, "__code__", None))
