"""What does the program call the place that holds what grows, and in which scope?

A place is a name in a scope: a variable of one function or module, or an attribute of objects of
some classes. Another function's variable of that name, and another class's attribute, is another
place. From a place it spreads: `rows = self.rows`, `trim(rows)` and `Writer(rows)` give it more
names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from leakcheck.source.owners import Makers, is_another, kinds_of, makers_of_variable, may_be
from leakcheck.source.tree import (
    FUNCTIONS,
    File,
    Function,
    Program,
    is_property,
    name_of,
    pairs_of,
    parameters,
)
from leakcheck.source.words import words

DEEPEST = 4  # names that a place gets from each other


@dataclass(frozen=True, slots=True)
class Held:
    """What is asked about: a name, bound to the live object that has it.

    `classes`: the names of the owner's class and its bases, if it is an attribute; `adds`: the
    lines that are seen to add, `inner`: to one of its elements; `owners`: names of the objects
    between a root and it, with the function of a local, as `("memory", "train")`.
    """

    kind: Literal["local", "global", "attribute", "unknown"]
    name: str = ""
    function: str = ""
    classes: tuple[str, ...] = ()
    path: str = ""
    adds: tuple[tuple[str, int], ...] = ()
    inner: bool = False
    owners: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """A name in a scope: of the file and the line of its function, 0 the module's.

    `path` is "" for an attribute, which any file may name; `classes` are those of its owner.
    `inner`: an element of it is what grows; `owner`: it is an object that has the place; `alias`: a
    name that was given it, so that to set that name anew takes nothing away; `makers`: the calls
    that its owner is made by, which other objects of the class are not.
    """

    kind: Literal["variable", "attribute"]
    name: str
    path: str = ""
    line: int = 0
    classes: tuple[str, ...] = ()
    inner: bool = False
    owner: bool = False
    alias: bool = False
    makers: Makers = None


@dataclass(frozen=True, slots=True, eq=False)
class Mention:
    """An expression that stands for a place; `item`: for one of its elements, which grows."""

    file: File
    node: ast.expr
    place: Place

    @property
    def whole(self) -> bool:
        """Whether it is all that holds what grows, and not the element that does."""
        return self.place.inner or self.place.owner


def mentions_of(program: Program, held: Held) -> tuple[Mention, ...]:
    """Return every expression that stands for what is held, by whichever of its names."""
    waiting = [(place, 0) for place in _seeds(program, held)]
    places: dict[Place, None] = {}
    found: dict[ast.expr, Mention] = {}
    while waiting:
        place, depth = waiting.pop(0)
        if place in places or replace(place, alias=False) in places:
            continue
        places[place] = None
        for mention in _mentions(program, place):
            for each in (mention, *_elements(mention)):
                found.setdefault(each.node, each)
                if depth < DEEPEST:
                    more = (replace(name, alias=True) for name in _spread(program, each))
                    waiting += [(name, depth + 1) for name in more]
    return tuple(found.values())


def _seeds(program: Program, held: Held) -> Iterator[Place]:
    """Yield the holder's own name, what the adding line changes under another, and its owners."""
    own = list(_own(program, held))
    changed = [each for at in held.adds for each in changed_at(program.file(at[0]), at[1])]
    if held.name and not any(name_of(node) == held.name for _, node, _ in changed):
        changed = changed[:1]  # of several on one line, which is it?
    elif held.name:
        changed = [each for each in changed if name_of(each[1]) == held.name]
    inner = held.inner or any(item for _, node, item in changed if name_of(node) == held.name)
    yield from (replace(place, inner=inner) for place in own)
    for file, node, item in changed:
        if name_of(node) != held.name:
            yield from (replace(each, inner=item) for each in place_at(program, file, node, held))
    yield from (place for owner in held.owners for place in _owner(program, held, owner))


def _own(program: Program, held: Held) -> Iterator[Place]:
    if held.kind == "attribute":
        makers = makers_of_owner(program, held)
        yield Place("attribute", held.name, classes=held.classes, makers=makers)
    elif held.kind != "unknown":
        yield from _variables(program, held, held.name, held.function)


def makers_of_owner(program: Program, held: Held) -> Makers:
    """Return the calls that make the object with the attribute, if a variable has it."""
    if len(held.owners) != 1 or held.owners[0][0].startswith("."):
        return None
    name, function = held.owners[0]
    path = held.path or next((path for path, _ in held.adds), "")
    file = program.file(path)
    scopes = file.functions(function) if function else [file.tree]
    return makers_of_variable(program, file, name, scopes[0]) if len(scopes) == 1 else None


def _variables(program: Program, held: Held, name: str, function: str) -> Iterator[Place]:
    paths = (held.path,) if held.path else tuple(dict.fromkeys(path for path, _ in held.adds))
    for path in paths:
        file = program.file(path)
        if not function:
            yield Place("variable", name, path)
        yield from (Place("variable", name, path, each.lineno) for each in file.functions(function))


def _owner(program: Program, held: Held, owner: tuple[str, str]) -> Iterator[Place]:
    name, function = owner
    if name.startswith("."):
        yield Place("attribute", name[1:], owner=True)
    else:
        places = _variables(program, held, name, function)
        yield from (replace(each, owner=True) for each in places)


def changed_at(file: File, line: int) -> Iterator[tuple[File, ast.expr, bool]]:
    """Yield what a line adds to, and whether it is to an element of it: `rows[key].append(x)`."""
    for node in file.at(line):
        match node:
            case ast.Call(func=ast.Attribute(value=changed, attr=method)):
                known = words("methods", "add") | words("methods", "executes")
                if method in known:
                    yield from _named_in(file, changed)
            case ast.Call(func=called, args=[changed, *_]):
                if name_of(called) in words("functions", "heap_add"):
                    yield from _named_in(file, changed)
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Subscript):
                        yield from _named_in(file, target.value)
                    elif isinstance(node, ast.AugAssign) or _reads_itself(target, node.value):
                        yield from _named_in(file, target)


def _named_in(file: File, node: ast.expr) -> Iterator[tuple[File, ast.expr, bool]]:
    item = False
    while True:
        match node:
            case ast.Subscript(value=inner):
                node, item = inner, True
            case ast.Call(func=ast.Attribute(value=inner, attr=method)):
                if method not in words("methods", "lookup"):
                    return
                node, item = inner, True
            case ast.Name() | ast.Attribute():
                yield file, node, item
                return
            case _:
                return


def _reads_itself(target: ast.expr, value: ast.AST | None) -> bool:
    told = ast.unparse(target)
    nodes = (node for node in ast.walk(value) if isinstance(node, ast.expr)) if value else ()
    return any(ast.unparse(node) == told for node in nodes)


def place_at(program: Program, file: File, node: ast.AST, held: Held | None = None) -> list[Place]:
    """Return the place that an expression stands for, none if it is not a plain name."""
    match node:
        case ast.Name():
            scope = file.scope(node)
            line = scope.lineno if isinstance(scope, FUNCTIONS) else 0
            return [Place("variable", node.id, file.path, line)]
        case ast.Attribute(value=owner, attr=name):
            kinds = kinds_of(program, file, owner)
            known = tuple(dict.fromkeys(n for k in sorted(kinds or ()) for n in program.family(k)))
            return [Place("attribute", name, classes=known)]
    return []


def _mentions(program: Program, place: Place) -> Iterator[Mention]:
    for file in program.files(place.name):
        yield from (Mention(file, node, place) for node in _nodes(program, file, place))


def _nodes(program: Program, file: File, place: Place) -> Iterator[ast.expr]:
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
    if isinstance(scope, FUNCTIONS):
        return (file.path, scope.lineno) == (place.path, place.line)
    own = file.path == place.path or _is_imported(file, node, place)
    return scope is file.tree and not place.line and own


def _is_imported(file: File, node: ast.Name, place: Place) -> bool:
    told = file.imports.get(node.id, "").split(".")
    return told[-2:] == [_stem(place.path), place.name]


def _stem(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2].removesuffix(".py")


def _attributes(program: Program, file: File, place: Place) -> Iterator[ast.expr]:
    for node in file.named(place.name):
        match node:
            case ast.Attribute(value=owner):
                if _may_own(program, file, owner, place):
                    yield node
            case ast.Name() if isinstance(kind := file.scope(node), ast.ClassDef):
                if not place.classes or kind.name in place.classes:
                    yield node
    for call in file.calls("getattr"):
        match call.args:
            case [owner, which, *_] if _may_name(which, place.name):
                if _may_own(program, file, owner, place):
                    yield call


def _may_own(program: Program, file: File, owner: ast.expr, place: Place) -> bool:
    """Say whether an object may be the owner of a place: of its class, and not surely another."""
    of_class = may_be(kinds_of(program, file, owner), place.classes)
    return of_class and not is_another(program, file, owner, place.makers)


def _may_name(which: ast.expr, name: str) -> bool:
    return not isinstance(which, ast.Constant) or which.value == name


def _elements(mention: Mention) -> Iterator[Mention]:
    """Yield the element of a place that a mention is asked for: `rows[key]`, `rows.get(key)`."""
    node, file = mention.node, mention.file
    if not mention.place.inner:
        return
    inside = replace(mention.place, inner=False)
    match file.above.get(node):
        case ast.Subscript(value=held, slice=key) as item:
            if held is node and not isinstance(key, ast.Slice):
                yield Mention(file, item, inside)
        case ast.Attribute(attr=method) as asked if method in words("methods", "lookup"):
            call = file.above.get(asked)
            if isinstance(call, ast.Call) and call.func is asked:
                yield Mention(file, call, inside)


def _spread(program: Program, mention: Mention) -> Iterator[Place]:
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
    program: Program, file: File, above: ast.Call | ast.keyword, node: ast.expr, place: Place
) -> Iterator[Place]:
    """Yield the parameters that a call hands it to, of functions of the program's."""
    call = above if isinstance(above, ast.Call) else file.above[above]
    if not isinstance(call, ast.Call) or call.func is node:
        return
    for other, function, first in called_by(program, file, call):
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


def called_by(program: Program, file: File, call: ast.Call) -> Iterator[tuple[File, Function, int]]:
    """Yield the functions that a call may run, with how many of their parameters are bound.

    A class's is its `__init__`; of an unknown object's methods all of that name may be.
    """
    name = name_of(call.func)
    made = program.classes(name) if name else []
    for other, kind in made:
        inits = (each for each in kind.body if isinstance(each, FUNCTIONS))
        yield from ((other, each, 1) for each in inits if each.name == "__init__")
    if name and not made:
        for other, function in program.functions(name, file):
            yield other, function, int(isinstance(other.above.get(function), ast.ClassDef))


def _receivers(
    program: Program, file: File, asked: ast.Attribute, method: str, place: Place
) -> Iterator[Place]:
    """Yield what methods of a class of the program's call the object: `class Rows(list)`."""
    call = file.above.get(asked)
    if not isinstance(call, ast.Call) or call.func is not asked or hasattr(list, method):
        return
    if place.inner or hasattr(dict, method):
        return
    for other, function, bound in called_by(program, file, call):
        for name in parameters(function)[:bound]:
            yield Place("variable", name, other.path, function.lineno)


def _gone_over(program: Program, mention: Mention) -> Iterator[Place]:
    """Yield the variable of a loop over it: `for rows in kept.values():`, `for r in (a, kept):`."""
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
        case ast.For(target=target, iter=gone_over) if gone_over is over:
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
