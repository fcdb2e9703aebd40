"""What objects keep alive: bytes as the allocators round them, and blocks of Python's allocator."""

from __future__ import annotations

import builtins
import gc
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median_low
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    MethodDescriptorType,
    ModuleType,
    NoneType,
)
from typing import Any

from leakcheck.runtime.attribution import hidden
from leakcheck.runtime.introspection.kinds import (
    ByKind,
    array_type,
    attribute_of_class,
    globals_of,
    is_of,
    namespace_of,
)
from leakcheck.runtime.introspection.objects import LENGTHS, is_tensor
from leakcheck.runtime.introspection.tensors import (
    element_bytes_of,
    numel_of,
    storage_bytes_of,
)

MOST_OBJECTS = 2000  # visited to weigh a few elements
FEWEST_TO_COMPARE = 4  # of things, to tell what they share
FIRST_MORE = 2.0  # times what each of the others weighs
MOST_SHOWN = 4  # times what a view shows, that it keeps: a copy of it would be worth the while
ROUNDED_TO_BYTES = 16  # by CPython's allocator and by malloc
SMALL_INTS = range(-5, 257)  # CPython keeps one of each
_SHARED = (type, ModuleType, BuiltinFunctionType, FrameType, NoneType, bool)
_NUMBERS, _TEXTS = (int, float, complex, datetime, timedelta), (str, bytes)
_PLAIN = ByKind(dict.fromkeys((*_NUMBERS, *_TEXTS, list, tuple, dict, set, frozenset)))
_SLOT_BYTES = 8


class _Plain:
    """As the program's classes are."""


_HEADER_BYTES = sys.getsizeof(_Plain()) - object.__sizeof__(_Plain())  # the collector's, and more


@dataclass(frozen=True, slots=True)
class Weight:
    """What one of several things keeps alive on average, parts that they share counted once."""

    in_bytes: float = 0.0
    blocks: float = 0.0


def weigh_each(things: Sequence[Any], group: int = 1, apart: Iterable[int] = ()) -> Weight:
    """Weigh things with their parts and the storages of tensors, as many as the budget allows.

    Types, modules and frames are shared and weigh nothing, as do the code and the globals of a
    function, but for globals that no module has. What the first of several has more than the others
    is taken to be shared by all: tasks refer to their loop. `group`: how many of the things belong
    together, as a key and its value. `apart`: the ids of what weighs by itself, as the table of
    hooks to which the closure of each of them leads back.
    """
    seen = set(apart)
    most = len(seen) + MOST_OBJECTS
    storages: set[int] = set()
    groups: list[Weight] = []
    for start in range(0, len(things), group):
        if groups and len(seen) >= most:
            break
        sizes: list[int] = []
        blocks, left = 0, 0
        for thing in things[start : start + group]:
            parts = _Parts(thing, seen, most + MOST_OBJECTS)
            for part in parts:
                sizes.append(own_bytes(part, storages))
                length = LENGTHS.get(type(part))
                blocks += 2 if length is not None and length(part) else 1
            left += len(parts.left)
        # a list of 40,000 numbers: those that were not visited weigh as much as the others
        total_bytes = sum(sizes) + (left * median_low(sizes) if left else 0)
        groups.append(Weight(total_bytes / group, (blocks + left) / group))
    rest = _mean(groups[1:])
    few = len(groups) < FEWEST_TO_COMPARE or groups[0].in_bytes <= FIRST_MORE * rest.in_bytes
    return _mean(groups) if few else rest


def _mean(weights: list[Weight]) -> Weight:
    count = max(1, len(weights))
    in_bytes = sum(each.in_bytes for each in weights) / count
    return Weight(in_bytes, sum(each.blocks for each in weights) / count)


class _Parts:
    """A thing and what it refers to, but for what was seen before; `left` is what was too much."""

    def __init__(self, thing: Any, seen: set[int], most: int = 2 * MOST_OBJECTS) -> None:
        self.left: list[Any] = [thing]
        self._seen, self._most = seen, most

    def __iter__(self) -> Iterator[Any]:
        stack, seen, most = self.left, self._seen, self._most
        while stack and len(seen) < most:
            part = stack.pop()
            if id(part) in seen or issubclass(type(part), _SHARED):
                continue
            if type(part) is int and part in SMALL_INTS:
                continue
            seen.add(id(part))
            yield part
            stack.extend(_own_of(part) if type(part) is FunctionType else gc.get_referents(part))
            stack.extend(_kept_by(part))
            if issubclass(type(part), dict):
                stack.extend(dict.keys(part))  # the collector passes over keys that are text


def _own_of(function: FunctionType) -> list[Any]:
    """Return what a function refers to for itself: its closure, defaults and attributes."""
    shared = {id(vars(builtins))}
    if _are_of_module(function.__globals__):
        shared.add(id(function.__globals__))
    parts = gc.get_referents(function)
    return [each for each in parts if type(each) is not CodeType and id(each) not in shared]


def _are_of_module(names: dict[str, Any]) -> bool:
    """Say whether these are the globals of a module, and not those of code that was executed."""
    name = names.get("__name__")
    module = sys.modules.get(name) if type(name) is str else None
    return module is not None and is_of(module, ModuleType) and globals_of(module) is names


def _kept_by(part: Any) -> list[Any]:
    """Return the tensor that an array keeps alive where the collector does not see it."""
    base = hidden.base_of(part) if type(part) is array_type() else None
    return [] if base is None else [base]


def kept_by_views(things: Sequence[Any], each_bytes: float) -> int:
    """Return how many bytes each of some views keeps, 0 if they are none that show a small part.

    `each_bytes`: what each was found to keep; the rows of one batch, all of them kept, share it.
    """
    shown = filter(None, map(_shown_of, things))
    most = max(shown, key=lambda one: one[1], default=(0, 0))
    partly = most[1] >= MOST_SHOWN * most[0]
    return most[1] if partly and each_bytes >= most[1] / 2 else 0


def _shown_of(thing: Any) -> tuple[int, int] | None:
    """Return the bytes that a view shows and those of what it keeps, None for what is no view."""
    base = hidden.base_of(thing)
    if base is None:
        return None
    try:
        if type(thing) is array_type():
            while type(base) is type(thing) and (further := hidden.base_of(base)) is not None:
                base = further
            return (thing.nbytes, base.nbytes) if type(base) is type(thing) else None
        return numel_of(thing) * element_bytes_of(thing), storage_bytes_of(thing)
    except Exception:  # a tensor without storage
        return None


def are_plain(things: Sequence[Any]) -> bool:
    """Say whether things are data of Python's own, of which nothing is hidden in a library's heap.

    Numbers, text, containers, and objects of classes made by a class statement.
    """
    return all(_is_plain(type(part)) for thing in things for part in _Parts(thing, set()))


def _is_plain(kind: type) -> bool:
    if kind in _PLAIN:
        return True
    made = type(kind) is type and "__dict__" in namespace_of(kind)
    return made and type.__dict__["__base__"].__get__(kind) is object


def own_bytes(thing: Any, storages: set[int] | None = None) -> int:
    """Return the size of an object alone, with its attributes and the storage of a tensor.

    `storages`: where those begin that were weighed before; views share one.
    """
    try:
        size = _size_of(thing) + _attribute_bytes(thing)
        if is_tensor(type(thing)):
            size += _storage_bytes(thing, storages)
    except Exception:  # a tensor without storage
        return 4 * ROUNDED_TO_BYTES
    return -(-size // ROUNDED_TO_BYTES) * ROUNDED_TO_BYTES


def _size_of(thing: Any) -> int:
    """Return what `sys.getsizeof` does, past a `__sizeof__` written in Python."""
    read = attribute_of_class(type(thing), "__sizeof__")
    if type(read) is MethodDescriptorType:
        return sys.getsizeof(thing)
    return object.__sizeof__(thing) + _HEADER_BYTES


def _storage_bytes(tensor: Any, storages: set[int] | None) -> int:
    start = hidden.storage_start(tensor)
    if start and storages is not None:
        if start in storages:
            return 0
        storages.add(start)
    return storage_bytes_of(tensor)


def _attribute_bytes(thing: Any) -> int:
    """Return the bytes of an object's attributes: since CPython 3.11 no function reports them.

    A pointer each and a byte for their order, and eight bytes: as measured with 1 to 20 of them.
    """
    kind = type(thing)
    if sys.version_info < (3, 11) or not type.__dict__["__dictoffset__"].__get__(kind):
        return 0
    parts = gc.get_referents(thing)
    if any(type(part) is dict for part in parts[:2]):  # or they are in a dictionary, weighed itself
        return 0
    return max(0, len(parts) - 1) * (_SLOT_BYTES + 1) + _SLOT_BYTES
