"""What grew between looks at the heap: containers, by length; tensors, by who outlives whom.

Only ids, lengths and weak references are kept between two looks.
"""

from __future__ import annotations

import weakref
from collections import Counter
from dataclasses import dataclass
from typing import Any

from leakcheck.runtime import objects

FEWEST_ELEMENTS = 2


@dataclass(frozen=True, slots=True)
class Grower:
    """A container that grew between all looks; a live object, to be dropped soon."""

    container: Any
    length: int
    per_step: float


class Growth:
    """Compares looks at the heap, the first of them being the state before the window."""

    def __init__(self) -> None:
        self._steps: list[int] = []
        self._first: dict[int, int] = {}
        self._seen: list[dict[int, int]] = []  # lengths of what has grown, a look each
        self._kinds: Counter[int] = Counter()
        self._known: dict[int, weakref.ref[Any]] = {}
        self._born: list[list[weakref.ref[Any]]] = []  # tensors first seen at each look

    def look(self, step: int, alive: list[Any]) -> set[int]:
        """Take a look; returns the ids of the containers that have grown so far."""
        lengths = objects.lengths(alive)
        if not self._steps:
            self._first = lengths
            self._kinds = kind_counts(alive)
        else:
            past = self._seen[-1] if self._seen else self._first
            self._seen.append(
                {
                    key: length
                    for key, length in lengths.items()
                    if key in self._first and length >= past.get(key, self._first[key])
                }
            )
        self._note_births(objects.tensors_and_nodes(alive)[0])
        self._steps.append(step)
        newest = self._seen[-1] if self._seen else {}
        return {key for key, length in newest.items() if length > self._first[key]}

    def growers(self, alive: list[Any]) -> list[Grower]:
        """Return the containers that never shrank and grew in both halves, the fastest first."""
        if len(self._seen) < 2:
            return []
        steps = self._steps[-1] - self._steps[0]
        half = (self._steps[-1] + self._steps[0]) / 2
        middle = min(range(1, len(self._steps) - 1), key=lambda i: abs(self._steps[i] - half))
        early, late = self._seen[middle - 1], self._seen[-1]
        found = {
            key: length
            for key, length in late.items()
            if self._first[key] < early.get(key, 0) < length
            and length - self._first[key] >= FEWEST_ELEMENTS
            and all(key in seen for seen in self._seen)
        }
        growers = [
            Grower(thing, found[id(thing)], (found[id(thing)] - self._first[id(thing)]) / steps)
            for thing in alive
            if id(thing) in found
        ]
        return sorted(growers, key=lambda grower: -grower.per_step)

    def survivors(self) -> list[Any]:
        """Return the living tensors that were born in the window and seen at an earlier look."""
        alive = [ref() for refs in self._born[1:-1] for ref in refs]
        return [tensor for tensor in alive if tensor is not None]

    @property
    def survivors_span_steps(self) -> int:
        """The number of steps in which `survivors` were born."""
        return self._steps[-2] - self._steps[0] if len(self._steps) > 2 else 0

    def growing_kinds(self, alive: list[Any]) -> list[tuple[type, int]]:
        """Return the types of which more objects live than at the first look, most first."""
        now = kind_counts(alive)
        kinds = objects.kinds_of(alive)
        grown = [(kinds[key], count - self._kinds[key]) for key, count in now.items()]
        return sorted((pair for pair in grown if pair[1] > 0), key=lambda pair: -pair[1])

    def _note_births(self, tensors: list[Any]) -> None:
        born = []
        for tensor in tensors:
            known = self._known.get(id(tensor))
            if known is None or known() is not tensor:
                self._known[id(tensor)] = reference = weakref.ref(tensor)
                born.append(reference)
        self._born.append(born)


def kind_counts(alive: list[Any]) -> Counter[int]:
    """Count the objects of each type, by the type's id."""
    return Counter(map(id, map(type, alive)))
