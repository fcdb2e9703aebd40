"""Which number does an expression stand for, where the files say? `500`, `CAPACITY`, a default."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator

from leakcheck.source.tree import FUNCTIONS, File, Function, ProgramTexts

DEEPEST = 4  # names that stand for each other
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
LARGEST_POWER = 64  # 2**64 is more than any memory; the number of a larger one is not computed


def of(program: ProgramTexts, file: File, node: ast.expr | None) -> int | None:
    """Return the number that an expression stands for, None where the files do not say."""
    found = None if node is None else _value(program, file, node, 0)
    if found is None or not math.isfinite(found):
        return None
    return math.ceil(found)


def _value(program: ProgramTexts, file: File, node: ast.expr, depth: int) -> float | None:
    match node:
        case ast.Constant(value=value):
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            return float(value) if is_number else None  # type: ignore[arg-type]
        case ast.Call(func=ast.Name(id="int" | "round"), args=[inner]):
            return _value(program, file, inner, depth)
        case ast.BinOp(left=left, op=sign, right=right):
            return _computed(
                type(sign), _value(program, file, left, depth), _value(program, file, right, depth)
            )
        case ast.Name() | ast.Attribute() if depth < DEEPEST:
            found = list(given(program, file, node))
            values = [_value(program, other, each, depth + 1) for other, each in found]
            return values[0] if values and len(set(values)) == 1 else None
    return None


def _computed(sign: type[ast.operator], left: float | None, right: float | None) -> float | None:
    if left is None or right is None or sign not in _OPERATORS:
        return None
    if (sign in (ast.Div, ast.FloorDiv) and not right) or (
        sign is ast.Pow and not 0 <= right <= LARGEST_POWER
    ):
        return None
    try:
        return _OPERATORS[sign](left, right)
    except (OverflowError, ValueError):
        return None


def given(
    program: ProgramTexts, file: File, node: ast.Name | ast.Attribute
) -> Iterator[tuple[File, ast.expr]]:
    """Yield what a name is given: by an assignment or, of a parameter, by calls or by default."""
    name = node.id if isinstance(node, ast.Name) else node.attr
    scope = file.scope(node) if isinstance(node, ast.Name) else None
    if name in file.imports and scope is file.tree:
        for other in program.files(name):
            if other.path != file.path:
                yield from ((other, each) for each in _assigned(other, ast.Name, name, other.tree))
    if isinstance(scope, FUNCTIONS):
        handed = program.arguments(file, scope, name)
        default = _default(scope, name)
        yield from handed or ([] if default is None else [(file, default)])
    yield from ((file, each) for each in _assigned(file, type(node), name, scope))


def _assigned(
    file: File, kind: type[ast.expr], name: str, scope: ast.AST | None
) -> Iterator[ast.expr]:
    """Yield what a variable of a scope is given, or an attribute, also in its class's body."""
    for each in file.named(name):
        if isinstance(each, ast.Name):
            own = file.scope(each)
            wanted = own is scope if kind is ast.Name else isinstance(own, ast.ClassDef)
        else:
            wanted = isinstance(each, kind)
        if wanted:
            yield from file.given(each)


def _default(function: Function, name: str) -> ast.expr | None:
    positional = [*function.args.posonlyargs, *function.args.args]
    defaults = function.args.defaults
    pairs = list(zip(positional[len(positional) - len(defaults) :], defaults, strict=True))
    known = [value for arg, value in pairs if arg.arg == name]
    named = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    known += [value for arg, value in named if arg.arg == name and value is not None]
    return known[0] if known else None
