"""By which names does the source know what grows? The holder's, the line's, and others it gets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from leakcheck.model import Holder, Place, Suspect
from leakcheck.runtime.attribution.assignments import parsed

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
REMOVES = ("pop", "popleft", "popitem", "remove", "discard", "clear")
TAKES = ("get", "get_nowait")  # out of a queue
ADDS = ("append", "appendleft", "add", "extend", "insert", "push", "put", "setdefault", "update")
CHANGES = (*ADDS, *REMOVES)
_STACKS = ("stack", "cat", "concat", "hstack", "vstack")
JOINS = re.compile(r"cat|append|stack|pad|join|resize")


def names_of(suspect: Suspect, place: Place) -> Iterator[tuple[str, ast.AST]]:
    """Yield what a place of growth may call what grows, with where to look for the name."""
    tree = parsed(place.path)
    for name, within in _own_names(suspect, place, tree):
        yield name, within
        yield from ((alias, tree) for alias in _aliases(name, tree))
        kind = ast.Attribute if suspect.holder.is_attribute else ast.Name
        yield from _local_names(name, within, kind, inner=is_inner(suspect))


def owners_of(suspect: Suspect, tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names of the root and of the objects between it and the attribute that grows.

    `memory = Memory()` empties `memory.states`. With where to look for each: a local is one of the
    function that runs.
    """
    held = suspect.trace
    if held is None or suspect.holder.kind != "attribute":
        return
    start = suspect.holder.start
    if start.named:
        running = (each for each in functions_in(tree) if each.name == start.function)
        scopes: list[ast.AST] = [*running] or [tree]
        yield from ((start.name, within) for within in scopes)
    grows = next((i for i, link in enumerate(held.links) if link.suspect), len(held.links))
    edges = [link.edge for link in held.links[: max(0, grows - 1)]]
    yield from ((edge[1:], tree) for edge in edges if edge.startswith("."))


@lru_cache(maxsize=16)
def functions_in(tree: ast.AST) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
    """Return the functions of a tree: each branch asks for them, and a file may have hundreds."""
    return tuple(node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))


def is_inner(suspect: Suspect) -> bool:
    """Say whether what grows is an element of what the holder is named after: a list a class."""
    links = suspect.trace.links if suspect.trace else ()
    grows = next((i for i, link in enumerate(links) if link.suspect), len(links) - 1)
    return any(link.edge.startswith("[") for link in links[: max(0, grows)])


def _local_names(
    name: str, within: ast.AST, kind: type[ast.expr], *, inner: bool
) -> Iterator[tuple[str, ast.AST]]:
    """Yield what functions call `name` themselves, or one of its elements if that is what grows.

    `rows = self.rows`, `getattr(self, where)`, or `kept = rows` where variables are its `kind` of
    name; elements in `recent = self.by_class[key]`, `for recent in self.by_class.values():`.
    """
    for function in _scopes(within):
        for node in ast.walk(function):
            for local, value in _bound_by(node):
                element = _is_element(value, name)
                whole = _is_attribute(value, name) if kind is ast.Attribute else False
                whole |= isinstance(value, ast.Name) and kind is ast.Name and value.id == name
                if (element and inner) or (whole and not inner):
                    yield local, function
            match node:
                case ast.For(target=target, iter=ast.Call(func=ast.Attribute(value=held))):
                    if inner and name_of(held) == name:
                        last = target.elts[-1] if isinstance(target, ast.Tuple) else target
                        yield name_of(last), function


def _bound_by(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield which variables a node binds to what: also `kept, most = self.kept, self.most`."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            pairs = list(zip(targets, values, strict=False))
        case ast.Assign(targets=targets, value=value):
            pairs = [(target, value) for target in targets]
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            pairs = [(target, value)]
        case ast.NamedExpr(target=target, value=value):
            pairs = [(target, value)]
    for bound, given in pairs:
        if isinstance(bound, ast.Name) and ast.unparse(given) != bound.id:
            yield bound.id, given


def _is_attribute(value: ast.expr, name: str) -> bool:
    """Say whether an expression is the attribute `name` of something, or may be."""
    match value:
        case ast.Attribute(attr=attribute):
            return attribute == name
        case ast.Call(func=ast.Name(id="getattr"), args=[_, which, *_]):
            return not isinstance(which, ast.Constant) or which.value == name
    return False


def _scopes(within: ast.AST) -> Iterator[ast.AST]:
    """Yield the functions, and what a file does outside of them as one."""
    if isinstance(within, ast.Module):
        kinds = (*FUNCTIONS, ast.ClassDef)
        yield ast.Module([node for node in within.body if not isinstance(node, kinds)], [])
    yield from (node for node in ast.walk(within) if isinstance(node, FUNCTIONS))


def _is_element(value: ast.expr, name: str) -> bool:
    match value:
        case ast.Subscript(value=held, slice=key):
            return name_of(held) == name and not isinstance(key, ast.Slice)
        case ast.Call(func=ast.Attribute(value=held, attr="get" | "setdefault")):
            return name_of(held) == name
    return False


def _own_names(suspect: Suspect, place: Place, tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Yield the name of the holder, and of what the line changes.

    `recent = self.by_class.setdefault(key, []); recent.append(x)` is limited by `len(recent)`.
    """
    named = suspect.holder.named
    held = named.name
    if held:
        yield held, _of_class(tree, named.owner)
    if held and place != suspect.locations[0]:  # only the line that adds knows it by another name
        return
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    within = [node for node in functions if is_around(node, place.line)]
    changed = [(node, name_of(node)) for node in _changed_at(place.line, tree, held)]
    if any(name == held for _, name in changed):
        return
    for node, name in changed:
        if name:
            yield name, within[-1] if isinstance(node, ast.Name) and held and within else tree


def _of_class(tree: ast.Module, owner: str) -> ast.Module:
    """Return the tree without the classes that have nothing to do with `owner`, if it has that."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    if owner not in classes:
        return tree
    related, found = [owner], set[str]()
    while related:
        name = related.pop()
        found.add(name)
        bases = {name_of(base) for base in classes[name].bases}
        related += (bases & classes.keys()) - found
    others = [node for name, node in classes.items() if name not in found]
    return ast.Module([node for node in tree.body if node not in others], [])


def _changed_at(line: int, tree: ast.Module, held: str) -> Iterator[ast.expr]:
    """Yield what a line changes; without a holder, not what it makes anew: that is no container."""
    for node in ast.walk(tree):
        if getattr(node, "lineno", 0) == line:
            match node:
                case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in CHANGES:
                    yield value
                case ast.Assign(targets=targets, value=value):
                    yield from (one for one in targets if held or _adds_to(one, value))


def _adds_to(target: ast.expr, value: ast.expr) -> bool:
    """Say whether an assignment adds to what there is: `rows[i] = x`, `bank = cat([bank, x])`."""
    read = {ast.unparse(node) for node in ast.walk(value) if isinstance(node, ast.expr)}
    return is_item(target) or ast.unparse(target) in read


def is_stacked(place: Place, holder: Holder) -> bool:
    """Say whether the file of a place makes one tensor of what is held: numbers would not do."""
    name = holder.named.name
    for node in ast.walk(parsed(place.path)) if name else ():
        if isinstance(node, ast.Call) and name_of(node.func) in _STACKS and node.args:
            inside = ast.walk(node.args[0])
            if any(name_of(part) == name for part in inside if isinstance(part, ast.expr)):
                return True
    return False


def joins_itself(place: Place) -> bool:
    """Say whether a line joins more to what there is: `self.keys = torch.cat([self.keys, key])`."""
    for node in ast.walk(parsed(place.path)):
        if getattr(node, "lineno", 0) == place.line:
            match node:
                case ast.Assign(targets=[target], value=ast.Call() as call):
                    if JOINS.search(name_of(call.func)) and _adds_to(target, call):
                        return True
    return False


def handed_to(call: ast.Call, name: str, tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield the functions and classes of the file that a call hands `name`, and its name there."""
    at = [i for i, arg in enumerate(call.args) if not is_item(arg) and name_of(arg) == name]
    called = name_of(call.func) if at else ""
    for node in _definitions(tree).get(called, ()) if called else ():
        parameters = _parameters(node)
        yield from ((node, parameters[i]) for i in at if i < len(parameters))


@lru_cache(maxsize=16)
def _definitions(tree: ast.Module) -> dict[str, list[ast.AST]]:
    """Return functions and classes by name: a walk for each call took seconds in 10,000 lines."""
    found: dict[str, list[ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            found.setdefault(node.name, []).append(node)
    return found


def _parameters(called: ast.AST) -> list[str]:
    made_by = getattr(called, "body", []) if isinstance(called, ast.ClassDef) else [called]
    for node in made_by:
        if isinstance(node, FUNCTIONS) and (node is called or node.name == "__init__"):
            names = [each.arg for each in node.args.args]
            return names[names[:1] in (["self"], ["cls"]) :]
    return []


def _aliases(name: str, tree: ast.Module) -> Iterator[str]:
    """Yield the attributes in which objects keep `name` that are handed it when they are made.

    `Writer(log.rows)` with `self.pending = rows` in its `__init__`.
    """
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            for function, parameter in handed_to(call, name, tree):
                for node in ast.walk(function):
                    match node:
                        case ast.Assign(
                            targets=[ast.Attribute(attr=attribute)], value=ast.Name(id=value)
                        ) if value == parameter and attribute != name:
                            yield attribute


def name_of(node: ast.expr) -> str:
    """Return the last part of a name, whatever it is indexed by; "" for another expression."""
    if isinstance(node, ast.Subscript):
        node = node.value
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=ast.Name(id="getattr"), args=[owner, *_]):
            return f"getattr({ast.unparse(owner)})"  # one of its attributes
    return ""


def is_item(node: ast.expr) -> bool:
    """Say whether an expression is one element or slice of something."""
    return isinstance(node, ast.Subscript)


def is_length(node: ast.expr, name: str) -> bool:
    """Say whether an expression is the length of `name`, or of the object that it is in."""
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id="self")]):
            return True
        case ast.Call(func=ast.Name(id="len"), args=[measured]):
            return name_of(measured) == name
        case ast.Call(func=ast.Attribute(value=measured, attr="qsize" | "__len__"), args=[]):
            return name_of(measured) == name
    return False


def is_around(node: ast.AST, line: int) -> bool:
    """Say whether a line belongs to a statement, or to what handles an exception."""
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    return isinstance(node, (ast.stmt, ast.ExceptHandler)) and first <= line <= last
