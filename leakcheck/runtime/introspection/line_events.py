"""Line events of one thread, without the program's frames being touched.

`sys.settrace` up to CPython 3.12 copies a frame's locals out before each call of the trace function
and back in after it: a variable that another thread set meanwhile is set back, and `locals()` shows
more than before. `PyEval_SetTrace`, which tracers written in C use, copies nothing. It wants a
function of C's, `int f(object, frame, event, argument)`, that calls Python and hands on what is
raised there, as by the handler of a signal. `PyObject_RichCompareBool(object, other, operator)` is
one: the numbers of the events are those of the operators `<`, `<=`, `==` and `!=`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Literal

Listener = Callable[[FrameType], None]

_set_trace: Any = ctypes.pythonapi["PyEval_SetTrace"]
_set_trace.argtypes, _set_trace.restype = (ctypes.c_void_p, ctypes.py_object), None
_COMPARE = ctypes.cast(ctypes.pythonapi["PyObject_RichCompareBool"], ctypes.c_void_p).value


class LineEvents:
    """Calls a listener for each call, line and return in the thread that starts it.

    To have no line events in a frame, set its `f_trace_lines` to False.
    """

    __slots__ = ("_called", "_line", "_returned")
    __hash__ = object.__hash__

    def __init__(self, *, called: Listener, line: Listener, returned: Listener) -> None:
        self._called, self._line, self._returned = called, line, returned

    def start(self) -> None:
        """Begin, also in the frames that run already."""
        _set_trace(_COMPARE, self)

    def stop(self) -> None:
        """End, if this thread's events come here: else something else traces it."""
        if self.are_on():
            sys.settrace(None)

    def are_on(self) -> bool:
        """Say whether this thread's events come here."""
        return sys.gettrace() is self

    def __call__(self, frame: FrameType, *_: object) -> None:
        """Begin again: who put these events aside gives them back by `sys.settrace`."""
        self.start()
        self._called(frame)

    # each answers False: an event whose number is that of an operator is over, and all is well

    def __lt__(self, frame: FrameType) -> Literal[False]:
        self._called(frame)
        return False

    def __le__(self, frame: FrameType) -> Literal[False]:  # an exception passes through
        return False

    def __eq__(self, frame: object) -> Literal[False]:
        self._line(frame)  # type: ignore[arg-type]
        return False

    def __ne__(self, frame: object) -> Literal[False]:
        self._returned(frame)  # type: ignore[arg-type]
        return False
