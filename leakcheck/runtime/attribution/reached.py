"""Did the program come to a statement while something grew, or to the condition around it?

`if over > 0: rows = rows[-over:]` may yet run, if its condition is asked; a `reset()` that nobody
called through an epoch and its end is a bug, and no hope.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from leakcheck.model import Place
from leakcheck.runtime.attribution.assignments import parsed
from leakcheck.runtime.attribution.names import FUNCTIONS, LOOPS, name_of


def is_reached(place: Place, visits: Mapping[tuple[str, int], int]) -> bool:
    """Say whether a statement, or a condition around it, ran; `visits`: how often each line did."""
    around = list(_around(parsed(place.path), place.line))
    if around and _replaces(around[-1]) and visits.get((place.path, place.line), 0) > 0:
        return False  # it took nothing away: `log = get_log()` is the same log at each turn
    return any(visits.get((place.path, each.lineno), 0) > 0 for each in around)


def _replaces(statement: ast.stmt) -> bool:
    """Say whether a name gets a value that is not made of its own."""
    if not isinstance(statement, ast.Assign):
        return False
    names = {name for target in statement.targets for name in _names_in(target)}
    return names.isdisjoint(_names_in(statement.value))


def _names_in(expression: ast.expr) -> Iterator[str]:
    parts = (each for each in ast.walk(expression) if isinstance(each, ast.expr))
    return filter(None, map(name_of, parts))


def _around(tree: ast.AST, line: int) -> Iterator[ast.stmt]:
    """Yield the statement at a line and those around it, up to a loop or a function."""
    found: list[ast.stmt] = []
    node: ast.AST | None = tree
    while node is not None:
        inside = (each for each in ast.iter_child_nodes(node) if _has(each, line))
        node = next(inside, None)
        if isinstance(node, (*FUNCTIONS, *LOOPS)) and node.lineno < line:
            found.clear()
        elif isinstance(node, ast.stmt):
            found.append(node)
    yield from found


def _has(node: ast.AST, line: int) -> bool:
    if isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)):
        first = node.pattern if isinstance(node, ast.match_case) else node
        last = node.body[-1] if isinstance(node, ast.match_case) else node
        return first.lineno <= line <= (last.end_lineno or 0)
    return False
