"""A counter that rises within each turn of the loop around the steps, and is let go as it turns.

`total += loss` over the batches of an epoch keeps the graphs of them all, in an epoch too short for
that to be growth. Readings are taken at all kinds of distances from the turn before: they lie on
one line, if a number is added in each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import StatisticsError, correlation, linear_regression

from leakcheck.model import Notice, Reason
from leakcheck.runtime.readings.series import Series

RESOURCE = "graph.nodes"  # of which a step leaves as many as the step before
FEWEST_READINGS = 6
FEWEST_TURNS = 3  # among these: one that is longer than the others is a start
LEAST_STEPS = 10  # between the nearest reading to a turn and the farthest: no few inner steps
ON_ONE_LINE = 0.98  # correlation; with readings at random distances 0.8 and less was measured
LEAST_PER_STEP = 1.0


class Teeth:
    """How far behind the newest turn each slow reading was taken."""

    def __init__(self, step: int) -> None:
        """Begin with a loop that begins at `step`."""
        self._turned_at = step
        self._turn_of: dict[int, int] = {}  # by the step of a reading

    def turn(self, step: int) -> None:
        """Note that `step` is the first since the loop around the steps turned."""
        self._turned_at = step

    def read(self, step: int) -> None:
        """Note that the slow counters are read at `step`."""
        self._turn_of[step] = self._turned_at

    def notices(self, slow: Series, after: int) -> tuple[Notice, ...]:
        """Tell of graphs that rise within each turn, by the readings after a step."""
        steps, values = slow.column(RESOURCE, after=after)
        pairs = zip(steps, values, strict=True)
        known = [(self._turn_of[at], at, value) for at, value in pairs if at in self._turn_of]
        rises = len({turn for turn, *_ in known}) >= FEWEST_TURNS and rises_within(
            [at - turn for turn, at, _ in known], [value for *_, value in known]
        )
        told = Notice("epoch-sawtooth", Reason.of("released-at-turns", resources=(RESOURCE,)))
        return (told,) if rises else ()


def rises_within(since_turn: Sequence[int], values: Sequence[float]) -> bool:
    """Say whether values lie on a line that rises with the steps since the turn before each."""
    if len(values) < FEWEST_READINGS or max(since_turn) - min(since_turn) < LEAST_STEPS:
        return False
    try:
        rises = linear_regression(since_turn, values).slope >= LEAST_PER_STEP
        return rises and correlation(since_turn, values) >= ON_ONE_LINE
    except StatisticsError:  # they are all the same
        return False
