"""Which tests hold where a statement runs: those around it, and those that would have left."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from leakcheck.source.tree import (
    FUNCTIONS,
    LOOPS,
    File,
    Function,
    Loop,
    ProgramTexts,
    is_around,
    is_property,
    name_of,
)
from leakcheck.source.words import words

_CATCH = frozenset(["", "BaseException", "SystemExit"])  # "": a bare `except:`


@dataclass(frozen=True, slots=True)
class Condition:
    """A test that holds, or not, where a statement runs.

    `node` has it, and `block` is what runs then; `outside`: it is asked around the innermost loop,
    and held when that began; `left`: the loop that is left where it does not hold, or holds.
    """

    test: ast.expr
    holds: bool
    node: ast.AST
    block: tuple[ast.stmt, ...] = ()
    outside: bool = False
    left: Loop | None = None


def conditions(file: File, node: ast.AST) -> Iterator[Condition]:
    """Yield what holds at a node of a function, the nearest first."""
    below, outside = node, False
    for above in file.around(node):
        found = [*_tests(above, below)]
        for block in _blocks(above):
            if below in block:
                found += _exits(file, block, block.index(below))
        yield from (replace(each, outside=outside) for each in found)
        if isinstance(above, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            return
        outside |= isinstance(above, LOOPS)
        below = above


def names_of_errors(kind: ast.expr | None) -> frozenset[str]:
    """Return the names of the errors that a handler is for."""
    return frozenset(name_of(each) for each in getattr(kind, "elts", [kind]))


def is_caught_at(file: File, line: int) -> bool:
    """Say whether a line is in a `try` whose handler catches a SystemExit for good.

    `except BaseException:` does, in a robust service; not one that raises again.
    """
    tries = (node for node in ast.walk(file.tree) if isinstance(node, ast.Try))
    return any(_catches(each.handlers) for each in tries if _runs_in(each.body, line))


def _runs_in(body: Iterable[ast.stmt], line: int) -> bool:
    """Say whether a line is in a block itself, and not in a function that is made there."""
    parts = [
        part for statement in body if is_around(statement, line) for part in ast.walk(statement)
    ]
    inner = (each for each in parts if isinstance(each, (*FUNCTIONS, ast.Lambda)))
    return bool(parts) and not any(is_around(each, line) for each in inner)


def _catches(handlers: Iterable[ast.ExceptHandler]) -> bool:
    """Say whether the first of these that is for a SystemExit does not raise again."""
    first = next((each for each in handlers if _is_for_exits(each)), None)
    return first is not None and not any(isinstance(part, ast.Raise) for part in ast.walk(first))


def _is_for_exits(handler: ast.ExceptHandler) -> bool:
    kinds = frozenset([""]) if handler.type is None else names_of_errors(handler.type)
    return not kinds.isdisjoint(_CATCH)


def in_full(program: ProgramTexts, file: File, test: ast.expr) -> ast.expr:
    """Return what a condition with a name of its own asks: `if self.full():`, `if full:`."""
    match test:
        case ast.Call(func=called, args=[]) if name_of(called):
            return _returned(program, file, name_of(called), is_asked=False) or test
        case ast.Attribute(attr=name):
            return _returned(program, file, name, is_asked=True) or test
        case ast.Name():
            given = [v for each in file.stores(test) for v in file.given(each)]
            if len(given) == 1:
                named = isinstance(given[0], ast.Name)
                told = given[0] if named else in_full(program, file, given[0])
                return told if _asks(told) else test
    return test


def _returned(program: ProgramTexts, file: File, name: str, *, is_asked: bool) -> ast.expr | None:
    """Return what the only function of a name returns, if that is a condition."""
    functions: list[Function] = [each for _, each in program.functions(name, file)]
    if len(functions) != 1 or is_property(functions[0]) != is_asked:
        return None
    match functions[0].body[-1]:
        case ast.Return(value=ast.expr() as value) if _asks(value):
            return value
    return None


def _asks(node: ast.expr) -> bool:
    return isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp))


def _tests(above: ast.AST, below: ast.AST) -> Iterator[Condition]:
    match above:
        case ast.If(test=test, body=body, orelse=orelse) if below is not test:
            holds = below in body
            yield Condition(test, holds, above, tuple(body if holds else orelse))
        case ast.While(test=test, body=body) if below in body:
            if not isinstance(test, ast.Constant):
                yield Condition(test, True, above, tuple(body), left=above)
        case ast.Match(subject=subject, cases=cases) if below in cases:
            yield Condition(_is_case(subject, cases[cases.index(below)]), True, above)
        case ast.IfExp(test=test, body=body) if below is not test:
            yield Condition(test, below is body, above)
        case ast.BoolOp(op=sign, values=values):
            before = [each for each in values if each.end_lineno and _is_before(each, below)]
            yield from (Condition(each, isinstance(sign, ast.And), above) for each in before)
        case ast.Try(body=[*_, ast.Expr(value=call)], orelse=orelse) if below in orelse:
            yield Condition(call, True, above, tuple(orelse))  # it did not raise
        case ast.ExceptHandler(type=kind) if names_of_errors(kind) & words("names", "missing"):
            yield Condition(_not_there(above), True, above)


def _is_case(subject: ast.expr, case: ast.match_case) -> ast.expr:
    """Return the condition that a case stands for: `phase == "probe"`, or what is asked."""
    match case.pattern:
        case ast.MatchValue(value=value):
            return ast.copy_location(ast.Compare(subject, [ast.Eq()], [value]), subject)
    return subject


def _is_before(one: ast.expr, other: ast.AST) -> bool:
    at = getattr(other, "lineno", 0), getattr(other, "col_offset", 0)
    return one is not other and (one.lineno, one.col_offset) < at


def _not_there(node: ast.AST) -> ast.expr:
    """Return the condition that an error stands for: what was asked for is not there."""
    it = ast.copy_location(ast.Name("it", ast.Load()), node)
    return ast.copy_location(ast.Compare(it, [ast.NotIn()], [it]), node)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list):
            yield block


def _exits(file: File, block: list[ast.stmt], at: int) -> Iterator[Condition]:
    """Yield the conditions that do not hold, as the block would have been left.

    Before the statement, or after it: where a loop goes on, `if len(kept) > n: break` did not run.
    """
    for index, statement in enumerate(block):
        rest = tuple(block[index + 1 :])
        match statement:
            case ast.If(test=test, body=[*_, last]) if index != at:
                if _leaves(last, after=index > at):
                    yield Condition(test, False, statement, rest, left=_loop_left(file, last))
            case ast.Assert(test=test):
                left = _loop_left(file, statement)
                yield Condition(test, True, statement, rest, left=left)
            case ast.Try(body=[*_, ast.Return()], handlers=handlers) if index < at:
                errors = (names_of_errors(each.type) for each in handlers)
                if any(each & words("names", "missing") for each in errors):
                    yield Condition(_not_there(statement), True, statement)


def _loop_left(file: File, exit_: ast.stmt) -> Loop | None:
    """Return the loop that a statement leaves for good, the outermost of several."""
    loops = [] if isinstance(exit_, ast.Continue) else file.loops(exit_)
    return next(iter(loops if isinstance(exit_, ast.Break) else reversed(loops)), None)


def _leaves(statement: ast.stmt, *, after: bool) -> bool:
    ways = (ast.Break, ast.Raise) if after else (ast.Return, ast.Continue, ast.Break, ast.Raise)
    return isinstance(statement, ways)
