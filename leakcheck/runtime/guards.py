"""Does the program itself limit what grows? `if len(heap) < 300: heap.append(x)`, by its source.

A buffer that the program cuts back by hand looks like a leak until it is full for the first time.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from leakcheck.model import Place, Suspect
from leakcheck.runtime.assignments import parsed

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NAME = re.compile(r"`([\w.]+)`")
_REMOVES = ("pop", "popleft", "popitem", "remove", "discard", "clear")
_CHANGES = (
    *("append", "appendleft", "add", "extend", "insert", "push", "put", "setdefault", "update"),
    *_REMOVES,
)


def limited_by_program(suspects: Sequence[Suspect]) -> str:
    """Say which limits the program sets to everything that grows; "" if something has none."""
    places = [limiting_place(suspect) for suspect in suspects]
    told = sorted({f"{each.path}:{each.line} ({each.code})" for each in places if each is not None})
    if not told or None in places:
        return ""
    return (
        f"{', '.join(suspect.holder for suspect in suspects)} grows, limited at {', '.join(told)}"
    )


def without_limit(suspects: tuple[Suspect, ...]) -> tuple[Suspect, ...]:
    """Return the suspects that the program does not limit; all of them if it limits all."""
    return tuple(one for one in suspects if limiting_place(one) is None) or suspects


def limiting_place(suspect: Suspect) -> Place | None:
    """Return where the program cuts back what grows, or adds to it only up to a length."""
    for place in suspect.locations:
        for name, within in _names(suspect, place):
            for node in ast.walk(within):
                if isinstance(node, (ast.If, ast.While)) and _limits(node, name):
                    return replace(place, line=node.lineno, code=ast.unparse(node.test))
                if _cuts(node, name):
                    line = node.lineno  # type: ignore[attr-defined]
                    return replace(place, line=line, code=ast.unparse(node))
    return None


def _names(suspect: Suspect, place: Place) -> Iterator[tuple[str, ast.AST]]:
    """Yield the name of the holder, and what the line of growth changes, with where to look.

    `recent = self.by_class.setdefault(key, []); recent.append(x)` is limited by `len(recent)`.
    """
    tree = parsed(place.path)
    named = _NAME.search(suspect.holder)
    if named:
        yield named.group(1).rpartition(".")[2], tree
    if named and place != suspect.locations[0]:  # only the line that adds knows it by another name
        return
    functions = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
    within = [node for node in functions if _is_around(node, place.line)]
    for changed in _changed_at(place.line, tree):
        if name := _name_of(changed):
            local = isinstance(changed, ast.Name) and named and within
            yield name, within[-1] if local else tree


def _changed_at(line: int, tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if getattr(node, "lineno", 0) == line:
            match node:
                case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in _CHANGES:
                    yield value
                case ast.Assign(targets=targets):
                    yield from targets


def _name_of(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _limits(branch: ast.If | ast.While, name: str) -> bool:
    if _compares_length(branch.test, name):
        return _changes(branch, name)
    # a budget of bytes, or the length of what is kept beside it
    compared = [node for node in ast.walk(branch.test) if isinstance(node, ast.Compare)]
    sides = [side for node in compared for side in (node.left, *node.comparators)]
    with_nothing = any(isinstance(side, ast.Constant) and not side.value for side in sides)
    return bool(compared) and not with_nothing and _removes(branch, name)


def _removes(branch: ast.If | ast.While, name: str) -> bool:
    for part in branch.body:
        for node in ast.walk(part):
            match node:
                case ast.Call(func=ast.Attribute(value=changed, attr=method)):
                    if method in _REMOVES and _name_of(changed) == name:
                        return True
                case ast.Delete(targets=targets):
                    if any(_name_of(target) == name for target in targets):
                        return True
    return False


def _cuts(node: ast.AST, name: str) -> bool:
    """Say whether a statement keeps only the last of something: `kept = kept[-n:]`."""
    match node:
        case ast.Assign(targets=[target], value=ast.Subscript(slice=ast.Slice() as part)):
            bounded = part.lower is not None or part.upper is not None
            return bounded and _name_of(target) == name and not isinstance(target, ast.Subscript)
        case ast.Delete(targets=[ast.Subscript(slice=ast.Slice()) as target]):
            return _name_of(target) == name
    return False


def may_end(suspects: Sequence[Suspect]) -> bool:
    """Say whether something grows only under a condition that may hold for a first while.

    `if epoch == 0:`, `if step < 500:`, `if key not in cache:`, `if found is None:`; but not
    `if step % 10 == 0:`, which comes again for ever.
    """
    return any(_ends(node.test) for suspect in suspects for node in _conditions(suspect))


def _conditions(suspect: Suspect) -> Iterator[ast.If]:
    """Yield the conditions around the line that adds, inside the innermost loop or function."""
    for place in suspect.locations[:1]:
        around = [node for node in ast.walk(parsed(place.path)) if _is_around(node, place.line)]
        for node in reversed(around):  # a walk goes from the outside to the inside
            if isinstance(node, (*_LOOPS, *_FUNCTIONS)):
                return
            if isinstance(node, ast.If) and node.body[0].lineno <= place.line:
                yield node


def _is_around(node: ast.AST, line: int) -> bool:
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    return isinstance(node, ast.stmt) and first <= line <= last


def _ends(test: ast.expr) -> bool:
    if any(isinstance(node, ast.Mod) for node in ast.walk(test)):
        return False
    compared = [node for node in ast.walk(test) if isinstance(node, ast.Compare)]
    first_of_all = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotIn, ast.Is)
    if any(isinstance(operator, first_of_all) for node in compared for operator in node.ops):
        return True
    flag = test.operand if isinstance(test, ast.UnaryOp) else test
    return isinstance(flag, (ast.Name, ast.Attribute))


def _compares_length(test: ast.expr, name: str) -> bool:
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and len(node.comparators) == 1:
            sides = (node.left, node.comparators[0])
            ordered = isinstance(node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq))
            if ordered and any(_is_length(side, name) for side in sides):
                return not any(isinstance(side, ast.Constant) and not side.value for side in sides)
    return False


def _is_length(node: ast.expr, name: str) -> bool:
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    if not called or node.func.id != "len" or len(node.args) != 1:  # type: ignore[attr-defined]
        return False
    return _name_of(node.args[0]) == name  # type: ignore[attr-defined]


def _changes(branch: ast.If | ast.While, name: str) -> bool:
    for part in (*branch.body, *branch.orelse):
        for node in ast.walk(part):
            match node:
                case ast.Call(func=ast.Attribute(value=changed, attr=method)):
                    if method in _CHANGES and _name_of(changed) == name:
                        return True
                    if node.args and method.startswith("heap") and _name_of(node.args[0]) == name:
                        return True
                case ast.Call(func=ast.Name(id=function), args=[changed, *_]):
                    if function.startswith("heap") and _name_of(changed) == name:
                        return True
                case ast.Delete(targets=targets) | ast.Assign(targets=targets):
                    if any(_name_of(target) == name for target in targets):
                        return True
    return False
