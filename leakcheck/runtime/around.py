"""Which of the user's loops run around a call of ours, by their source, and has one turned?

Under `leakcheck run` loops tick; a sentinel that is stepped by hand has the frames alone.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from leakcheck.runtime.attribution.assignments import parsed
from leakcheck.runtime.attribution.names import LOOPS
from leakcheck.runtime.introspection import frames

Loop = ast.For | ast.AsyncFor | ast.While
_PLAIN = (int, float, str)


def loops_around(frame: FrameType | None) -> Iterator[tuple[CodeType, Loop]]:
    """Yield the loops that run around the line of a frame and its callers', the innermost first."""
    while frame is not None:
        path, line = frame.f_code.co_filename, frame.f_lineno or 0
        if frames.is_own(path):
            around = [loop for loop in _loops(path) if _has_in_body(loop, line)]
            yield from ((frame.f_code, loop) for loop in reversed(around))
        frame = frame.f_back


@dataclass(slots=True)
class Turns:
    """Tells when a loop turns: a name that it gives values, and no loop in it, has another one."""

    code: CodeType
    names: tuple[str, ...]
    last: tuple[Any, ...] = ()

    @classmethod
    def around_steps(cls, frame: FrameType | None) -> Turns | None:
        """Return the loop around that of the steps, which a frame takes; None if there is none."""
        loops = list(loops_around(frame))
        if len(loops) < 2:
            return None
        (_, steps), (code, loop) = loops[:2]
        by_steps = {*_given_values(steps)}  # `for _ in ...` in another
        names = dict.fromkeys(_given_values(loop))
        return cls(code, tuple(name for name in names if name not in by_steps))

    def turned(self) -> bool:
        """Say whether it has turned since it was asked for the last time (5 us)."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code is not self.code:
            frame = frame.f_back
        if frame is None or not self.names:
            return False
        optimized = self.code.co_flags & inspect.CO_OPTIMIZED
        named = frames.locals_of(frame) if optimized else frame.f_globals
        now = tuple(_identity(named.get(name)) for name in self.names)
        before, self.last = self.last, now
        return bool(before) and before != now


def _given_values(loop: Loop) -> list[str]:
    parts = (part for part in ast.walk(loop) if isinstance(part, ast.Name))
    return [part.id for part in parts if isinstance(part.ctx, ast.Store)]


def _identity(value: Any) -> Any:
    return value if type(value) in _PLAIN else id(value)


def _loops(path: str) -> list[Loop]:
    return [node for node in ast.walk(parsed(path)) if isinstance(node, LOOPS)]


def _has_in_body(loop: Loop, line: int) -> bool:
    return loop.body[0].lineno <= line <= (loop.body[-1].end_lineno or 0)
