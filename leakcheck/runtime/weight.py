"""What objects keep alive: bytes as the allocators round them, and blocks of Python's allocator."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from leakcheck.runtime.objects import LENGTHS, tensor_type

MOST_OBJECTS = 2000  # visited to weigh a few elements
ROUNDED_TO_BYTES = 16  # by CPython's allocator and by malloc
SMALL_INTS = range(-5, 257)  # CPython keeps one of each
_SHARED = (type, type(sys), type(lambda: None), type(len), type(sys._getframe()), type(None), bool)
_SLOT_BYTES = 8


@dataclass(frozen=True, slots=True)
class Weight:
    """What one of several things keeps alive on average, parts that they share counted once."""

    in_bytes: float = 0.0
    blocks: float = 0.0


def weigh_each(things: Sequence[Any]) -> Weight:
    """Weigh things with their parts and the storages of tensors, as many as the budget allows.

    Types, modules, functions and frames are shared and weigh nothing.
    """
    seen: set[int] = set()
    total_bytes = blocks = weighed = 0
    for thing in things:
        if weighed and len(seen) >= MOST_OBJECTS:
            break
        for part in _parts(thing, seen):
            total_bytes += own_bytes(part)
            blocks += 2 if type(part) in LENGTHS and len(part) else 1
        weighed += 1
    return Weight(total_bytes / weighed, blocks / weighed) if weighed else Weight()


def _parts(thing: Any, seen: set[int]) -> Iterable[Any]:
    """Yield a thing and what it refers to, but for what was seen before."""
    stack = [thing]
    while stack and len(seen) < 2 * MOST_OBJECTS:
        part = stack.pop()
        if id(part) in seen or issubclass(type(part), _SHARED):
            continue
        if type(part) is int and part in SMALL_INTS:
            continue
        seen.add(id(part))
        yield part
        stack.extend(gc.get_referents(part))
        if issubclass(type(part), dict):
            stack.extend(dict.keys(part))  # the collector passes over keys that are text


def own_bytes(thing: Any) -> int:
    """Return the size of an object alone, with its attributes and the storage of a tensor."""
    try:
        size = sys.getsizeof(thing) + _attribute_bytes(thing)
        tensor = tensor_type()
        if tensor is not None and issubclass(type(thing), tensor):
            size += int(thing.untyped_storage().nbytes())
    except Exception:  # a foreign __sizeof__, or a tensor without storage
        return 4 * ROUNDED_TO_BYTES
    return -(-size // ROUNDED_TO_BYTES) * ROUNDED_TO_BYTES


def _attribute_bytes(thing: Any) -> int:
    """Return what the attributes of an object take beside it: since CPython 3.11 none does say.

    A pointer each and a byte for their order, and eight bytes: as measured with 1 to 20 of them.
    """
    kind = type(thing)
    if sys.version_info < (3, 11) or not type.__dict__["__dictoffset__"].__get__(kind):
        return 0
    parts = gc.get_referents(thing)
    if any(type(part) is dict for part in parts[:2]):  # or they are in a dictionary, weighed itself
        return 0
    return max(0, len(parts) - 1) * (_SLOT_BYTES + 1) + _SLOT_BYTES
