"""What one container gains another loses: `labelled[i] = pool.pop(i)` ends when the pool is empty.

Elements are known again by value if they are numbers or text, else by identity; of those nothing is
kept but weak references.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from leakcheck.runtime.introspection import objects
from leakcheck.runtime.introspection.kinds import is_exactly, is_of
from leakcheck.runtime.introspection.objects import Heap

MOST_GIVERS = 16
FEWEST_LEFT = 8  # in a container, for it to be worth a look
MOST_ELEMENTS = 200_000  # of one container
MOST_REFERENCES = 20_000
FEWEST_MOVED = 4
MOST_COMPARED = 256
ALMOST_ALL = 0.8


@dataclass(slots=True)
class _Giver:
    """A container that became shorter, and what was in it then: values, and objects by id."""

    length: int
    values: set[int | str]
    things: dict[int, weakref.ref[Any]]


class Moving:
    """Notes which containers lose elements, and says which others have them now."""

    def __init__(self) -> None:
        self._givers: dict[int, _Giver] = {}

    def look(self, shrunk: Mapping[int, int], heap: Heap) -> None:
        """Note what is left in containers that shrank; `shrunk`: how much that is, by id."""
        new = {
            key
            for key, left in shrunk.items()
            if FEWEST_LEFT <= left <= MOST_ELEMENTS and key not in self._givers
        }
        found = heap.containers(new) if new else []
        found.sort(key=lambda container: -shrunk[id(container)])
        for container in found[: MOST_GIVERS - len(self._givers)]:
            self._givers[id(container)] = _noted(container, shrunk[id(container)])

    def takers(self, growers: Iterable[Any], heap: Heap) -> dict[int, Any]:
        """Return which container each of the `growers`, by id, takes its elements from."""
        found: dict[int, Any] = {}
        growers = list(growers)
        for giving in heap.containers(self._givers.keys()) if self._givers and growers else ():
            if (given := self._given_by(giving)) is not None:
                found |= {id(each): giving for each in growers if _takes(each, given)}
        return found

    def _given_by(self, container: Any) -> _Giver | None:
        """Return what a container has lost since it was noted; None if that is not much."""
        giver = self._givers[id(container)]
        if objects.length_of(container) >= giver.length:
            return None
        left = _noted(container)
        values = giver.values - left.values
        things = {
            key: ref
            for key, ref in giver.things.items()
            if key not in left.things and ref() is not None  # else another may have its id
        }
        moved = max(len(values), len(things))
        return _Giver(moved, values, things) if moved >= FEWEST_MOVED else None


def _noted(container: Any, length: int = 0) -> _Giver:
    found = _Giver(length, set(), {})
    for element in objects.elements_of(container):
        _note(element, found)
    return found


def _takes(grower: Any, given: _Giver) -> bool:
    """Say whether the newest elements of a container are those that another gave up."""
    wanted = min(given.length, MOST_COMPARED)
    if type(grower) is set:
        return len(given.values & set(objects.elements_of(grower))) >= ALMOST_ALL * given.length
    newest = objects.newest(grower, wanted)
    of_each = 2 if is_of(grower, dict) else 1  # the key and the value
    entries = [newest[at : at + of_each] for at in range(0, len(newest), of_each)]
    known = sum(any(_is_in(given, part) for part in entry) for entry in entries)
    return len(entries) == wanted and known >= ALMOST_ALL * wanted


def _is_in(given: _Giver, element: Any) -> bool:
    if is_exactly(element, int, str):
        return element in given.values
    return any(id(part) in given.things for part in _parts(element))


def _note(element: Any, giver: _Giver) -> None:
    if is_exactly(element, int, str):
        giver.values.add(element)
    elif len(giver.things) < MOST_REFERENCES:
        for part in _parts(element):
            try:
                giver.things[id(part)] = weakref.ref(part)
            except TypeError:  # of this kind there are none
                continue
            return


def _parts(element: Any) -> list[Any]:
    """Return an element, and what is in it if it is a tuple, a list or a dictionary."""
    inner = gc.get_referents(element) if is_exactly(element, tuple, list, dict) else []
    return [element, *inner]
