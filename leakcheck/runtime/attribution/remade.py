"""A container that each step makes anew: does it hold what it held before, and more?

`self.kept = [each.clone() for each in self.kept] + [new]` keeps everything, and nothing in it is
older than a step. The list of an episode that is longer than the last holds nothing of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from leakcheck.runtime.attribution.way import Way
from leakcheck.runtime.introspection.corners import Corners, are_kept, corners_of
from leakcheck.runtime.introspection.kinds import is_of
from leakcheck.runtime.introspection.objects import is_tensor

COMPARED = 8  # elements, spread over those that it had at the first look
FEWEST_VALUES = 3  # among these: rewards of 1.0, or flags of 0 and 1, are alike in every episode
FEWEST_GAINED = 2
FEWEST_LOOKS = 4  # that gain alike, where the values lie in a device's memory


class Remade:
    """What is at the end of one way, as it was at each look; nothing of it is held between."""

    def __init__(self, way: Way) -> None:
        """Nothing is read before the first look."""
        self._way = way
        self._looks: list[tuple[int, int]] = []  # step, length
        self._values: dict[int, Corners | None] = {}  # at the first look, by position
        self._are_kept = True

    def look(self, step: int) -> None:
        """Read how long it is, and whether the values of the first look are there."""
        elements = _elements(self._way.content())
        if not self._looks:
            self._values = {at: _value(elements[at]) for at in _spread(len(elements))}
        elif len(elements) < self._looks[0][1]:
            self._are_kept = False
        else:
            pairs = ((known, _value(elements[at])) for at, known in self._values.items())
            self._are_kept &= all(are_kept(pair) for pair in pairs)
        self._looks.append((step, len(elements)))

    def length(self) -> int:
        """Return how long it is now."""
        return self._way.length() or 0

    @property
    def gained(self) -> int:
        """How many more elements it has than at the first look, 0 if it does not hold those."""
        if len(self._looks) < 2 or not self._are_kept or not (self._differ or self._gains_alike):
            return 0
        gained = self._looks[-1][1] - self._looks[0][1]
        return gained if gained >= FEWEST_GAINED else 0

    @property
    def _differ(self) -> bool:
        known = {value for value in self._values.values() if value is not None}
        return len(known) >= FEWEST_VALUES

    @property
    def _gains_alike(self) -> bool:
        """Whether it gains the same number in every step between all looks, as no episode does."""
        rates = {
            (length - before) / (step - since)
            for (since, before), (step, length) in pairwise(self._looks)
            if step > since
        }
        unread = all(value is None for value in self._values.values())
        return unread and len(self._looks) >= FEWEST_LOOKS and len(rates) == 1


def _elements(container: Any) -> Sequence[Any]:
    return list(list.__iter__(container)) if is_of(container, list) else ()


def _value(element: Any) -> Corners | None:
    return corners_of(element) if is_tensor(type(element)) else None


def _spread(length: int) -> set[int]:
    """Return up to `COMPARED` positions, the first and the last among them."""
    last = length - 1
    return {round(at * last / (COMPARED - 1)) for at in range(COMPARED)} if length else set()
