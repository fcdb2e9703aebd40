"""Every expression that stands for a place, by the names that it spreads to.

`rows = self.rows`, `trim(rows)`, `Writer(rows)` and `for rows in table.values()` give a place, or
an element of it, more names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from leakcheck.source.entry_names import is_another_entry
from leakcheck.source.owners import is_another, kinds_of, may_be, receiver_of
from leakcheck.source.places import Held, Place, place_at
from leakcheck.source.seeds import seeds_of
from leakcheck.source.tree import (
    COMPREHENSIONS,
    FUNCTIONS,
    File,
    ProgramTexts,
    is_property,
    pairs_of,
    parameters,
)
from leakcheck.source.words import words

DEEPEST = 4  # names that a place gets from each other


@dataclass(frozen=True, slots=True, eq=False)
class Mention:
    """An expression that stands for a place, or for its element that grows."""

    file: File
    node: ast.expr
    place: Place

    @property
    def whole(self) -> bool:
        """Whether it is all that holds what grows, and not the element that does."""
        return self.place.inner or self.place.owner


def mentions_of(program: ProgramTexts, held: Held) -> tuple[Mention, ...]:
    """Return every expression that stands for what is held, by whichever of its names."""
    waiting = [(place, 0) for place in seeds_of(program, held)]
    places: dict[Place, None] = {}
    found: dict[ast.expr, Mention] = {}
    while waiting:
        place, depth = waiting.pop(0)
        if place in places or replace(place, alias=False) in places:
            continue
        places[place] = None
        for mention in _mentions(program, place):
            for each in (mention, *_elements(mention, held.names)):
                found.setdefault(each.node, each)
                if depth < DEEPEST:
                    more = (replace(name, alias=True) for name in _spread(program, each))
                    waiting += [(name, depth + 1) for name in more]
    return tuple(found.values())


def _mentions(program: ProgramTexts, place: Place) -> Iterator[Mention]:
    for file in program.files(place.name, (place.path, *place.homes)):
        yield from (Mention(file, node, place) for node in _nodes(program, file, place))


def _nodes(program: ProgramTexts, file: File, place: Place) -> Iterator[ast.expr]:
    if place.kind == "attribute":
        yield from _attributes(program, file, place)
        return
    for node in file.named(place.name):
        match node:
            case ast.Name():
                if _is_of_scope(file, node, place):
                    yield node
            case ast.Attribute(value=ast.Name(id=module)) if not place.line:
                if file.imports.get(module, "").rpartition(".")[2] == _stem(place.path):
                    yield node


def _is_of_scope(file: File, node: ast.Name, place: Place) -> bool:
    scope = file.scope(node)
    if isinstance(scope, (*FUNCTIONS, *COMPREHENSIONS)):
        return (file.path, scope.lineno) == (place.path, place.line)
    own = file.path == place.path or _is_imported(file, node, place)
    return scope is file.tree and not place.line and own


def _is_imported(file: File, node: ast.Name, place: Place) -> bool:
    told = file.imports.get(node.id, "").split(".")
    return told[-2:] == [_stem(place.path), place.name]


def _stem(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2].removesuffix(".py")


def _attributes(program: ProgramTexts, file: File, place: Place) -> Iterator[ast.expr]:
    for node in file.named(place.name):
        match node:
            case ast.Attribute(value=owner):
                if may_own(program, file, owner, place):
                    yield node
            case ast.Name() if isinstance(kind := file.scope(node), ast.ClassDef):
                named = not place.classes or kind.name in place.classes
                if named and (not place.homes or file.path in place.homes):
                    yield node
    for call in file.calls("getattr"):
        match call.args:
            case [owner, which, *_] if _may_name(which, place.name):
                if may_own(program, file, owner, place):
                    yield call


def may_own(program: ProgramTexts, file: File, owner: ast.expr, place: Place) -> bool:
    """Say whether an object may be the owner of a place: of its class, and not surely another."""
    if place.homes and file.path not in place.homes and receiver_of(file, owner):
        return False  # of a class of the same name
    of_class = may_be(kinds_of(program, file, owner), place.classes)
    return of_class and not is_another(program, file, owner, place.makers)


def _may_name(which: ast.expr, name: str) -> bool:
    return not isinstance(which, ast.Constant) or which.value == name


def _elements(mention: Mention, names: frozenset[str]) -> Iterator[Mention]:
    """Yield the element of a place that a mention is asked for: `rows[key]`, `rows.get(key)`.

    Not one that is surely another than the one that grows, which has these names.
    """
    node, file = mention.node, mention.file
    if not mention.place.inner:
        return
    inside = replace(mention.place, inner=False)
    match file.above.get(node):
        case ast.Subscript(value=held, slice=key) as item:
            part = isinstance(key, ast.Slice)
            if held is node and not (part or is_another_entry(file, key, names)):
                yield Mention(file, item, inside)
        case ast.Attribute(attr=method) as asked if method in words("methods", "lookup"):
            match file.above.get(asked):
                case ast.Call(func=func, args=[key, *_]) as call if func is asked:
                    if not is_another_entry(file, key, names):
                        yield Mention(file, call, inside)


def _spread(program: ProgramTexts, mention: Mention) -> Iterator[Place]:
    """Yield the other places that an expression's value is given to."""
    file, node, place = mention.file, mention.node, mention.place
    if place.owner:
        return
    above = file.above.get(node)
    targets = [
        target
        for statement in (above, file.statement(node))
        for target, value in pairs_of(statement or file.tree)
        if value is node and not _is_same_name(target, node)
    ]
    for target in targets:
        yield from (replace(each, inner=place.inner) for each in place_at(program, file, target))
    match above:
        case ast.Call() | ast.keyword():
            yield from _handed(program, file, above, node, place)
        case ast.Attribute(attr=method):
            yield from _receivers(program, file, above, method, place)
        case ast.Return() if (function := file.function(node)) and is_property(function):
            kind = file.owner(function)
            if kind is not None:
                yield Place("attribute", function.name, classes=(kind.name,), inner=place.inner)
    yield from _gone_over(program, mention)


def _is_same_name(target: ast.expr, node: ast.expr) -> bool:
    return type(target) is type(node) and ast.unparse(target) == ast.unparse(node)


def _handed(
    program: ProgramTexts, file: File, above: ast.Call | ast.keyword, node: ast.expr, place: Place
) -> Iterator[Place]:
    """Yield the parameters that a call hands it to, of functions of the program's."""
    call = above if isinstance(above, ast.Call) else file.above[above]
    if not isinstance(call, ast.Call) or call.func is node:
        return
    for other, function, first in program.called_by(file, call):
        names = parameters(function)[first:]
        if isinstance(above, ast.keyword):
            given = [above.arg] if above.arg else []
        else:
            given = names[call.args.index(node) :][:1]
        yield from (
            Place("variable", name, other.path, function.lineno, inner=place.inner)
            for name in given
            if name
        )


def _receivers(
    program: ProgramTexts, file: File, asked: ast.Attribute, method: str, place: Place
) -> Iterator[Place]:
    """Yield what methods of a class of the program's call the object: `class Rows(list)`."""
    call = file.above.get(asked)
    if not isinstance(call, ast.Call) or call.func is not asked or hasattr(list, method):
        return
    if place.inner or hasattr(dict, method):
        return
    for other, function, bound in program.called_by(file, call):
        for name in parameters(function)[:bound]:
            yield Place("variable", name, other.path, function.lineno)


def _gone_over(program: ProgramTexts, mention: Mention) -> Iterator[Place]:
    """Yield the variable of a loop over it: `for rows in kept.values():`, `for r in (a, kept):`.

    Also of a comprehension: `[rows.clear() for rows in kept.values()]`.
    """
    file, node, place = mention.file, mention.node, mention.place
    over: ast.AST = node
    beside = isinstance(file.above.get(over), (ast.Tuple, ast.List))
    if beside:
        over = file.above[over]
    elif place.inner:
        match file.above.get(over):
            case ast.Attribute(attr=method) as asked if method in words("methods", "over"):
                over = file.above[asked]
        match file.above.get(over):
            case ast.Call(func=ast.Name(), args=[only]) as copied if only is over:
                over = copied
    match file.above.get(over):
        case (
            ast.For(target=target, iter=gone_over)
            | ast.comprehension(target=target, iter=gone_over)
        ) if gone_over is over:
            if beside or place.inner:
                last = target.elts[-1] if isinstance(target, ast.Tuple) else target
                inner = place.inner and beside
                yield from (replace(each, inner=inner) for each in place_at(program, file, last))


def is_policy(file: File, call: ast.Call) -> bool:
    """Say whether a parameter is called for what it does: `policy(rows)`, not `y = model(x)`."""
    if not isinstance(call.func, ast.Name) or not isinstance(file.above.get(call), ast.Expr):
        return False
    scope = file.scope(call.func)
    return isinstance(scope, FUNCTIONS) and call.func.id in parameters(scope)
