"""Is no more added than there is room for? `kept.extend(rows[: n - len(kept)])`, by its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakcheck.runtime.attribution.measured import goes_up
from leakcheck.runtime.attribution.names import is_length, name_of

_COUNTS = ("range", "islice")


def room(node: ast.AST, name: str, within: ast.AST) -> bool:
    """Say whether a slice or a count of turns is as long as what is missing of `name`: n - len(x).

    Also by a name of its own, `room = n - len(x)`, or within `max(0, n - len(x))`.
    """
    return any(
        _is_missing(part, name, within)
        or (isinstance(part, ast.Name) and _stands_for_missing(part.id, name, within))
        for bound in _bounds(node)
        for part in ast.walk(bound)
    )


def _bounds(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Slice(upper=ast.expr() as upper):
            yield upper
        case ast.Call(func=called, args=args) if name_of(called) in _COUNTS:
            yield from args


def _is_missing(node: ast.AST, name: str, within: ast.AST) -> bool:
    match node:
        case ast.BinOp(left=limit, op=ast.Sub(), right=length):
            return is_length(length, name) and not goes_up(limit, within)
    return False


def _stands_for_missing(variable: str, name: str, within: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Assign)
        and name_of(node.targets[0]) == variable
        and any(_is_missing(part, name, within) for part in ast.walk(node.value))
        for node in ast.walk(within)
    )
