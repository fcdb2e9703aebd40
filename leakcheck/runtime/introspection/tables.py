"""Tables that are made before they are filled: `[None] * 1000`, `np.zeros(1000, dtype=object)`.

Their length never changes; what grows is how many of their places are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from types import NoneType
from typing import Any

from leakcheck.runtime.introspection.kinds import array_type, is_exactly

FEWEST_PLACES, MOST_PLACES = 32, 1 << 20  # a million take 60 ms, and 150 once filled
_BLANKS = (NoneType, bool, int, float, str)  # what places are made with


@dataclass(frozen=True, slots=True)
class Table:
    """A table that was filled between two looks; a live object, to be dropped soon."""

    container: Any
    held: list[Any]  # what its places are taken by
    places: int
    per_step: float


class Tables:
    """Compares the free places of each table with those at the first look.

    Nothing of the program's is kept between them but ids.
    """

    def __init__(self) -> None:
        self._first: dict[int, tuple[int, int, int]] = {}  # id -> that of a blank, free, places

    def look(self, containers: Iterable[Any]) -> None:
        """Note the tables at the first look, of lists and of arrays of objects."""
        for table, places in _places_of(containers):
            ends = (places[-1], places[0])
            blank = next((each for each in ends if is_exactly(each, *_BLANKS)), None)
            free = _count(places, id(blank))
            if free > 1:
                self._first[id(table)] = (id(blank), free, len(places))

    def filling(self, containers: Iterable[Any], steps: int) -> Iterator[Table]:
        """Yield the tables of which fewer places are free now, taken by more than numbers."""
        for table, places in _places_of(containers):
            blank, free, number = self._first.get(id(table), (0, 0, 0))
            if number != len(places) or (left := _count(places, blank)) >= free:
                continue
            held = [each for each in places if id(each) != blank]
            if not all(is_exactly(each, *_BLANKS) for each in held):
                yield Table(table, held, number, (free - left) / steps)


def objects_in(thing: Any) -> list[Any]:
    """Return what is in an array of objects, up to a million; nothing for any other object."""
    of_objects = type(thing) is array_type() and thing.dtype.hasobject and thing.size <= MOST_PLACES
    return thing.ravel().tolist() if of_objects else []


def _places_of(containers: Iterable[Any]) -> Iterator[tuple[Any, list[Any]]]:
    for each in containers:
        places = each if type(each) is list else objects_in(each)
        if FEWEST_PLACES <= len(places) <= MOST_PLACES:
            yield each, places


def _count(places: list[Any], wanted: int) -> int:
    """Count what is one object, by its id: to compare may be the program's code."""
    return sum(map(int.__eq__, map(id, places), repeat(wanted)))
