"""With what does the program compare the length of what grows, or count where it adds to?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from leakcheck.model import Place, Suspect
from leakcheck.runtime.attribution.assignments import parsed
from leakcheck.runtime.attribution.cuts import age_out, divisor
from leakcheck.runtime.attribution.emptying import calls_what_empties
from leakcheck.runtime.attribution.guards import (
    changes,
    compared_beside,
    compared_with,
    limits,
    turns_back,
)
from leakcheck.runtime.attribution.measured import turned_at
from leakcheck.runtime.attribution.names import FUNCTIONS, LOOPS, is_around, name_of, names_of
from leakcheck.runtime.attribution.predicates import branches_in


@dataclass(frozen=True, slots=True)
class Bound:
    """What a length is compared with; a `counter` stands for the length if it is equal to it.

    `each_time`: it is, wherever something is added; not only every so many steps.
    """

    path: str
    limit: ast.expr
    counter: ast.expr | None = None
    each_time: bool = False


def bounds_of(suspect: Suspect) -> Iterator[Bound]:
    """Yield what the program compares the length with of what grows, before it adds or removes.

    `if self.size < self.capacity: self.rows.append(x)` counts by hand, `rows[i % n] = x` has as
    many as there are remainders; `rows.pop(i - n, None)` leaves the newest n.
    """
    for place in suspect.locations:
        for name, within in names_of(suspect, place):
            for node in branches_in(within):
                if isinstance(node, (ast.If, ast.While)):
                    yield from _bounds_in(node, name, place, within)
                    yield from _counted_bounds_in(node, name, place, within)
                elif (number := divisor(node, name)) is not None:
                    yield Bound(place.path, number)
                elif isinstance(node, ast.stmt) and (age := age_out(node, name, within)):
                    asks = _asks_for_it(node, name, within)
                    each_time = _is_each_time(asks, place.line, parsed(place.path))
                    yield Bound(place.path, age, each_time=each_time)


def _asks_for_it(statement: ast.stmt, name: str, within: ast.AST) -> ast.stmt:
    """Return the branch that takes out what is there: `if old in rows: del rows[old]`."""
    for node in ast.walk(within):
        match node:
            case ast.If(test=ast.Compare(ops=[ast.In()], comparators=[kept]), body=[only]):
                if only is statement and name_of(kept) == name:
                    return node
    return statement


def bounds_beside(suspect: Suspect) -> Iterator[Bound]:
    """Yield what it compares the length of another container with, before it removes from this.

    `if len(self.order) > n: self.rows.pop(self.order.popleft(), None)`; the `counter` is the other.
    """
    for place in suspect.locations:
        for name, within in names_of(suspect, place):
            for branch in branches_in(within):
                if not isinstance(branch, (ast.If, ast.While)):
                    continue
                if limits(branch, name, within) and not list(
                    _bounds_in(branch, name, place, within)
                ):
                    yield from _lengths_in(branch.test, place.path)


def _lengths_in(test: ast.expr, path: str) -> Iterator[Bound]:
    match test:
        case ast.Compare(left=length, ops=[ast.Gt() | ast.GtE()], comparators=[most]):
            pass
        case ast.Compare(left=most, ops=[ast.Lt() | ast.LtE()], comparators=[length]):
            pass
        case _:
            return
    match length:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name() | ast.Attribute() as other]):
            yield Bound(path, most, other)


def _bounds_in(
    branch: ast.If | ast.While, name: str, place: Place, within: ast.AST
) -> Iterator[Bound]:
    limit = None
    emptied = isinstance(branch, ast.If) and calls_what_empties(branch, name, within)
    if emptied or limits(branch, name, within):
        limit = compared_with(branch.test, name) or compared_beside(branch, name)
    limit = limit or turns_back(branch, name, place.line, parsed(place.path))
    if limit is not None:
        each_time = isinstance(branch.test, ast.Compare)
        each_time &= _is_each_time(branch, place.line, parsed(place.path))
        yield Bound(place.path, turned_at(limit, within) or limit, each_time=each_time)


def _is_each_time(statement: ast.stmt, line: int, tree: ast.Module) -> bool:
    """Say whether a statement is in the same block as what adds at `line`."""
    blocks = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (*FUNCTIONS, *LOOPS)) and node.lineno != statement.lineno
    ]
    around = [node for node in blocks if is_around(node, line)]
    body = around[-1].body if around else tree.body
    return any(statement.lineno == each.lineno for each in body)


def _counted_bounds_in(
    branch: ast.If | ast.While, name: str, place: Place, within: ast.AST
) -> Iterator[Bound]:
    """Yield what an attribute is compared with that is counted up; a local may count the steps."""
    adds = isinstance(branch, ast.If) and is_around(branch, place.line) and changes(branch, name)
    for node in ast.walk(branch.test) if adds else ():
        match node:
            case ast.Compare(
                left=left, ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()], comparators=[right]
            ):
                for counter, limit in ((left, right), (right, left)):
                    if isinstance(counter, ast.Attribute) and _is_set(counter, within):
                        yield Bound(place.path, limit, counter)


def _is_set(attribute: ast.Attribute, within: ast.AST) -> bool:
    for node in ast.walk(within):
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AugAssign) else targets
        if any(ast.unparse(target) == ast.unparse(attribute) for target in targets):
            return True
    return False
