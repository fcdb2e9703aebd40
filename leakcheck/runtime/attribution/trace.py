"""A chain of live objects told in words: root, references, what leaks; no live object survives it.

Positions in containers that grow are folded to [x], so that the same leak reads the same on every
run and a thousand leaked tensors are one.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Set
from dataclasses import dataclass, replace
from pathlib import Path
from types import (
    BuiltinMethodType,
    CellType,
    FrameType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple

from leakcheck.model import Holder, LeakTrace, Link, Suspect
from leakcheck.runtime.attribution import hidden
from leakcheck.runtime.attribution.holders import MODULE_TABLES, Chain, Root
from leakcheck.runtime.introspection import frames, hooks, objects
from leakcheck.runtime.introspection.kinds import (
    array_type,
    attribute_holding,
    attributes_of,
    entries_of,
    is_exactly,
    module_of,
    name_of,
)
from leakcheck.runtime.introspection.local_names import locals_of
from leakcheck.runtime.introspection.tensors import device_of, dtype_of, shape_of

OF_SCRIPT = ("__main__", "__mp_main__")  # the second in a process that multiprocessing spawned
OUTSIDE = "held outside Python"
NO_ROOTS = ("", OUTSIDE)  # none that the search came to in its time, none at all
TABLE_OF_HOOKS = "hooks of a Node of the autograd graph"
POSITION = "[x]"  # whichever: of a key or an index in a container that grows
LONGEST_PERIOD = 3  # references from one object of a linked list to the next
THREAD_LOCAL = "threading.local"  # as programs call it; its type has another name
_UNKNOWN = Holder()
_OF_EXCEPTIONS = ("__traceback__", "__context__", "__cause__")


@dataclass(frozen=True, slots=True)
class Told:
    """A chain in words.

    `holder` is the container that grows, or the one nearest to what leaks.
    """

    trace: LeakTrace
    holder: Holder
    library: bool

    @property
    def edges(self) -> tuple[str, ...]:
        """What identifies the chain: its root and every reference."""
        return (self.trace.root, *(link.edge for link in self.trace.links))

    @property
    def grows_at(self) -> tuple[str, ...]:
        """The references down to the first container that grows; empty if there is none."""
        for index, link in enumerate(self.trace.links):
            if link.suspect:
                return self.edges[: index + 2]
        return ()

    def extended(self, link: Link | None) -> Told:
        """Return the chain with one more reference."""
        if link is None:
            return self
        return replace(self, trace=replace(self.trace, links=(*self.trace.links, link)))

    def weighed(self, retained_bytes: int) -> Told:
        """Return the chain with what is kept alive by the reference that leaks."""
        links = tuple(
            replace(link, retained_bytes=retained_bytes) if link.suspect else link
            for link in self.trace.links
        )
        return replace(self, trace=replace(self.trace, links=links))


class _Hop(NamedTuple):
    edge: str
    holder: Holder  # the edge with what it belongs to, unknown for a position
    to: int  # index in the chain of the object it leads to
    grows: bool


def tell(chain: Chain, growing: Set[int]) -> Told:
    """Put a chain into words; containers whose ids are in `growing` have their keys folded."""
    hops = _hops(chain, growing)
    if chain.root is None and len(chain.objects) > 1 and hooks.is_table(chain.objects[0]):
        hook = chain.objects[1]
        function = hooks.function_of(hook)
        name = name_of(type(hook)) if function is None else function.__code__.co_name
        links = _folded(hops, chain.objects)
        return Told(LeakTrace(TABLE_OF_HOOKS, links), Holder("graph hook", name), False)
    if chain.root is None and chain.cut_off:
        return Told(LeakTrace(""), Holder(), False)
    if chain.root is None:
        last = next((hop.holder for hop in reversed(hops) if hop.holder), None)
        # what other threads name nobody can see
        others = () if last else frames.own_functions_elsewhere()
        told = Holder("outside", function=" or ".join(f"{name}()" for name in others), root=last)
        return Told(LeakTrace(OUTSIDE, _folded(hops, chain.objects)), told, False)
    root, origin = chain.root.holder, ""
    if chain.root.kind in ("module", "class") and hops:
        name = hops.pop(0).edge.lstrip(".")
        root, origin = _named_root(chain.root, name), _origin(chain.root, name)
    links = _folded(hops, chain.objects)
    grows = [index for index, hop in enumerate(hops, start=1) if hop.grows]
    known = [hop.holder for hop in hops[: grows[-1] if grows else None] if hop.holder]
    named = [each for each in known if each.kind != "inside"] or known
    holder = replace(named[-1], root=root) if named else root
    return Told(LeakTrace(str(root), links, origin), holder, not chain.root.own)


def describe(thing: Any) -> str:
    """Name an object's type, and a tensor's shape, dtype and device."""
    kind = "weak reference" if is_exactly(thing, weakref.ref) else name_of(type(thing))
    if not objects.is_tensor(type(thing)):
        return kind
    shape = "x".join(map(str, shape_of(thing))) or "scalar"
    place, numbers = device_of(thing), dtype_of(thing).removeprefix("torch.")
    device = "" if place == "cpu" else f" on {place}"
    return f"{kind} ({shape}) {numbers}{device}"


def is_namespace(chain: Chain, holder: Any) -> bool:
    """Say whether a dictionary in the chain holds the names of a module, class or object."""
    if not issubclass(type(holder), dict):
        return False
    if chain.objects[0] is holder and _starts_in_globals(chain):
        return True
    owners = zip(chain.objects, chain.objects[1:], strict=False)
    return any(down is holder and is_namespace_of(holder, up) for up, down in owners)


def _starts_in_globals(chain: Chain) -> bool:
    return chain.root is not None and chain.root.kind == "module"


def _named_root(root: Root, name: str) -> Holder:
    if root.kind == "module":
        return Holder("global", name, "" if root.owner in OF_SCRIPT else root.owner)
    return Holder("class attribute", name, root.owner)


def _origin(root: Root, name: str) -> str:
    """Name a global by its file: a script and what imports it call its module differently."""
    return f"global `{Path(root.path).stem}.{name}`" if root.kind == "module" else ""


def _hops(chain: Chain, growing: Set[int]) -> list[_Hop]:
    hops: list[_Hop] = []
    at = 0
    if _starts_in_globals(chain) and len(chain.objects) > 1:
        hops.append(_Hop(f".{key_of(chain.objects[0], chain.objects[1])}", _UNKNOWN, 1, False))
        at = 1
    while at < len(chain.objects) - 1:
        hop = _hop(chain.objects, at, growing)
        at = hop.to
        if hop.edge:
            hops.append(hop)
    return hops


def _folded(hops: list[_Hop], chain: list[Any]) -> tuple[Link, ...]:
    links: list[Link] = []
    for hop in hops:
        links.append(Link(hop.edge, describe(chain[hop.to]), suspect=hop.grows))
        for period in range(1, LONGEST_PERIOD + 1):  # .next.next.next reads as one
            edges = [link.edge for link in links]
            ahead = edges[-2 * period : -period]
            if ahead == edges[-period:] and any(edge != POSITION for edge in ahead):
                links[-2 * period : -period] = []
                break
    return tuple(links)


def _hop(chain: list[Any], at: int, growing: Set[int]) -> _Hop:
    holder, child = chain[at], chain[at + 1]
    following = chain[at + 2] if at + 2 < len(chain) else None
    grows = id(holder) in growing
    if type(holder) is FunctionType:
        return _from_function(holder, chain, at)
    if type(child) is dict and is_namespace_of(child, holder):
        if following is None:  # they are what grows
            return _Hop("", _UNKNOWN, at + 1, False)
        return _from_namespace(holder, chain, at + 1, growing)
    if issubclass(type(holder), threading.local) and at + 3 < len(chain):
        return _from_thread_local(holder, chain, at, growing)
    if issubclass(type(holder), dict):
        return _Hop(_dict_edge(holder, child, grows), _UNKNOWN, at + 1, grows)
    if type(holder) is CellType:
        return _Hop("", _UNKNOWN, at + 1, False)
    if (
        type(holder) is functools.partial
        and is_exactly(child, tuple, dict)
        and following is not None
    ):
        return _Hop("argument of a partial", _UNKNOWN, at + 2, grows)
    framed = type(child) is FrameType and is_exactly(holder, *frames.SUSPENDABLE)
    if framed and following is not None:  # up to CPython 3.10 its frame lies between
        return _Hop(*_other_edge(holder, following), at + 2, grows)
    edge, known = _other_edge(holder, child)
    return _Hop(edge, known, at + 1, grows)


def _from_namespace(holder: Any, chain: list[Any], at: int, growing: Set[int]) -> _Hop:
    key = key_of(chain[at], chain[at + 1])
    owner = holder if issubclass(type(holder), type) else type(holder)
    table = chain[at + 1]
    if key in MODULE_TABLES and at + 2 == len(chain):  # it is what grows
        return _Hop("", _UNKNOWN, at + 1, False)
    if key in MODULE_TABLES and issubclass(type(table), dict) and at + 2 < len(chain):
        key, at = key_of(table, chain[at + 2]), at + 1
    if id(chain[at]) in growing:  # attributes that are added under ever new names
        return _Hop(POSITION, _UNKNOWN, at + 1, True)
    return _Hop(f".{key}", _attribute(key, owner), at + 1, False)


def _attribute(name: str, kind: type) -> Holder:
    return Holder("attribute", name, name_of(kind), module=module_of(kind))


def _from_thread_local(holder: Any, chain: list[Any], at: int, growing: Set[int]) -> _Hop:
    """Step over what keeps a dictionary of attributes for each thread."""
    key = key_of(chain[at + 2], chain[at + 3])
    if id(chain[at + 2]) in growing:
        return _Hop(POSITION, _UNKNOWN, at + 3, True)
    kind = type(holder)
    named = _attribute(key, kind)
    if kind is threading.local:
        named = replace(named, owner=THREAD_LOCAL)
    return _Hop(f".{key}", named, at + 3, False)


def _from_function(function: FunctionType, chain: list[Any], at: int) -> _Hop:
    name = function.__name__
    following = chain[at + 1 : at + 4]
    if following[0] is function.__closure__ and len(following) > 2:
        free = name_of_cell(function, following[1]) or "?"
        return _Hop(f"closure cell {free}", Holder("closure", free, "", name), at + 3, False)
    if following[0] is function.__defaults__ and len(following) > 1:
        argument = _default_name(function, following[1])
        known = Holder("default", argument, "", name)
        return _Hop(f"default argument {argument}", known, at + 2, False)
    named: Any = function.__kwdefaults__
    if following[0] is named and len(following) > 1:
        argument = key_of(named, following[1])
        known = Holder("default", argument, "", name)
        return _Hop(f"default argument {argument}", known, at + 2, False)
    if type(following[0]) is dict and following[0] is not function.__globals__:
        key = key_of(following[0], following[1]) if len(following) > 1 else "?"
        known = Holder("attribute", key, name)
        return _Hop(f".{key}", known, min(at + 2, len(chain) - 1), False)
    return _Hop(f"function {name}()", _UNKNOWN, at + 1, False)


def name_of_cell(function: FunctionType, cell: Any) -> str:
    """Return the variable of the functions around one that a cell of its closure has, or ""."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    return next((free for free, each in cells if each is cell), "")


def _default_name(function: FunctionType, value: Any) -> str:
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    return next((n for n, each in zip(names, defaults, strict=False) if each is value), "?")


def key_of(namespace: dict[Any, Any], child: Any) -> str:
    """Return the name under which a dictionary holds `child`, "?" if there is none."""
    keys = (key for key, value in entries_of(namespace) if value is child)
    return next((key for key in keys if type(key) is str), "?")


def is_module_table(namespace: Any, following: list[Any]) -> bool:
    """Say whether what follows a module's namespace in a chain is in its table of buffers, say."""
    both = [namespace, *following[:1]] if len(following) > 1 else [None]
    if not all(issubclass(type(each), dict) for each in both):
        return False
    return key_of(namespace, following[0]) in MODULE_TABLES


def _dict_edge(holder: dict[Any, Any], child: Any, grows: bool) -> str:
    key = key_of(holder, child)
    return POSITION if grows or key == "?" else f'["{key}"]'


def edge_to_element(container: Any) -> str:
    """Return how references from a container to what is in it are written."""
    if type(container) is not objects.LruCache:
        return POSITION
    return f"lru_cache of {_cached_by(container)}()"


def _cached_by(memo: Any) -> str:
    return str(getattr(memo, "__name__", "a function"))


def _other_edge(holder: Any, child: Any) -> tuple[str, Holder]:
    kind = type(holder)
    if kind is array_type():
        return (".base" if hidden.base_of(holder) is child else POSITION), _UNKNOWN
    if objects.is_tensor(kind):
        if hidden.base_of(holder) is child:
            return "._base", _UNKNOWN
        for name in hooks.OF_TENSORS:
            if hooks.hooks_of(holder, name) is child:
                return f".{name}", _attribute(name, kind)
        return ".grad", Holder("gradient")
    if kind is objects.LruCache:
        return edge_to_element(holder), Holder("memo", function=_cached_by(holder))
    if kind is FrameType and type(child) is FrameType:
        return f"called by {child.f_code.co_name}()", _UNKNOWN
    if kind is FrameType:
        name = next((n for n, value in locals_of(holder).items() if value is child), "?")
        kept = Holder("traceback", name, function=holder.f_code.co_name)
        return str(kept), kept
    if kind is functools.partial:
        return "argument of a partial", _UNKNOWN
    if is_exactly(holder, MethodType, BuiltinMethodType):
        return ".__self__", _UNKNOWN
    if is_exactly(holder, *frames.SUSPENDABLE):
        return f"suspended {holder.__name__}()", _suspended(holder, child)
    if issubclass(kind, (list, tuple, set, frozenset, *objects.LENGTHS.kinds)):
        return POSITION, _UNKNOWN
    attribute = attribute_holding(holder, child)
    if attribute:
        return f".{attribute}", _attribute(attribute, kind)
    part = _part_of_exception(holder, child)
    edge = f".{part}" if part else f"in a {name_of(kind)}"
    return edge, Holder("inside", owner=name_of(kind))


def _suspended(holder: Any, child: Any) -> Holder:
    frame = frames.suspended_frame(holder)
    values = locals_of(frame, holder) if frame is not None else {}
    name = next((name for name, value in values.items() if value is child), "")
    known = bool(name) and name[0] != "."
    return Holder("local" if known else "suspended", name if known else "", "", holder.__name__)


def _part_of_exception(holder: Any, child: Any) -> str:
    if not issubclass(type(holder), BaseException):
        return ""
    parts = ((name, BaseException.__dict__[name].__get__(holder)) for name in _OF_EXCEPTIONS)
    return next((name for name, value in parts if value is child), "")


def is_namespace_of(namespace: Any, thing: Any) -> bool:
    """Say whether a dictionary holds the attributes of an object, class or module."""
    if not issubclass(type(namespace), dict):
        return False
    if issubclass(type(thing), (type, ModuleType)):
        return True
    return not issubclass(type(thing), dict) and attributes_of(thing) is namespace


def is_inner(suspect: Suspect) -> bool:
    """Say whether what grows is an element of what the holder is named after: a list a class."""
    return any(edge.startswith("[") for edge in _edges_to_growth(suspect)[:-1])


def names_on_way(suspect: Suspect) -> frozenset[str]:
    """Return the keys of text that lead to what grows: `["trace"]` in `optimizer.state[p]`."""
    return frozenset(edge[2:-2] for edge in _edges_to_growth(suspect) if edge.startswith('["'))


def _edges_to_growth(suspect: Suspect) -> list[str]:
    """Return the references from the root to what grows, or to the newest element of it."""
    links = suspect.links
    grows = next((i for i, link in enumerate(links) if link.suspect), len(links) - 1)
    return [link.edge for link in links[: max(0, grows) + 1]]
