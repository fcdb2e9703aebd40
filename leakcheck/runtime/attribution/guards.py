"""Does the program itself limit what grows? `if len(heap) < 300: heap.append(x)`, by its source.

A buffer that the program cuts back by hand looks like a leak until it is full for the first time.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from leakcheck.model import Place, Suspect
from leakcheck.runtime.attribution.assignments import parsed
from leakcheck.runtime.attribution.measured import (
    goes_up,
    is_guarded_by_argument,
    measures_argument,
)
from leakcheck.runtime.attribution.names import (
    CHANGES,
    FUNCTIONS,
    REMOVES,
    handed_to,
    is_around,
    is_inner,
    is_item,
    name_of,
    names_of,
)
from leakcheck.runtime.attribution.trace import OUTSIDE

ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_SIZES = (*ORDERED, ast.Eq, ast.NotEq)


def limited_by_program(suspects: Sequence[Suspect]) -> str:
    """Say which limits the program sets to everything that grows; "" if something has none."""
    places = [limiting_place(suspect) for suspect in suspects]
    told = sorted({f"{each.path}:{each.line} ({each.code})" for each in places if each is not None})
    if not told or None in places:
        return ""
    names = (one.what if one.holder.startswith(OUTSIDE) else one.holder for one in suspects)
    return f"{', '.join(names)} grows, limited at {', '.join(told)}"


def without_limit(suspects: tuple[Suspect, ...]) -> tuple[Suspect, ...]:
    """Return the suspects that the program does not limit; all of them if it limits all."""
    return tuple(one for one in suspects if limiting_place(one) is None) or suspects


def limiting_place(suspect: Suspect) -> Place | None:
    """Return where the program cuts back what grows, or adds to it only up to a length."""
    for place in suspect.locations:
        for name, within in names_of(suspect, place):
            node = _limit_in(within, name, parsed(place.path), place.line)
            node = node or (_item_cut_in(within, name) if is_inner(suspect) else None)
            if node is not None:
                code = node.test if isinstance(node, (ast.If, ast.While)) else node
                line = node.lineno  # type: ignore[attr-defined]
                return replace(place, line=line, code=ast.unparse(code))
    return None


def _limit_in(
    within: ast.AST, name: str, tree: ast.Module | None = None, line: int = 0
) -> ast.AST | None:
    """Return what limits `name`; with `tree` also in the functions there that it is handed to.

    `line`: where it is added to, 0 if not known.
    """
    for node in ast.walk(within):
        if isinstance(node, (ast.If, ast.While)):
            if limits(node, name, within) or turns_back(node, name, line, tree or within):
                return node
            if isinstance(node, ast.If) and _empties(node, name, within):
                return node
        elif divisor(node, name) is not None or _cuts(node, name, within):
            return node
        elif tree is not None and isinstance(node, ast.Call):
            for function, parameter in handed_to(node, name, tree):
                if _limit_in(function, parameter) is not None:
                    return node
    return None


def _item_cut_in(within: ast.AST, name: str) -> ast.AST | None:
    """Return where each element of `name` keeps only its last: `rows[key] = rows[key][-n:]`."""
    for node in ast.walk(within):
        match node:
            case ast.Assign(
                targets=[ast.Subscript() as target],
                value=ast.Subscript(value=cut, slice=ast.Slice(lower=lower, upper=upper)),
            ) if name_of(target) == name == name_of(cut):
                if lower is not None or upper is not None:
                    return node
    return None


def limits(branch: ast.If | ast.While, name: str, within: ast.AST) -> bool:
    """Say whether a branch adds or removes by the length of `name`, or removes by another size."""
    limit = compared_with(branch.test, name)
    if limit is not None:
        return changes(branch, name) and not goes_up(limit, within)
    # a budget of bytes, or the length of what is kept beside it
    beside = _compares_something(branch.test) and not measures_argument(branch, within)
    return beside and _removes(branch, name)


def turns_back(
    branch: ast.If | ast.While, name: str, line: int, within: ast.AST
) -> ast.expr | None:
    """Return n if nothing is added at `line` once n are kept: `if len(rows) >= n: return`.

    They may be kept beside `name`, where the same function adds to both.
    """
    last = branch.end_lineno or line
    if len(branch.body) != 1 or not _leaves(branch.body[0]) or last >= line:
        return None
    match branch.test:
        case ast.Compare(left=large, ops=[ast.Gt() | ast.GtE() | ast.Eq()], comparators=[small]):
            pass
        case ast.Compare(left=small, ops=[ast.Lt() | ast.LtE()], comparators=[large]):
            pass
        case _:
            return None
    if isinstance(small, ast.Constant) and not small.value:
        return None
    return small if _is_length(large, name) or _is_beside(large, last, line, within) else None


def _is_beside(length: ast.expr, after: int, line: int, within: ast.AST) -> bool:
    """Say whether the function with `line` adds to what is measured, `after` it was compared."""
    match length:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Attribute() | ast.Name() as kept]):
            pass
        case _:
            return False
    around = [node for node in ast.walk(within) if isinstance(node, FUNCTIONS)]
    around = [node for node in around if is_around(node, line) and is_around(node, after)]
    if not around:
        return False
    adding = [each for each in around[-1].body if each.lineno > after]
    return bool(adding) and changes(ast.If(length, adding, []), name_of(kept))


def _leaves(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Return):  # with a value it answers, and may have enough to do so
        value = statement.value
        constant = isinstance(value, ast.Name) and value.id.isupper()
        return value is None or isinstance(value, ast.Constant) or constant
    return isinstance(statement, (ast.Continue, ast.Break, ast.Raise))


def _compares_something(test: ast.expr) -> bool:
    """Say whether a condition compares two sizes, and not with zero, None or nothing.

    `if listener in listeners: listeners.remove(listener)` limits nothing.
    """
    compared = [node for node in ast.walk(test) if isinstance(node, ast.Compare)]
    sides = [side for node in compared for side in (node.left, *node.comparators)]
    with_nothing = any(isinstance(side, ast.Constant) and not side.value for side in sides)
    sizes = any(isinstance(operator, _SIZES) for node in compared for operator in node.ops)
    return sizes and not with_nothing


def _removes(branch: ast.If | ast.While, name: str) -> bool:
    for part in branch.body:
        for node in ast.walk(part):
            match node:
                case ast.Call(func=ast.Attribute(value=changed, attr=method)):
                    if method in REMOVES and name_of(changed) == name:
                        return True
                case ast.Delete(targets=targets):
                    if any(name_of(target) == name for target in targets):
                        return True
    return False


def _empties(branch: ast.If, name: str, within: ast.AST) -> bool:
    """Say whether a branch that is taken again and again empties something, or calls what does.

    `if step % 90 == 0: kept = []`, `if done: episode.clear()`, `if now - since > 60: self.flush()`;
    not `if kept is None: kept = []`, and not a `while`, which is the loop around the steps.
    """
    again = any(isinstance(node, ast.Mod) for node in ast.walk(branch.test))
    flag = isinstance(branch.test, (ast.Name, ast.Attribute))
    if not again and not flag and not _compares_something(branch.test):
        return False
    nodes = [node for part in branch.body for node in ast.walk(part)]
    called = {name_of(node.func) for node in nodes if isinstance(node, ast.Call)}
    for node in ast.walk(within):
        if isinstance(node, FUNCTIONS) and node.name in called and not _has_own(node, name):
            nodes += ast.walk(node)
    return any(_is_emptying(node, name) for node in nodes)


def _has_own(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Say whether `name` is a parameter or a local of a function."""
    nodes = list(ast.walk(function))
    outer = [
        each
        for node in nodes
        if isinstance(node, (ast.Global, ast.Nonlocal))
        for each in node.names
    ]
    made = {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return name not in outer and name in made | {
        node.arg for node in nodes if isinstance(node, ast.arg)
    }


def _is_emptying(node: ast.AST, name: str) -> bool:
    match node:
        case ast.While(test=drained):
            return name_of(drained) == name and _removes(node, name)
        case ast.Call(func=ast.Attribute(value=emptied, attr="clear")):
            return name_of(emptied) == name and not is_item(emptied)
        case ast.Assign(targets=targets, value=value):
            parts = [part for each in targets for part in getattr(each, "elts", [each])]
            values = getattr(value, "elts", []) if len(parts) > 1 else [value]
            pairs = zip(parts, values, strict=False)
            return any(
                name_of(part) == name and not is_item(part) and _is_empty(one)
                for part, one in pairs
            )
    return False


def _is_empty(value: ast.expr) -> bool:
    match value:
        case ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Constant(value="" | b""):
            return True
        case ast.Call(func=ast.Name(), args=[]) | ast.Call(func=ast.Attribute(), args=[]):
            return True  # list(), deque(maxlen=9), defaultdict()
    return False


def divisor(node: ast.AST, name: str) -> ast.expr | None:
    """Return 300 where a statement fills places again and again: `table[step % 300] = x`.

    Not for a key that is put together, `table["step %d" % step] = x`.
    """
    match node:
        case ast.Assign(targets=[ast.Subscript(slice=key) as target]) if name_of(target) == name:
            for part in ast.walk(key):
                match part:
                    case ast.BinOp(left=left, op=ast.Mod(), right=right) if not _is_text(left):
                        return right
    return None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def _cuts(node: ast.AST, name: str, within: ast.AST) -> bool:
    """Say whether a statement keeps only the last of something: `kept = kept[-n:]`."""
    return _is_cut(node, name) and not is_guarded_by_argument(node, within)


def _is_cut(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Assign(targets=[target], value=ast.Subscript(slice=ast.Slice() as part)):
            bounded = part.lower is not None or part.upper is not None
            whole = not isinstance(target, ast.Subscript) or isinstance(target.slice, ast.Slice)
            return bounded and whole and name_of(target) == name
        case ast.Delete(targets=[ast.Subscript(slice=ast.Slice()) as target]):
            return name_of(target) == name
    return False


def compared_with(test: ast.expr, name: str) -> ast.expr | None:
    """Return what the length of something is compared with, None if it is not, or with zero."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and len(node.comparators) == 1:
            sides = (node.left, node.comparators[0])
            ordered = isinstance(node.ops[0], (*ORDERED, ast.Eq))
            if ordered and any(_is_length(side, name) for side in sides):
                other = sides[_is_length(sides[0], name)]
                return None if isinstance(other, ast.Constant) and not other.value else other
    return None


def _is_length(node: ast.expr, name: str) -> bool:
    """Say whether an expression is the length of `name`, or of the object that it is in."""
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id="self")]):
            return True
        case ast.Call(func=ast.Name(id="len"), args=[measured]):
            return name_of(measured) == name
    return False


def changes(branch: ast.If | ast.While, name: str) -> bool:
    """Say whether something is added to `name`, or removed from it, in a branch."""
    for part in (*branch.body, *branch.orelse):
        for node in ast.walk(part):
            match node:
                case ast.Call(func=ast.Attribute(value=changed, attr=method)):
                    if method in CHANGES and name_of(changed) == name:
                        return True
                    if node.args and method.startswith("heap") and name_of(node.args[0]) == name:
                        return True
                case ast.Call(func=ast.Name(id=function), args=[changed, *_]):
                    if function.startswith("heap") and name_of(changed) == name:
                        return True
                case ast.Delete(targets=targets) | ast.Assign(targets=targets):
                    if any(name_of(target) == name for target in targets):
                        return True
    return False
