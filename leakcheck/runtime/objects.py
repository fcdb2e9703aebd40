"""The Python heap: what is alive, of which kind, how long its containers are, what it weighs.

Foreign objects are only ever asked for their `type`: isinstance, ==, len() or an attribute of an
unknown class may run the program's own code.
"""

from __future__ import annotations

import gc
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

LruCache = type(lru_cache(lambda: None))
# kind of container -> its length, read past any override of the program's
LENGTHS: dict[type, Callable[[Any], int]] = {
    list: list.__len__,
    dict: dict.__len__,
    OrderedDict: dict.__len__,
    defaultdict: dict.__len__,
    set: set.__len__,
    deque: deque.__len__,
    LruCache: lambda cache: cache.cache_info().currsize,
}
DEEPEST_SIZE = 2000  # objects visited to weigh one element


def tensor_type() -> type | None:
    """Return torch.Tensor if the program has imported torch."""
    found: type | None = getattr(sys.modules.get("torch"), "Tensor", None)
    return found


def kinds_of(objects: Iterable[object]) -> dict[int, type]:
    """Return the types of `objects` by their ids; a metaclass may forbid hashing."""
    return {id(kind): kind for kind in map(type, objects)}


def of_kinds(objects: Sequence[Any], kinds: set[int]) -> list[Any]:
    """Return the objects whose type has one of these ids."""
    return [thing for thing in objects if id(type(thing)) in kinds]


def tensors_and_nodes(objects: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Pick the tensors and the Python-held graph Nodes out of `objects`."""
    tensor = tensor_type()
    if tensor is None:
        return [], []
    kinds = kinds_of(objects)
    tensors = {key for key, kind in kinds.items() if issubclass(kind, tensor)}
    nodes = {key for key, kind in kinds.items() if _is_node(kind)}
    return of_kinds(objects, tensors), of_kinds(objects, nodes) if nodes else []


def _is_node(kind: type) -> bool:
    return kind.__name__.endswith(("Backward", "Grad", "0", "1", "2", "3")) and (
        "next_functions" in dir(kind) and "_sequence_nr" in dir(kind)
    )


def container_kinds(objects: Iterable[object]) -> dict[int, Callable[[Any], int]]:
    """Return the container types among those of `objects`, by id, with how to read a length."""
    found: dict[int, Callable[[Any], int]] = {}
    for key, kind in kinds_of(objects).items():
        for base in kind.__mro__:
            if base in LENGTHS:
                found[key] = LENGTHS[base]
                break
    return found


def lengths(objects: Sequence[Any]) -> dict[int, int]:
    """Return id -> length of every container among `objects`."""
    kinds = container_kinds(objects)
    keys = set(kinds)
    return {id(thing): kinds[id(type(thing))](thing) for thing in of_kinds(objects, keys)}


def limit_of(container: Any) -> int | None:
    """Return the most a container holds (deque maxlen, lru_cache maxsize), None if unlimited."""
    if isinstance(container, deque):
        return container.maxlen
    if type(container) is LruCache:
        limit: int | None = container.cache_info().maxsize
        return limit
    return None


def newest(container: Any, count: int) -> list[Any]:
    """Return up to `count` of the elements added last, in their order; any ones of a set."""
    if type(container) is LruCache:
        return gc.get_referents(container)[-count:]
    if isinstance(container, dict):
        keys = list(dict.keys(container))[-count:]
        return [part for key in keys for part in (key, dict.get(container, key))]
    if isinstance(container, list):
        return list.__getitem__(container, slice(-count, None))
    return list(container)[-count:]


def weigh_bytes(things: Iterable[Any]) -> int:
    """Return what the objects keep alive: themselves, their parts, tensor storages, each once.

    Types, modules, functions and frames are shared and count nothing.
    """
    seen: set[int] = set()
    stack = list(things)
    total = 0
    while stack and len(seen) < DEEPEST_SIZE:
        thing = stack.pop()
        if id(thing) in seen or issubclass(type(thing), _SHARED):
            continue
        seen.add(id(thing))
        total += _own_bytes(thing)
        if gc.is_tracked(thing):
            stack.extend(gc.get_referents(thing))
    return total


_SHARED = (type, type(sys), type(weigh_bytes), type(len), type(sys._getframe()), type(None), bool)


def _own_bytes(thing: Any) -> int:
    try:
        own = sys.getsizeof(thing)
        tensor = tensor_type()
        if tensor is not None and issubclass(type(thing), tensor):
            return own + int(thing.untyped_storage().nbytes())
        return own
    except Exception:  # a foreign __sizeof__, or a tensor without storage
        return 64
