"""Which objects stand for a thread, an open file or a child process, so as to name who holds it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from typing import Any

DEEPEST = 4  # from an executor through its dictionary to the set of its threads
MOST_PARTS = 400

_CLASSES: dict[str, tuple[tuple[str, str], ...]] = {
    "threads": (("threading", "Thread"),),
    "descriptors": (
        ("_socket", "socket"),
        ("_io", "FileIO"),
        ("select", "epoll"),
        ("mmap", "mmap"),
        ("selectors", "_BaseSelectorImpl"),
    ),
    "processes": (("subprocess", "Popen"), ("multiprocessing.process", "BaseProcess")),
}


def resources_in(things: Iterable[Any]) -> frozenset[str]:
    """Return what the objects stand for, or what is inside them: some of the keys above."""
    found: set[str] = set()
    seen: set[int] = set()
    level = list(things)
    for _ in range(DEEPEST):
        kinds = {type(thing) for thing in level}
        found |= {name for name in _CLASSES if any(_is_of(kind, name) for kind in kinds)}
        parts = gc.get_referents(*(thing for thing in level if not _is_shared(thing)))
        level = [part for part in parts if id(part) not in seen][:MOST_PARTS]
        seen.update(map(id, level))
    return frozenset(found)


def _is_of(kind: type, name: str) -> bool:
    classes = (getattr(sys.modules.get(module), of, None) for module, of in _CLASSES[name])
    return any(cls is not None and issubclass(kind, cls) for cls in classes)


def _is_shared(thing: Any) -> bool:
    return issubclass(type(thing), (type, type(sys), type(_is_of)))
