"""What a condition asks in other words, by the source: `if self.full():`, `full = len(x) >= n`."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from functools import lru_cache

from leakcheck.runtime.attribution.names import functions_in, name_of

Function = ast.FunctionDef | ast.AsyncFunctionDef
_ASKS = (ast.Compare, ast.BoolOp, ast.UnaryOp)


def branches_in(within: ast.AST) -> Iterator[ast.AST]:
    """Yield every node, and beside it the branches that it comes to.

    `rows.pop(0) if len(rows) > n else None` and `len(rows) > n and rows.pop(0)` are an `if`; that
    of a condition with a name of its own asks what the name stands for.
    """
    for node in ast.walk(within):
        yield node
        if isinstance(node, (ast.If, ast.While)):
            test = _in_full(node.test, within)
            if test is not node.test:
                told = copy.copy(node)
                told.test = test
                yield told
        elif isinstance(node, (ast.Expr, ast.Return, ast.Assign)):
            match node.value:
                case ast.IfExp(test=test, body=act) | ast.BoolOp(op=ast.And(), values=[test, act]):
                    does = ast.copy_location(ast.Expr(act), node)
                    asked = _in_full(test, within)
                    yield ast.copy_location(ast.If(asked, [does], []), node)


def _in_full(test: ast.expr, within: ast.AST) -> ast.expr:
    """Return a condition with what its names stand for, itself if that is not known."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            told = _in_full(inner, within)
            return test if told is inner else ast.copy_location(ast.UnaryOp(ast.Not(), told), test)
        case ast.BoolOp(op=sign, values=values):
            parts = [_in_full(value, within) for value in values]
            same = all(part is value for part, value in zip(parts, values, strict=True))
            return test if same else ast.copy_location(ast.BoolOp(sign, parts), test)
        case ast.Call(func=called, args=[]):
            return _returned_by(name_of(called), within, is_property=False) or test
        case ast.Attribute(attr=name):
            return _returned_by(name, within, is_property=True) or test
        case ast.Name(id=name):
            return _assigned_to(name, within) or test
    return test


def _returned_by(name: str, within: ast.AST, *, is_property: bool) -> ast.expr | None:
    """Return what the only function of a name returns, if that is all it does."""
    functions = _functions(within).get(name, [])
    if len(functions) != 1:
        return None
    decorators = map(name_of, functions[0].decorator_list)
    decorated = any(each in ("property", "cached_property") for each in decorators)
    match functions[0].body[-1]:
        case ast.Return(value=value) if decorated == is_property:
            return value if isinstance(value, _ASKS) else None
    return None


def _assigned_to(name: str, within: ast.AST) -> ast.expr | None:
    """Return the condition that a variable is given, if it is given no other."""
    values = _assigned(within).get(name, [])
    return values[0] if len(values) == 1 and isinstance(values[0], _ASKS) else None


@lru_cache(maxsize=16)
def _functions(within: ast.AST) -> dict[str, list[Function]]:
    found: dict[str, list[Function]] = {}
    for one in functions_in(within):
        found.setdefault(one.name, []).append(one)
    return found


@lru_cache(maxsize=16)
def _assigned(within: ast.AST) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(within):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return found
