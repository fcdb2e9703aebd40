"""Which of the user's loops run around a call of ours, by their source, and has one turned?

Under `leakcheck run` loops tick; a sentinel that is stepped by hand has the frames alone.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from types import CodeType, FrameType
from typing import Any

from leakcheck.runtime.introspection import frames
from leakcheck.runtime.introspection.local_names import locals_of
from leakcheck.runtime.introspection.texts import file_of
from leakcheck.source.tree import LOOPS, Loop

_PLAIN = (int, float, str)


def loops_around(frame: FrameType | None) -> Iterator[tuple[CodeType, Loop]]:
    """Yield the loops that run around the line of a frame and its callers', the innermost first."""
    for each in frames.outwards(frame):
        path, line = each.f_code.co_filename, each.f_lineno or 0
        if frames.is_own(path):
            column = _column(each)
            loops = [node for node in ast.walk(file_of(path).tree) if isinstance(node, LOOPS)]
            around = [loop for loop in loops if _has_inside(loop, line, column)]
            yield from ((each.f_code, loop) for loop in reversed(around))


def _has_inside(loop: Loop, line: int, column: int | None) -> bool:
    body = loop.body[0]
    if line == loop.lineno == body.lineno and column is not None:
        return column >= body.col_offset
    return body.lineno <= line <= (loop.body[-1].end_lineno or 0)


def _column(frame: FrameType) -> int | None:
    """Return where on its line a frame is; None on CPython 3.10, which does not know."""
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is None:
        return None
    return next((at[2] for at in islice(positions(), frame.f_lasti // 2, None)), None)


@dataclass(slots=True)
class Turns:
    """Tells when a loop turns: a name that it gives values, and no loop in it, has another one."""

    code: CodeType
    names: tuple[str, ...]
    last: tuple[Any, ...] = ()

    @classmethod
    def of_outer(cls, loops: Iterable[tuple[CodeType, Loop]]) -> list[Turns]:
        """Return those of the loops around the first of `loops`, from the inside to the outside."""
        turns = []
        for (_, inner), (code, loop) in pairwise(loops):
            by_inner = {*_given_values(inner)}  # `for _ in ...` in another
            names = dict.fromkeys(_given_values(loop))
            turns.append(cls(code, tuple(name for name in names if name not in by_inner)))
        return turns

    def turned(self) -> bool:
        """Say whether it has turned since it was asked for the last time (5 us)."""
        around = frames.outwards(sys._getframe(1))
        frame = next((each for each in around if each.f_code is self.code), None)
        if frame is None or not self.names:
            return False
        optimized = self.code.co_flags & inspect.CO_OPTIMIZED
        named = locals_of(frame) if optimized else frame.f_globals
        values = [named.get(name) for name in self.names]
        now = tuple(each if type(each) in _PLAIN else id(each) for each in values)
        before, self.last = self.last, now
        return bool(before) and before != now


def _given_values(loop: Loop) -> list[str]:
    parts = (part for part in ast.walk(loop) if isinstance(part, ast.Name))
    return [part.id for part in parts if isinstance(part.ctx, ast.Store)]
