"""Does a loop come to an end by itself? It goes over something, or counts up to a number."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakcheck.source.counters import goes_up
from leakcheck.source.tree import File, Loop, name_of
from leakcheck.source.words import words

_AT_LEAST = (ast.Gt, ast.GtE, ast.Eq)
_BLOCKS = (ast.With, ast.AsyncWith, ast.Try)
_LESS = (ast.Lt, ast.LtE, ast.NotEq)


def ends_by_itself(file: File, loop: Loop) -> bool:
    """Say whether a loop ends without anybody's doing: not `while True`, unless that counts."""
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        called = loop.iter.func if isinstance(loop.iter, ast.Call) else None
        if called is None or name_of(called) not in words("functions", "endless"):
            return True
    elif _counts_up(file, loop.test, holds=True):
        return True
    return any(_counts_up(file, test, holds=False) for test in _leaving(file, loop))


def _leaving(file: File, loop: Loop) -> Iterator[ast.expr]:
    """Yield the conditions that leave a loop, whatever else is asked in it."""
    for node in (each for statement in loop.body for each in ast.walk(statement)):
        if isinstance(node, ast.If) and isinstance(node.body[-1], (ast.Break, ast.Return)):
            around = file.around(node)
            if next(each for each in around if not isinstance(each, _BLOCKS)) is loop:
                yield node.test


def _counts_up(file: File, test: ast.expr, *, holds: bool) -> bool:
    """Say whether a loop goes on only while what counts up has not come to a number.

    `holds`: as long as the condition does; of several parts one is enough, if each can end it.
    """
    match test:
        case ast.BoolOp(op=sign, values=parts):
            each = (_counts_up(file, part, holds=holds) for part in parts)
            return any(each) if isinstance(sign, ast.And) == holds else all(each)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _counts_up(file, inner, holds=not holds)
        case ast.Compare(left=left, ops=[sign], comparators=[right]):
            below = _LESS if holds else _AT_LEAST
            above = _AT_LEAST if holds else _LESS
            counted = isinstance(sign, below) and goes_up(file, left)
            return counted or (isinstance(sign, above) and goes_up(file, right))
    return False
