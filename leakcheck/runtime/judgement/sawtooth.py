"""What the turns of the loop around the steps tell of a counter, in runs too short for more.

`total += loss` over the batches of an epoch keeps the graphs of them all, in an epoch too short for
that to be growth. Readings are taken at all kinds of distances from the turn before: they lie on
one line, if a number is added in each step. What each evaluation adds is higher from turn to turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import StatisticsError, correlation, linear_regression

from leakcheck.model import Notice, Reason
from leakcheck.runtime.judgement.judge import LEAST_RISEN
from leakcheck.runtime.readings.meters import COUNTED_EXACTLY
from leakcheck.runtime.readings.series import Series

RESOURCE = "graph.nodes"  # of which a step leaves as many as the step before
FEWEST_READINGS = 6
FEWEST_HIGHER = 4  # turns: two rises may be a start, and what a first evaluation leaves
FEWEST_TURNS = 3  # among these: one that is longer than the others is a start
LEAST_STEPS = 10  # between the nearest reading to a turn and the farthest: no few inner steps
ON_ONE_LINE = 0.98  # correlation: of six readings at random, one set in 3,600 (simulated)
MOST_READ = 2048  # readings that are known, as many as a series keeps
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
        if len(self._turn_of) > MOST_READ:
            del self._turn_of[next(iter(self._turn_of))]

    def higher_each_turn(self, slow: Series, after: int) -> list[str]:
        """Name the counters that are higher in each turn than ever before, to the end."""
        return [name for name in COUNTED_EXACTLY if self._is_higher(*slow.column(name, after))]

    def _is_higher(self, steps: Sequence[int], values: Sequence[int]) -> bool:
        by_turn: dict[int, list[int]] = {}
        for step, value in zip(steps, values, strict=True):
            if step in self._turn_of:
                by_turn.setdefault(self._turn_of[step], []).append(value)
        levels = list(by_turn.values())
        higher = all(max(before) < min(now) for before, now in pairwise(levels))
        rose = levels[-1][-1] - levels[0][0] if levels else 0
        return len(levels) >= FEWEST_HIGHER and higher and rose >= LEAST_RISEN

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
