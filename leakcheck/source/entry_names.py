"""Is an entry surely another than the one that grows? `state["window"]` where `["trace"]` does.

The live object says under which names of text the way to it leads; the source, which name an entry
is asked by.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from leakcheck.source.conditions import conditions
from leakcheck.source.tree import File


def is_another_entry(file: File, key: ast.expr, names: frozenset[str]) -> bool:
    """Say whether a key is only of names that are none of those on the way; False if unknown."""
    asked = _texts(file, key)
    return bool(names) and bool(asked) and names.isdisjoint(asked)


def _texts(file: File, key: ast.expr) -> frozenset[str]:
    """Return the texts that a key may be, none where it may be anything.

    A variable is known where a condition compares it, or where a loop goes over written names.
    """
    if not isinstance(key, ast.Name):
        return _written([key])
    known = (*_compared(file, key), *_gone_over(file, key))
    return next(filter(None, map(_written, known)), frozenset())


def _compared(file: File, key: ast.Name) -> Iterator[list[ast.expr]]:
    """Yield what conditions say that a variable is: `if name == x:`, `if name in (x, y):`."""
    for condition in conditions(file, key):
        test, holds = condition.test, condition.holds
        parts = test.values if holds and _is_and(test) else [test]
        for part in parts:
            match part:
                case ast.Compare(left=ast.Name(id=name), ops=[sign], comparators=[other]):
                    equal, inside = (ast.Eq, ast.In) if holds else (ast.NotEq, ast.NotIn)
                    if name == key.id and isinstance(sign, equal):
                        yield [other]
                    elif name == key.id and isinstance(sign, inside):
                        yield _elements(other)


def _is_and(test: ast.expr) -> TypeGuard[ast.BoolOp]:
    return isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)


def _gone_over(file: File, key: ast.Name) -> Iterator[list[ast.expr]]:
    """Yield what a loop around gives a variable: `for name in (x, y):`."""
    for loop in file.loops(key):
        match loop:
            case ast.For(target=ast.Name(id=name), iter=over) if name == key.id:
                yield _elements(over)


def _elements(several: ast.expr) -> list[ast.expr]:
    return several.elts if isinstance(several, (ast.Tuple, ast.List, ast.Set)) else []


def _written(given: list[ast.expr]) -> frozenset[str]:
    """Return texts, none if one of them is no text that is written there."""
    values = [getattr(each, "value", None) for each in given]
    texts = [each for each in values if isinstance(each, str)]
    return frozenset(texts) if len(texts) == len(given) else frozenset()
