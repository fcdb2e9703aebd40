"""After a loop was found steady: does anything stand higher than it ever did?

A leak may begin in step 3,000, with the first evaluation. The quick readings go on at no cost, the
slow ones rarely; what passes its highest level so far by a margin has the watch begun again. The
margin doubles each time, so that a long run pays for it only a few times. What stood high for a
while, as cycles do until they are collected, is no level of a steady loop: it would hide a leak
until that had gained as much.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from leakcheck.runtime.judgement.judge import judge_of
from leakcheck.runtime.readings.meters import HELD_BACK, unit_of
from leakcheck.runtime.readings.series import Series

LEAST_BYTES = 1 << 20  # a longer batch, an evaluation, a checkpoint written take as much at once
LEAST_HELD_BACK_BYTES = 64 << 20  # an allocator keeps what an evaluation freed
LEAST_BLOCKS = 2500  # CPython keeps 2,000 tuples of a length for later, and fills that up slowly


class Vigil:
    """The highest level of each judged resource, and by how much it may be passed."""

    def __init__(self) -> None:
        self._limits: dict[str, float] = {}
        self._margins: dict[str, float] = {}
        self._highest: dict[str, int] = {}  # since the limits were last set

    def begin(self, sources: Iterable[Series]) -> None:
        """Take what was read so far as the levels of a steady loop."""
        for series in sources:
            for resource in series.resources:
                judge = judge_of(resource)
                steps, values = series.column(resource)
                if judge is not None and values:
                    least = _least(resource, judge.floor.total)
                    margin = self._margins.setdefault(resource, least)
                    limit = max(_late(steps, values)) + margin
                    self._limits[resource] = max(limit, self._limits.get(resource, limit))
        self._highest.clear()

    def rose(self, readings: Mapping[str, int]) -> bool:
        """Say whether a level was passed; its margin is doubled then (1 us)."""
        highest = self._highest
        for name, value in readings.items():
            if value > highest.get(name, -1):
                highest[name] = value
        passed = [name for name, value in readings.items() if value > self._limits.get(name, value)]
        for name in passed:
            self._margins[name] *= 2
        return bool(passed)

    def lower(self) -> None:
        """Lower each limit to just above the highest reading since the last call."""
        for name, highest in self._highest.items():
            if name in self._limits:
                self._limits[name] = min(self._limits[name], highest + self._margins[name])
        self._highest.clear()

    def allow(self, readings: Mapping[str, int]) -> None:
        """Raise the limits above these: garbage in them would trigger a collection at each look."""
        for name, limit in self._limits.items():
            if readings.get(name, limit) > limit:
                self._limits[name] = readings[name] + self._margins[name]


def _late(steps: Sequence[int], values: Sequence[int]) -> Sequence[int]:
    """Return the values of the last third of the steps."""
    since = steps[-1] - (steps[-1] - steps[0]) / 3
    return [value for step, value in zip(steps, values, strict=True) if step >= since]


def _least(resource: str, floor_total: float) -> float:
    if resource == "python.blocks":
        return LEAST_BLOCKS
    if resource.endswith(HELD_BACK):
        return LEAST_HELD_BACK_BYTES
    return max(floor_total, LEAST_BYTES) if unit_of(resource) == "B" else floor_total
