"""Memory in one piece that is extended: text, bytes, arrays, files kept in memory.

`log += line` and `kept = np.append(kept, new)` leave one object, larger each time, that the
collector does not know. As with tensors that are extended, the largest is larger at each look.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from itertools import compress, pairwise
from typing import Any

from leakcheck.runtime.introspection.corners import Corners, are_kept, corners_of
from leakcheck.runtime.introspection.kinds import array_type

LEAST_SIZE = 2048  # bytes, or characters of a text
FEWEST_SIZES = 3  # looks at which the largest was larger than before
EVEN_WITHIN = 2.0  # from one stretch between looks to another, of what was gained a step
LEAST_STRETCH = 0.1  # of a window; in a shorter one what comes now and then is all or nothing

Buffers = dict[int, tuple[Any, int]]  # id -> the object and its size


def size_readers() -> dict[type, Callable[[Any], int]]:
    """Return kind -> how to read the size of one, past any override of the program's."""
    readers: dict[type, Callable[[Any], int]] = {
        str: str.__len__,
        bytes: bytes.__len__,
        bytearray: bytearray.__len__,
        io.BytesIO: _written,
        io.StringIO: _written,
    }
    array = array_type()
    return readers | ({array: array.nbytes.__get__} if array is not None else {})


def large(alike: Mapping[type, Sequence[Any]]) -> Buffers:
    """Return those of the buffers, by their kind, that are large enough to be looked at."""
    readers = size_readers()
    found: Buffers = {}
    for kind, things in alike.items():
        sizes = list(map(readers[kind], things))
        chosen = compress(zip(things, sizes, strict=True), map(LEAST_SIZE.__le__, sizes))
        found |= {id(thing): (thing, size) for thing, size in chosen}
    return found


def far_apart(steps: Sequence[int]) -> Sequence[int]:
    """Return which looks are far enough from one another to compare; all where too few are."""
    least_steps = LEAST_STRETCH * (steps[-1] - steps[0])
    chosen = [0]
    for i, step in enumerate(steps):
        if step - steps[chosen[-1]] >= least_steps:
            chosen.append(i)
    return chosen if len(chosen) >= FEWEST_SIZES else range(len(steps))


class Extended:
    """Compares, look by look, the largest buffer of each kind that comes or changes its size."""

    def __init__(self) -> None:
        self._first: dict[int, tuple[type, int]] = {}
        self._steps: list[int] = []
        self._largest: list[dict[type, int]] = []
        self._corners: list[dict[type, Corners | None]] = []  # of those, a look each

    def look(self, step: int, buffers: Buffers) -> None:
        """Take a look; the first is the state before the window."""
        if step in self._steps:
            return
        if not self._steps:
            self._first = {key: (type(one), size) for key, (one, size) in buffers.items()}
        elif len(self._steps) == 1:
            gone = [one for key, one in self._first.items() if not _is_same(buffers, key, one)]
            self._largest.append(dict(sorted(gone, key=lambda one: one[1])))
        if self._steps:
            changed = self._changed(buffers)
            self._largest.append({kind: size for kind, (_, size) in changed.items()})
            self._corners.append({kind: corners_of(one) for kind, (one, _) in changed.items()})
        self._steps.append(step)

    def in_place(self, buffers: Buffers) -> list[Any]:
        """Return those that are larger than at the first look and still the same object."""
        known = ((each, self._first.get(key)) for key, each in buffers.items())
        return [
            one
            for (one, size), first in known
            if first and first[0] is type(one) and first[1] < size
        ]

    def growing(self, buffers: Buffers) -> list[tuple[Any, float]]:
        """Return the buffers that were larger at each look, with what they gained a step."""
        if len(self._largest) < FEWEST_SIZES:
            return []
        changed = self._changed(buffers)
        return [(changed[kind][0], rate) for kind in changed if (rate := self._per_step(kind)) > 0]

    def _changed(self, buffers: Buffers) -> dict[type, tuple[Any, int]]:
        known = self._first.items()
        same = {key for key, one in known if _is_same(buffers, key, one)}
        changed = [each for key, each in buffers.items() if key not in same]
        return {type(each[0]): each for each in sorted(changed, key=lambda each: each[1])}

    def _per_step(self, kind: type) -> float:
        """Return how much the largest of a kind gained a step, 0 if not at each look and evenly."""
        sizes = [look.get(kind, 0) for look in self._largest]
        if 0 in sizes or sizes != sorted(sizes):
            return 0.0
        stretches = pairwise((self._steps[i], sizes[i]) for i in far_apart(self._steps))
        gains = [(size - past) / (step - since) for (since, past), (step, size) in stretches]
        even = 0 < max(gains) <= EVEN_WITHIN * min(gains)
        even &= are_kept([look.get(kind) for look in self._corners])
        return (sizes[-1] - sizes[0]) / (self._steps[-1] - self._steps[0]) if even else 0.0


def _is_same(buffers: Buffers, key: int, known: tuple[type, int]) -> bool:
    one, size = buffers.get(key, (None, 0))
    return (type(one), size) == known


def _written(file: io.BytesIO | io.StringIO) -> int:
    try:
        return type(file).tell(file)
    except ValueError:  # it is closed
        return 0
