"""Does the program itself limit what grows? `if len(heap) < 300: heap.append(x)`, by its source.

A buffer that the program cuts back by hand looks like a leak until it is full for the first time.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence, Set

from leakcheck.model import Place, Suspect
from leakcheck.runtime.attribution.assignments import parsed
from leakcheck.runtime.attribution.cuts import age_out, cuts, divisor
from leakcheck.runtime.attribution.emptying import (
    ORDERED,
    called_in,
    compares_sizes,
    empties,
    removes_from,
    replaced_in,
)
from leakcheck.runtime.attribution.library import library_classes, shown
from leakcheck.runtime.attribution.measured import (
    goes_up,
    measures_argument,
)
from leakcheck.runtime.attribution.names import (
    ADDS,
    CHANGES,
    FUNCTIONS,
    TAKES,
    handed_to,
    is_around,
    is_inner,
    is_length,
    joins_itself,
    name_of,
    names_of,
    owners_of,
)
from leakcheck.runtime.attribution.predicates import branches_in
from leakcheck.runtime.attribution.rooms import room
from leakcheck.runtime.attribution.uncalled import uncalled_lines

LIMITED_AT = "grows, limited at"


def limited_by_program(suspects: Sequence[Suspect]) -> str:
    """Say which limits the program sets to everything that grows; "" if something has none."""
    places = [limiting_place(suspect) for suspect in suspects]
    told = sorted({f"{each.path}:{each.line} ({each.code})" for each in places if each is not None})
    if not told or None in places:
        return ""
    names = (one.what if one.holder.kind == "outside" else str(one.holder) for one in suspects)
    return f"{', '.join(names)} {LIMITED_AT} {', '.join(told)}"


def without_limit(suspects: tuple[Suspect, ...]) -> tuple[Suspect, ...]:
    """Return the suspects that the program does not limit; all of them if it limits all."""
    return tuple(one for one in suspects if limiting_place(one) is None) or suspects


def limiting_place(suspect: Suspect) -> Place | None:
    """Return where the program cuts back what grows, or adds to it only up to a length."""
    for place in suspect.locations:
        tree, never = parsed(place.path), uncalled_lines(place.path)
        found = [
            _limit_in(within, name, tree, place.line, never)
            or (_item_cut_in(within, name) if is_inner(suspect) else None)
            for name, within in names_of(suspect, place)
        ]
        if _keeps_its_history(suspect):
            found = [node for node in found if not isinstance(node, ast.Assign)]
        replaced = (replaced_in(within, name) for name, within in owners_of(suspect, tree))
        for node in (*found, *replaced):
            if node is not None:
                return _told(node, place.path)
    if any(map(joins_itself, suspect.locations)):
        return None  # a frame or an array, of a new object each time: no buffer of a library's
    for path, kind, name in library_classes(suspect):
        if (node := _limit_in(kind, name)) is not None:
            return _told(node, shown(path))
    return None


def _keeps_its_history(suspect: Suspect) -> bool:
    """Say whether one tensor keeps the graph it was made by: what is cut off it stays in that."""
    edges = [link.edge for link in suspect.trace.links] if suspect.trace else []
    in_container = any(edge.startswith("[") for edge in edges)
    return suspect.kind == "graph" and suspect.what.startswith("Tensor ") and not in_container


def _told(node: ast.AST, path: str) -> Place:
    code = ast.unparse(node.test if isinstance(node, (ast.If, ast.While)) else node)
    code = f"[{code}]" if isinstance(node, ast.Slice) else code
    return Place(path, node.lineno, code)  # type: ignore[attr-defined]


def _limit_in(
    within: ast.AST,
    name: str,
    tree: ast.Module | None = None,
    line: int = 0,
    never: Set[int] = frozenset(),
) -> ast.AST | None:
    """Return what limits `name`; with `tree` also in the functions there that it is handed to.

    `line`: where it is added to, 0 if not known; `never`: lines that nobody calls.
    """
    for node in branches_in(within):
        if getattr(node, "lineno", 0) in never:
            continue
        if isinstance(node, (ast.If, ast.While)):
            if limits(node, name, within) or turns_back(node, name, line, tree or within):
                return node
            if isinstance(node, ast.If) and empties(node, name, within, line):
                return node
        elif (
            cuts(node, name, within)
            or divisor(node, name)
            or age_out(node, name, within)
            or room(node, name, within)
        ):
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
        changing = changes(branch, name) or _calls_what_changes(branch, name, within)
        return changing and not goes_up(limit, within)
    if (limit := compared_beside(branch, name)) is not None:
        return not goes_up(limit, within)
    # a budget of bytes, or the length of what is kept beside it
    beside = removes_from(branch, name) and compares_sizes(branch.test)
    return beside and not measures_argument(branch, within)


def _calls_what_changes(branch: ast.If | ast.While, name: str, within: ast.AST) -> bool:
    """Say whether a branch calls a function that removes, or nobody else calls what adds.

    `if len(log.rows) < n: log.add(x)`; not `while len(rows) < n: add()` before a loop that adds.
    """
    for each in called_in((*branch.body, *branch.orelse), name, within):
        always: list[ast.stmt] = [
            part for part in each.body if isinstance(part, (ast.Expr, ast.Delete))
        ]
        if removes_from(ast.If(branch.test, always, []), name):
            return True
    part = branch.body if _is_short(branch.test, name) else []
    part = branch.orelse if _is_short(branch.test, name, otherwise=True) else part
    adding = [each for each in called_in(part, name, within) if name in _added(each.body)]
    return any(_calls_of(each.name, part) == _calls_of(each.name, [within]) for each in adding)


def _is_short(test: ast.expr, name: str, *, otherwise: bool = False) -> bool:
    """Say whether a condition says that the length of `name` is below a limit; or its opposite."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _is_short(inner, name, otherwise=not otherwise)
        case ast.BoolOp(op=sign, values=parts):
            known = isinstance(sign, ast.Or if otherwise else ast.And)
            return known and any(_is_short(part, name, otherwise=otherwise) for part in parts)
        case ast.Compare(left=left, ops=[sign], comparators=[right]):
            signs = ((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), ast.Eq if otherwise else ast.NotEq)
            small, large, other = signs if not otherwise else (signs[1], signs[0], signs[2])
            mirrored = is_length(right, name) and isinstance(sign, (*large, other))
            return (is_length(left, name) and isinstance(sign, (*small, other))) or mirrored
    return False


def _calls_of(function: str, within: Sequence[ast.AST]) -> int:
    nodes = (node for part in within for node in ast.walk(part) if isinstance(node, ast.Call))
    return sum(name_of(node.func) == function for node in nodes)


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
    return small if is_length(large, name) or _is_beside(large, last, line, within) else None


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


def compared_with(test: ast.expr, name: str) -> ast.expr | None:
    """Return what the length of something is compared with, None if it is not, or with zero."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and len(node.comparators) == 1:
            sides = (node.left, node.comparators[0])
            ordered = isinstance(node.ops[0], (*ORDERED, ast.Eq))
            if ordered and any(is_length(side, name) for side in sides):
                other = sides[is_length(sides[0], name)]
                return None if isinstance(other, ast.Constant) and not other.value else other
    return None


def compared_beside(branch: ast.If | ast.While, name: str) -> ast.expr | None:
    """Return what the length of something is compared with that a branch adds to as it does to it.

    `if len(self.states) < n: self.states.append(s); self.actions.append(a)` limits both.
    """
    match branch.test:
        case ast.Compare(left=length, ops=[ast.Lt() | ast.LtE() | ast.NotEq()], comparators=[most]):
            part = branch.body
        case ast.Compare(left=length, ops=[ast.Gt() | ast.GtE() | ast.Eq()], comparators=[most]):
            part = branch.orelse
        case _:
            return None
    match length:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name() | ast.Attribute() as measured]):
            adds = _added(part)
            return most if {name, name_of(measured)} <= adds else None
    return None


def _added(statements: Sequence[ast.stmt]) -> set[str]:
    """Return the names of what statements add to."""
    nodes = (node for part in statements for node in ast.walk(part))
    return {
        name_of(node.func.value)
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ADDS
    }


def changes(branch: ast.If | ast.While, name: str) -> bool:
    """Say whether something is added to `name`, or removed from it, in a branch."""
    for part in (*branch.body, *branch.orelse):
        for node in ast.walk(part):
            match node:
                case ast.Call(func=ast.Attribute(value=changed, attr=method), args=given):
                    takes = method in TAKES and not given  # out of a queue
                    if (takes or method in CHANGES) and name_of(changed) == name:
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
