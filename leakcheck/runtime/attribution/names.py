"""How lines name what grows: as what the holder is named after, or as an element of that."""

from __future__ import annotations

import ast

from leakcheck.model import Holder, Place, Suspect
from leakcheck.runtime.attribution.assignments import parsed

ADDS = ("append", "appendleft", "add", "extend", "insert", "push", "put", "setdefault", "update")
_STACKS = ("stack", "cat", "concat", "hstack", "vstack")


def is_inner(suspect: Suspect) -> bool:
    """Say whether what grows is an element of what the holder is named after: a list a class."""
    return any(edge.startswith("[") for edge in _edges(suspect)[:-1])


def names_on_way(suspect: Suspect) -> frozenset[str]:
    """Return the keys of text that lead to what grows: `["trace"]` in `optimizer.state[p]`."""
    return frozenset(edge[2:-2] for edge in _edges(suspect) if edge.startswith('["'))


def _edges(suspect: Suspect) -> list[str]:
    """Return the references from the root to what grows, or to the newest element of it."""
    links = suspect.trace.links if suspect.trace else ()
    grows = next((i for i, link in enumerate(links) if link.suspect), len(links) - 1)
    return [link.edge for link in links[: max(0, grows) + 1]]


def is_stacked(place: Place, holder: Holder) -> bool:
    """Say whether the file of a place makes one tensor of what is held: numbers would not do."""
    name = holder.named.name
    for node in ast.walk(parsed(place.path)) if name else ():
        if isinstance(node, ast.Call) and name_of(node.func) in _STACKS and node.args:
            inside = ast.walk(node.args[0])
            if any(name_of(part) == name for part in inside if isinstance(part, ast.expr)):
                return True
    return False


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
