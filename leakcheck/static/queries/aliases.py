"""Which other names of a function hold a list's entries, so that emptying the list frees nothing?

`chunks = [images[i : i + n] for i in ...]` does, and so does `results` of
`for samples in results: for sample in samples: kept.append(sample)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakcheck.static.syntax import outline_walk

_MAKES_LISTS = ("list", "sorted", "gather")  # a loader or a generator holds none of what it gave
_COLLECTS = ("collect", "empty_cache", "malloc_trim")


def outlived(function: ast.AST) -> Iterator[tuple[ast.Name, str]]:
    """Yield the names that go on holding the entries of a list that is emptied, and the list."""
    names = [node for node in outline_walk(function) if isinstance(node, ast.Name)]
    for emptied in _emptied(function):
        for holder in holders(function, emptied.id):
            own = [name for name in names if name.id == holder.id]
            let_go = any(isinstance(name.ctx, ast.Del) for name in own)
            later = any(name.lineno >= emptied.lineno for name in own)
            if holder.lineno < emptied.lineno and not (let_go or later):
                yield holder, emptied.id


def _emptied(function: ast.AST) -> Iterator[ast.Name]:
    """Yield the names that are cleared, or deleted before memory is collected."""
    calls = [node for node in outline_walk(function) if isinstance(node, ast.Call)]
    for call in calls:
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Name() as name, attr="clear")):
                yield name
    methods = ((call, call.func) for call in calls if isinstance(call.func, ast.Attribute))
    last = max((call.lineno for call, method in methods if method.attr in _COLLECTS), default=0)
    for node in outline_walk(function):
        if isinstance(node, ast.Delete) and node.lineno < last:
            yield from (target for target in node.targets if isinstance(target, ast.Name))


def holders(function: ast.AST, name: str) -> Iterator[ast.Name]:
    """Yield the names, where they are bound, that hold entries of a list as well."""
    assigned = [node for node in outline_walk(function) if isinstance(node, ast.Assign)]
    sources = _sources(function, name)
    for node in assigned:
        match node.targets:
            case [ast.Name(id=bound) as target] if bound != name:
                if _slices(node.value, name) or (bound in sources and _makes_list(node.value)):
                    yield target


def _slices(value: ast.expr, name: str) -> bool:
    """Whether a list is made of slices of the other: each is a list with the same entries."""
    match value:
        case ast.ListComp(elt=ast.Subscript(value=ast.Name(id=whole), slice=ast.Slice())):
            return whole == name
    return False


def _makes_list(value: ast.expr) -> bool:
    match value:
        case ast.Await(value=inner):
            return _makes_list(inner)
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)):
            return called in _MAKES_LISTS
    return isinstance(value, (ast.List, ast.ListComp))


def _sources(function: ast.AST, name: str) -> set[str]:
    """Name what the loops go over whose own names are appended to the list."""
    entries: set[str] = set()
    for node in outline_walk(function):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=holder), attr="append"),
                args=[ast.Name(id=entry)],
            ) if holder == name:
                entries.add(entry)
    found, seen = set[str](), set[str]()
    while entries:
        entry = entries.pop()
        inner = set(_gone_over(function, entry))
        found |= inner
        if inner:
            found.discard(entry)  # a loop's own name
        entries |= inner - seen
        seen |= inner
    return found


def _gone_over(function: ast.AST, entry: str) -> Iterator[str]:
    """Name what a loop takes `entry` from: `results` of `for x, entry in zip(xs, results)`."""
    for node in outline_walk(function):
        match node:
            case ast.For(target=ast.Name(id=target), iter=ast.Name(id=source)) if target == entry:
                yield source
            case ast.For(
                target=ast.Tuple(elts=targets),
                iter=ast.Call(func=ast.Name(id="zip"), args=sources),
            ):
                for own, taken in zip(targets, sources, strict=False):
                    if isinstance(own, ast.Name) and isinstance(taken, ast.Name):
                        yield from [taken.id] if own.id == entry else []
