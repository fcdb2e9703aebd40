"""Is an entry surely another than the one that grows? `state["window"]` where `["trace"]` does.

The live object says under which names of text the way to it leads; the source, which name an entry
is asked by.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakcheck.source.tree import File


def is_another_entry(file: File, key: ast.expr, names: frozenset[str]) -> bool:
    """Say whether a key is only of names that are none of those on the way; False if unknown."""
    asked = _constants(file, key)
    return bool(names) and bool(asked) and names.isdisjoint(asked)


def _constants(file: File, key: ast.expr) -> frozenset[str]:
    """Return the texts that a key may be, none where it may be anything.

    A variable is known where a condition compares it, or where a loop goes over written names.
    """
    match key:
        case ast.Constant(value=str(text)):
            return frozenset({text})
        case ast.Name(id=name):
            known = (_texts(each) for each in _known_of(file, key, name))
            return next((texts for texts in known if texts), frozenset())
    return frozenset()


def _known_of(file: File, node: ast.expr, name: str) -> Iterator[list[ast.expr]]:
    """Yield what a variable is one of at a place: inside `if name == x:` and `for name in (x, y):`.

    Only up to the function: what its parameter was around it says nothing.
    """
    below: ast.AST = node
    for above in file.around(node):
        match above:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                return
            case ast.If(test=test, body=body) if below in body:
                yield from (given for part in _parts(test) if (given := _compared(part, name)))
            case ast.For(
                target=ast.Name(id=same), iter=ast.Tuple(elts=given) | ast.List(elts=given)
            ):
                if same == name and below in above.body:
                    yield given
        below = above


def _parts(test: ast.expr) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _compared(test: ast.expr, name: str) -> list[ast.expr]:
    match test:
        case ast.Compare(left=ast.Name(id=same), ops=[ast.Eq()], comparators=[one]):
            return [one] if same == name else []
        case ast.Compare(
            left=ast.Name(id=same),
            ops=[ast.In()],
            comparators=[ast.Tuple(elts=given) | ast.List(elts=given) | ast.Set(elts=given)],
        ):
            return given if same == name else []
    return []


def _texts(given: list[ast.expr]) -> frozenset[str]:
    values = [getattr(each, "value", None) for each in given]
    texts = [each for each in values if isinstance(each, str)]
    return frozenset(texts) if len(texts) == len(given) else frozenset()
