"""Which statements of the source are not about what grows, as the run has shown.

What emptied something again and again while a container only grew emptied something else, whatever
its name; and a limit that no memory holds is none. Such statements are left out of what the source
is then asked.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping

from leakcheck.model import Place
from leakcheck.runtime.attribution.assignments import parsed
from leakcheck.runtime.attribution.names import is_around, name_of

Lines = frozenset[tuple[str, int]]  # by path, of statements
Visits = Mapping[tuple[str, int], int]  # how often each line ran while it grew
_CONTAINERS = ("list", "dict", "set", "deque", "defaultdict", "OrderedDict", "Counter")
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
}
_ENDS = {"MemoryError", "OutOfMemoryError", "KeyboardInterrupt", "SystemExit"}
_SIMPLE = (ast.Expr, ast.Assign, ast.AnnAssign)
_OF_LOOPS = {"StopIteration", "StopAsyncIteration", "Empty", "IndexError"}
MOST = 64.0  # an exponent that is still computed


def in_vain(visits: Visits) -> Lines:
    """Return the statements that ran and empty something whole: not what had grown and grew on.

    Not those beside a condition in one line, of which nobody knows whether they ran.
    """
    found = set[tuple[str, int]]()
    for path in {path for path, _ in visits}:
        for statement in _alone_in_line(parsed(path)):
            if visits.get((path, statement.lineno), 0) and _empties_whole(statement):
                found.add((path, statement.lineno))
    return frozenset(found)


def out_of_reach(paths: Iterable[str], most: float) -> Lines:
    """Return what is done at a length above `most`, which no memory holds, or at the end of it.

    Who clears a list when memory is exhausted, or as the program ends, lets it grow until then.
    """
    found = set[tuple[str, int]]()
    for path in paths:
        for node in ast.walk(parsed(path)):
            if isinstance(node, (ast.If, ast.While)) and _asks_for_more(node.test, most):
                found.add((path, node.lineno))
            elif isinstance(node, ast.ExceptHandler) and _handled(node) <= _ENDS:
                found |= {
                    (path, each.lineno) for each in ast.walk(node) if isinstance(each, _SIMPLE)
                }
    return frozenset(found)


def handles_exception(place: Place) -> bool:
    """Say whether a statement handles an exception, but for one that tells the end of a loop."""
    handlers = (
        node
        for node in ast.walk(parsed(place.path))
        if isinstance(node, ast.ExceptHandler) and is_around(node, place.line)
    )
    return any(not _handled(node) & _OF_LOOPS for node in handlers)


def _handled(handler: ast.ExceptHandler) -> set[str]:
    """Return the names of the exceptions that are handled."""
    kinds = getattr(handler.type, "elts", [handler.type])
    return {name_of(kind) if kind is not None else "" for kind in kinds}


def _asks_for_more(test: ast.expr, most: float) -> bool:
    match test:
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="len")),
            ops=[ast.Gt() | ast.GtE() | ast.Eq()],
            comparators=[limit],
        ):
            return (_number(limit) or 0.0) > most
    return False


def period_around(place: Place) -> int:
    """Return n where a statement stands under a condition such as `step % n == 0`, else 0."""
    return max(
        (
            int(_number(part.right) or 0)
            for node in ast.walk(parsed(place.path))
            if isinstance(node, ast.If) and is_around(node, place.line)
            for part in ast.walk(node.test)
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod)
        ),
        default=0,
    )


def _number(node: ast.expr) -> float | None:
    """Return the number that an expression of numbers stands for, None for another."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            one, other = _number(left), _number(right)
            if one is None or other is None or (isinstance(sign, ast.Pow) and other > MOST):
                return None
            try:
                return _OPERATORS[type(sign)](one, other)
            except (OverflowError, ZeroDivisionError):
                return None
    return None


def _alone_in_line(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            for statement in block if isinstance(block, list) else ():
                if isinstance(statement, ast.stmt) and statement.lineno != _line(node):
                    yield statement


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _empties_whole(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="clear"), args=[], keywords=[])):
            return True
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            return _is_empty(value)
    return False


def _is_empty(value: ast.expr) -> bool:
    match value:
        case ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Tuple(elts=[]):
            return True
        case ast.Call(func=ast.Name(id=name), args=args):
            return name in _CONTAINERS and (not args or name == "defaultdict")
    return False
