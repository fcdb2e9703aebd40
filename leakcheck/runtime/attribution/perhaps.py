"""Might the program empty what grows, in a way that no length or epoch tells of? By its source.

`logs = {"loss": []}` at a log interval, `flush(rows)`, `self.__init__()`, `for v in d.values():
v.clear()`: until it was seen once, it is a leak or is not. Where no statement but the one that adds
could take anything away, no wait is needed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

from leakcheck.model import Place, Suspect
from leakcheck.runtime.attribution.assignments import parsed
from leakcheck.runtime.attribution.names import (
    FUNCTIONS,
    LOOPS,
    REMOVES,
    functions_in,
    handed_to,
    is_around,
    is_item,
    name_of,
    names_of,
    owners_of,
)
from leakcheck.runtime.attribution.uncalled import uncalled_lines

# what these assign they make, and once
_MAKERS = re.compile(r"__\w+__$|.*(setup|build|fit|run|main|prepare|init|configure|create|make)")
_BRANCHES = (ast.If, ast.ExceptHandler, ast.match_case)
_OF_ALL = ("__init__", "update")  # `self.__init__()`, `vars(self).update(x=[])`


def emptied_at(suspects: Sequence[Suspect]) -> Place | None:
    """Return a statement that might empty what grows, if each has one; a graph is not to wait."""
    found = [_emptied_at(suspect) for suspect in suspects]
    return found[0] if found and None not in found else None


def _emptied_at(suspect: Suspect) -> Place | None:
    if suspect.kind == "graph" or not suspect.holder or not suspect.locations:
        return None
    adds = suspect.locations[0].line
    for place in suspect.locations:
        tree = parsed(place.path)
        owners = list(owners_of(suspect, tree))
        names = {name for name, _ in names_of(suspect, place)}
        names |= {name for name, within in owners if within is tree}
        of_object = suspect.holder.kind == "attribute"
        scopes = [(tree, names), *((within, {name}) for name, within in owners if within != tree)]
        for within, known in scopes:
            wanted = known - {"self", ""}
            never = uncalled_lines(place.path)
            found = _emptying_in(within, wanted, adds, never, of_object=of_object)
            if found is not None:
                return Place(place.path, found.lineno, ast.unparse(found).partition("\n")[0])
    return None


@dataclass(frozen=True, slots=True)
class _Again:
    """A statement that may run again, with the function and the loop it is in."""

    node: ast.stmt
    function: ast.FunctionDef | ast.AsyncFunctionDef | None
    loop: ast.stmt | None
    conditional: bool = False  # inside the loop
    missing: frozenset[str] = frozenset()  # names that hold nothing here, by a condition around it

    def replaces(self, adds: int) -> bool:
        """Say whether what it assigns may be full by then: not made here, nor on every step."""
        if self.loop is not None:
            loops = (part for part in ast.walk(self.loop) if isinstance(part, LOOPS))
            return self.conditional or any(part is not self.loop for part in loops)
        function = self.function
        return (
            function is not None
            and not is_around(function, adds)
            and _MAKERS.match(function.name) is None
        )


def _run_again(tree: ast.AST) -> Iterator[_Again]:
    function = tree if isinstance(tree, FUNCTIONS) else None
    around: list[tuple[ast.AST, _Again]] = [(tree, _Again(ast.Pass(), function, None))]
    while around:
        node, at = around.pop()
        for part in ast.iter_child_nodes(node):
            if isinstance(part, FUNCTIONS):
                around.append((part, _Again(part, part, None)))
                continue
            inner = replace(at, conditional=at.conditional or isinstance(node, _BRANCHES))
            if isinstance(node, ast.If):
                missing = _missing(node.test, otherwise=part in node.orelse)
                inner = replace(inner, missing=at.missing | missing)
            if isinstance(node, LOOPS):
                inner = replace(at, loop=node, conditional=False, missing=frozenset())
            if isinstance(part, ast.stmt):
                inner = replace(inner, node=part)
                if inner.loop is not None or inner.function is not None:
                    yield inner
            around.append((part, inner))


def _missing(test: ast.expr, *, otherwise: bool) -> frozenset[str]:
    """Return the names that a condition finds empty, unset or without a key.

    `if not state:`, `if key not in state:`, `if self.rows is None:`; `otherwise`: in its `else:`.
    """
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _missing(inner, otherwise=not otherwise)
        case ast.BoolOp(op=ast.And(), values=parts) if not otherwise:
            return frozenset().union(*(_missing(part, otherwise=False) for part in parts))
        case ast.Compare(ops=[ast.In() | ast.NotIn() as asks], comparators=[kept]):
            return _asked(kept) if isinstance(asks, ast.In) == otherwise else frozenset()
        case ast.Compare(left=kept, ops=[asks], comparators=[ast.Constant(value=nothing)]):
            found = isinstance(asks, (ast.Is, ast.Eq)) != otherwise
            return _asked(kept) if found and not nothing else frozenset()
    return _asked(test) if otherwise else frozenset()


def _is_missing(target: ast.expr, missing: frozenset[str]) -> bool:
    """Say whether a target, or the object that it is an attribute of, was found to lack something.

    `if not hasattr(self, "rng"): self.rng, self.rows = make(), []` makes both once.
    """
    owner = name_of(target.value) if isinstance(target, ast.Attribute) else ""
    return not missing.isdisjoint({name_of(target), owner} - {""})


def _asked(node: ast.expr) -> frozenset[str]:
    """Return what an expression asks for: `len(x)`, `x.get(key)` and `hasattr(self, "x")` for x."""
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[measured]):
            return frozenset({name_of(measured)})
        case ast.Call(func=ast.Attribute(value=owner, attr="get")):
            return frozenset({name_of(owner)})
        case ast.Call(func=ast.Name(id="hasattr"), args=[owner, ast.Constant(value=str(name))]):
            return frozenset({name, name_of(owner)})
    return frozenset({name_of(node)} - {""})


def _emptying_in(
    tree: ast.AST,
    names: set[str],
    adds: int,
    never: Set[int] = frozenset(),
    *,
    of_object: bool = False,
) -> ast.stmt | None:
    """Return the first statement that may take something away from one of `names`.

    `never`: lines that nobody calls.
    """
    for again in _run_again(tree) if names else ():
        ways = _ways_to_empty(again, tree, names, adds, of_object=of_object)
        if again.node.lineno not in {adds, *never} and any(ways):
            return again.node
    return None


def _ways_to_empty(
    again: _Again, tree: ast.AST, names: set[str], adds: int, *, of_object: bool
) -> Iterator[bool]:
    node = again.node
    match node:
        case ast.Assign(targets=targets, value=value):
            replaces, in_loop = again.replaces(adds), again.loop is not None
            made_here = any(_is_missing(each, again.missing) for each in targets)
            pairs = [] if made_here else list(_pairs(targets, value))
            parts = [(each, given) for each, given in pairs if replaces or is_item(each)]
            yield any(_sets(each, given, names, in_loop) for each, given in parts)
        case ast.Delete(targets=targets):
            yield any(name_of(each) in names for each in targets)
        case ast.For(target=target, iter=gone_over):
            if _mentions(gone_over, names, of_object=of_object):
                inner = {name_of(part) for part in getattr(target, "elts", [target])}
                yield any(_takes_away(each, inner, drains=True) for each in ast.walk(node))
    match node:
        case ast.Expr(value=ast.Call() as call) | ast.Assign(value=ast.Call() as call):
            yield _calls_what_empties(call, names, tree, adds, of_object=of_object)
    if isinstance(node, (ast.If, ast.While)) and not is_around(node, adds):
        yield any(_takes_away(each, names, drains=True) for each in ast.walk(node))
    elif isinstance(node, ast.Expr):
        yield _takes_away(node.value, names, drains=False)


def _pairs(targets: list[ast.expr], value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what is given to each: `front, back = [], front` empties one of them."""
    for target in targets:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            yield from zip(target.elts, value.elts, strict=False)
        else:
            yield target, value


def _sets(target: ast.expr, value: ast.expr, names: set[str], in_loop: bool) -> bool:
    """Say whether an assignment puts something else in the place of what grows.

    A local that is set outside of loops is made there; an element only if it is emptied.
    """
    parts = getattr(target, "elts", [target])
    set_here = [part for part in parts if name_of(part) in names]
    if is_item(target):
        element = not isinstance(target.slice, ast.Slice)  # type: ignore[attr-defined]
        return bool(set_here) and (not element or _is_empty(value) or _is_place(target))
    reads_itself = _mentions(value, names) and not isinstance(value, (ast.DictComp, ast.ListComp))
    plain = all(isinstance(part, ast.Name) for part in set_here)
    return bool(set_here) and not reads_itself and (in_loop or not plain)


def _is_place(target: ast.expr) -> bool:
    """Say whether a place is written that is counted: `rows[self.at] = x` overwrites."""
    return isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Attribute)


def _is_empty(value: ast.expr) -> bool:
    match value:
        case ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Constant(value=None):
            return True
        case ast.Call(args=[], keywords=[]):
            return True
    return False


def _mentions(node: ast.AST, names: set[str], *, of_object: bool = False) -> bool:
    for part in ast.walk(node):
        named = name_of(part) if isinstance(part, (ast.Name, ast.Attribute)) else ""
        if named in names or (of_object and named in ("vars", "__dict__")):
            return True
    return False


def _takes_away(node: ast.AST, names: set[str], *, drains: bool) -> bool:
    """Say whether an expression removes elements: all of them, or as it `drains` one by one."""
    match node:
        case ast.Call(func=ast.Attribute(value=held, attr=method)):
            removes = method == "clear" or (drains and method in REMOVES)
            return removes and name_of(held) in names
        case ast.Delete(targets=targets):
            return any(name_of(each) in names for each in targets)
        case ast.Assign(targets=[ast.Subscript(value=held, slice=ast.Slice())]):
            return name_of(held) in names
    return False


def _calls_what_empties(
    call: ast.Call, names: set[str], tree: ast.AST, adds: int, *, of_object: bool
) -> bool:
    """Say whether a call hands what grows to what empties it, or sets it by its name."""
    told = {part.value for part in call.args if isinstance(part, ast.Constant)}
    told |= {part.arg for part in call.keywords}
    named = name_of(call.func)
    owner_named = isinstance(call.func, ast.Attribute) and name_of(call.func.value) in names
    given = [part.value for part in call.keywords]
    anew = owner_named and bool(given) and all(map(_is_empty, given))
    if named in ("setattr", *_OF_ALL) and (told & names or anew):
        return True
    match call.func:
        case ast.Attribute(value=owner, attr=method) if method in _OF_ALL:
            all_of_it = method == "__init__" and name_of(owner) in {"self", *names}
            return all_of_it or (of_object and _mentions(owner, set(), of_object=True))
        case ast.Attribute(value=owner, attr=method) if name_of(owner) in names:
            own = [each for each in functions_in(tree) if each.name == method]
            if any(_takes_away(part, {"self"}, drains=True) for f in own for part in ast.walk(f)):
                return True
    module = tree if isinstance(tree, ast.Module) else ast.Module([], [])
    return any(
        _emptying_in(function, {parameter}, adds) is not None
        for name in names
        for function, parameter in handed_to(call, name, module)
    )
