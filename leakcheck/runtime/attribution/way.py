"""The way from a root to a container that grows, as values: it is found again, and held by nobody.

Every reference on it is followed by identity and by C's own descriptors alone, so that no code of
the program's runs. A way that leads through what cannot be named so is none: an array, a suspended
function, a deque, whose positions shift.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from leakcheck.runtime.attribution.holders import Chain, Root
from leakcheck.runtime.introspection import frames, objects
from leakcheck.runtime.introspection.kinds import (
    attribute_holding,
    attribute_of_class,
    attributes_of,
    entries_of,
    globals_of,
    in_slot,
    is_exactly,
    is_of,
    module_of,
    namespace_of,
)
from leakcheck.runtime.introspection.local_names import locals_of

MOST_SCANNED = 4096  # entries of a container, in which an element is looked for by identity


@dataclass(frozen=True, slots=True)
class Edge:
    """One reference: of which sort, and the name, key or position under which it is found.

    A key of another kind, a member of an enumeration say, is known by identity.
    """

    sort: str
    key: str | int = ""
    known: weakref.ref[Any] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Way:
    """A root, and the references from it to a container."""

    root: Root
    module: str  # of a class that is the root
    edges: tuple[Edge, ...]
    first: weakref.ref[Any] | None = field(default=None, compare=False)  # what a local root names

    def length(self) -> int | None:
        """Return the length of the container that it leads to now, None if it leads to none."""
        return _length_of(self._ends())

    def content(self) -> Any:
        """Return the container that it leads to now, to be dropped soon; None for none."""
        things = self._ends()
        return things[0] if len(things) == 1 else None

    def length_at_end(self) -> int | None:
        """Return the length once the steps are over, 0 if the holder lives and holds it no more.

        The function whose local was the root may have returned: what that named is asked then.
        """
        things = list(_rooted(self.root, self.module)) or self._first()
        for edge in self.edges:
            if len(things) != 1:
                return None
            things = list(_follow(edge, things[0]))
            if not things or things[0] is None:
                return 0
        return _length_of(things)

    def _ends(self) -> list[Any]:
        things = list(_rooted(self.root, self.module))
        for edge in self.edges:
            things = [inner for thing in things for inner in _follow(edge, thing)]
        return things

    def _first(self) -> list[Any]:
        first = self.first() if self.first is not None else None
        return [] if first is None else [first]


def _length_of(things: list[Any]) -> int | None:
    reader = objects.content_reader(type(things[0])) if len(things) == 1 else None
    return reader(things[0]) if reader is not None else None


def way_of(chain: Chain, last: int) -> Way | None:
    """Return the way to the object with the index `last` in a chain, None if there is none."""
    if chain.root is None or chain.root.kept or chain.root.kind == "context variable":
        return None
    things = chain.objects[: last + 1]
    if len(things) > 1 and is_of(things[0], type) and type(things[1]) is dict:
        del things[1]  # its namespace, which it shows to nobody
    edges = [_edge(holder, child) for holder, child in pairwise(things)]
    module = module_of(things[0]) if chain.root.kind == "class" else ""
    known = tuple(edge for edge in edges if edge is not None)
    first = _weakly(things[0]) if chain.root.kind == "local" else None
    way = Way(chain.root, module, known, first) if len(known) == len(edges) else None
    return way if way is not None and way.length() is not None else None


def _weakly(thing: Any) -> weakref.ref[Any] | None:
    try:
        return weakref.ref(thing)
    except TypeError:
        return None


def _rooted(root: Root, module: str) -> Iterator[Any]:
    """Yield what a root names: of a function that runs twice here each has its own."""
    if root.kind == "local":
        for frame in frames.running():
            code = frame.f_code
            if code.co_name == root.owner and code.co_filename == root.path:
                yield from _of_names(locals_of(frame), root.name)
        return
    namespace = _globals(root.owner if root.kind == "module" else module)
    if root.kind == "module":
        yield from (() if namespace is None else (namespace,))
    elif namespace is not None:
        yield from (each for each in _of_names(namespace, root.owner) if is_of(each, type))


def _globals(module: str) -> dict[str, Any] | None:
    found = sys.modules.get(module)
    return globals_of(found) if found is not None and is_of(found, ModuleType) else None


def _of_names(names: Any, key: Any) -> Iterator[Any]:
    """Yield what a dictionary has under a key of text or a number, compared by no method."""
    for known, value in entries_of(names):
        if is_exactly(known, str, int) and type(known) is type(key) and known == key:
            yield value


def _edge(holder: Any, child: Any) -> Edge | None:
    if is_exactly(holder, *_PARTS):
        parts = (name for kind in _PARTS if type(holder) is kind for name in _PARTS[kind])
        found = (name for name in parts for each in _FOLLOW[name](holder, "") if each is child)
        return next((Edge(name) for name in found), None)
    if is_of(holder, dict):
        return _entry(holder, child)
    if is_of(holder, list, tuple):
        return _position(holder, child)
    if is_of(holder, type):
        return _attribute_of_class(holder, child)
    return _attribute(holder, child)


def _entry(holder: Any, child: Any) -> Edge | None:
    if dict.__len__(holder) > MOST_SCANNED:
        return None
    keys = [key for key, value in entries_of(holder) if value is child]
    plain = next((Edge("entry", key) for key in keys if is_exactly(key, str, int)), None)
    refs = (_weakly(key) for key in keys) if plain is None else ()
    return plain or next((Edge("entry", known=ref) for ref in refs if ref is not None), None)


def _position(holder: Any, child: Any) -> Edge | None:
    kind = list if is_of(holder, list) else tuple
    if kind.__len__(holder) > MOST_SCANNED:
        return None
    places = (at for at, each in enumerate(kind.__iter__(holder)) if each is child)
    return next((Edge("position", at) for at in places), None)


def _attribute_of_class(holder: Any, child: Any) -> Edge | None:
    names = (name for name, value in entries_of(namespace_of(holder)) if value is child)
    return next((Edge("class attribute", name) for name in names), None)


def _attribute(holder: Any, child: Any) -> Edge | None:
    if attributes_of(holder) is child:
        return Edge("namespace")
    name = attribute_holding(holder, child)
    return Edge("attribute", name) if name else None


def _follow(edge: Edge, thing: Any) -> Iterable[Any]:
    if edge.known is None:
        return _FOLLOW[edge.sort](thing, edge.key)
    wanted = edge.known()
    entries = entries_of(thing) if is_of(thing, dict) and wanted is not None else ()
    return (value for key, value in entries if key is wanted)


def _named_attribute(thing: Any, name: Any) -> Iterable[Any]:
    found = list(_of_names(attributes_of(thing), name))
    return found or in_slot(attribute_of_class(type(thing), name), thing)


def _at(thing: Any, position: Any) -> Iterator[Any]:
    kind = list if is_of(thing, list) else tuple
    if is_of(thing, list, tuple) and position < kind.__len__(thing):
        yield kind.__getitem__(thing, position)


def _class_attribute(thing: Any, name: Any) -> Iterator[Any]:
    names = namespace_of(thing) if is_of(thing, type) else {}
    yield from (names[name],) if name in names else ()


def _part(name: str, kind: type) -> Callable[[Any, Any], Iterator[Any]]:
    def read(thing: Any, _: Any) -> Iterator[Any]:
        with suppress(ValueError):  # of a cell that is empty
            part = getattr(thing, name) if type(thing) is kind else None
            yield from () if part is None else (part,)

    return read


_PARTS: dict[type, tuple[str, ...]] = {
    CellType: ("cell_contents",),
    MethodType: ("__self__", "__func__"),
    FunctionType: ("__closure__", "__defaults__", "__kwdefaults__", "__dict__"),
}
_FOLLOW: dict[str, Callable[[Any, Any], Iterable[Any]]] = {
    "attribute": _named_attribute,
    "namespace": lambda thing, _: (attributes_of(thing),),
    "class attribute": _class_attribute,
    "entry": lambda thing, key: _of_names(thing, key) if is_of(thing, dict) else (),
    "position": _at,
    **{name: _part(name, kind) for kind, names in _PARTS.items() for name in names},
}
