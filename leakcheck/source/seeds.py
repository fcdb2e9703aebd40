"""By which names does a run know what grows? The holder's own, those of its owners, and the line's.

The line that was seen to add proves what it changes to be the place, under whichever name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from leakcheck.source.owners import Makers, makers_of_variable
from leakcheck.source.places import Held, Place, place_at
from leakcheck.source.tree import FUNCTIONS, File, ProgramTexts, name_of
from leakcheck.source.words import words


def seeds_of(program: ProgramTexts, held: Held) -> Iterator[Place]:
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
            for place in place_at(program, file, node):
                alias = held.kind != "unknown" and place.kind == "variable"
                yield replace(place, inner=item, alias=alias)
    yield from (place for owner in held.owners for place in _owner(program, held, owner))


def _own(program: ProgramTexts, held: Held) -> Iterator[Place]:
    if held.kind == "attribute":
        place = Place("attribute", held.name, classes=held.classes, homes=held.homes)
        yield replace(place, makers=makers_of_owner(program, held))
    elif held.kind != "unknown":
        of_cell = held.kind == "closure"
        for place in _variables(program, held, held.name, held.function):
            yield from _outside(program.file(place.path), place) if of_cell else (place,)


def _outside(file: File, place: Place) -> Iterator[Place]:
    """Yield the variable of the function around that one with a closure's cell has part in.

    What another function of the same cell does to it, is done to it.
    """
    inner = next((f for f in file.at(place.line) if isinstance(f, FUNCTIONS)), None)
    around = [inner, *file.around(inner)] if inner is not None else []
    functions = (each for each in around if isinstance(each, FUNCTIONS))
    scopes = [each for each in functions if place.name in file.bound(each)[0]]
    yield replace(place, line=scopes[0].lineno) if scopes else place


def makers_of_owner(program: ProgramTexts, held: Held) -> Makers:
    """Return the calls that make the object with the attribute, if a variable has it."""
    if len(held.owners) != 1 or held.owners[0][0].startswith("."):
        return None
    name, function = held.owners[0]
    path = held.path or next((path for path, _ in held.adds), "")
    file = program.file(path)
    scopes = file.functions(function) if function else [file.tree]
    return makers_of_variable(program, file, name, scopes[0]) if len(scopes) == 1 else None


def _variables(program: ProgramTexts, held: Held, name: str, function: str) -> Iterator[Place]:
    paths = (held.path,) if held.path else tuple(dict.fromkeys(path for path, _ in held.adds))
    for path in paths:
        file = program.file(path)
        if not function:
            yield Place("variable", name, path)
        yield from (Place("variable", name, path, each.lineno) for each in file.functions(function))


def _owner(program: ProgramTexts, held: Held, owner: tuple[str, str]) -> Iterator[Place]:
    name, function = owner  # or the class that has the attribute
    if name.startswith("."):
        classes = program.family(function) if function else ()
        yield Place("attribute", name[1:], classes=classes, owner=True)
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
