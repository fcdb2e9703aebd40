"""Which of the user's loops run around a frame, by their source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from types import CodeType, FrameType

from leakcheck.runtime.introspection import frames
from leakcheck.runtime.introspection.texts import file_of
from leakcheck.source.tree import LOOPS, Loop


def loops_around(frame: FrameType | None) -> Iterator[tuple[CodeType, Loop]]:
    """Yield the loops that run around the line of a frame and its callers', the innermost first."""
    for each in frames.outwards(frame):
        path, line = each.f_code.co_filename, each.f_lineno or 0
        if frames.is_own(path):
            column = _column(each)
            around = [loop for loop in _loops(path) if _has_inside(loop, line, column)]
            yield from ((each.f_code, loop) for loop in reversed(around))


def _loops(path: str) -> list[Loop]:
    return [node for node in ast.walk(file_of(path).tree) if isinstance(node, LOOPS)]


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
