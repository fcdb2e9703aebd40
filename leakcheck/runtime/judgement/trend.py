"""Points in, a line and a judgement out: pure, no clocks, no torch.

The line is Theil-Sen's over bucket medians [Sen 1968], so a spike, an evaluation phase or a single
jump does not tilt it; significance is the Mann-Kendall rank test [Mann 1945]. Significance alone
is not growth: on a correct loop RSS creeps with a rank correlation above 0.6 in up to nine windows
of ten. A resource therefore *grows* only if all of this holds:

* the rank test rejects "no trend" at the level of this look,
* the whole interval of the slope is above zero and the slope above the noise floor,
* both halves climb, at rates within a factor of three: a plateau, a jump, a staircase of two
  steps, and a buffer that filled up are not growth,
* the total is large enough to matter,
* nothing was ever given back: no drop undoes half of the climb.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import median

BUCKETS = 48  # 1,128 pairs: about a millisecond a fit
FEWEST_POINTS = 5
# Of all looks at one resource together, on trendless noise; what passes must then be confirmed on
# new steps, in both halves, which noise passes in fewer than one case of ten.
FALSE_ALARM_RATE = 1e-2
HALVES_AGREE_WITHIN = 3.0
ALL_OF = 0.8  # a rise, that its jumps must make, for nothing else to have grown
LARGEST_DROP = 0.5
QUARTERS = 4  # of a run, in each of which what is emptied with an epoch was emptied
ABOUT = 0.1  # of a fall: peaks of what is emptied now and then differ by less
PARTS = 8  # of a run, that what loses memory slowly rises in
EVEN_WITHIN = 0.1
FEWEST_FALLS = 2  # by more than a step gains, or from a level: a collection may be one
EVEN_SHARE = 0.8
Z_95 = 1.96
EXACT_RANKS_UP_TO = 10  # below it the normal approximation of Kendall's S is poor


@dataclass(frozen=True, slots=True)
class Line:
    """A robust line through points; rates per step, `p` one-sided against "does not grow"."""

    per_step: float
    low: float
    high: float
    p: float
    first_half: float
    second_half: float
    total: float
    steps: int
    deepest_drop: float
    straight: bool
    even_share: float  # of the stretches between points, those that gain about `per_step`

    @property
    def halves(self) -> tuple[float, float]:
        """The rates of both halves."""
        return self.first_half, self.second_half


@dataclass(frozen=True, slots=True)
class Floor:
    """What growth must exceed to count: a rate per step and a total."""

    per_step: float
    total: float


def jumps_apart(steps: Sequence[int], values: Sequence[int]) -> float:
    """Return how many steps lie between the jumps that make all of a rise, 0 if it has no such.

    A large object kept at the end of each epoch: most readings between show no rise. Noise has
    jumps too, which add up to far more than what is left of them.
    """
    rises = [now - past for past, now in pairwise(values)]
    risen = values[-1] - values[0] if values else 0
    jumps = [rise for rise in rises if rise > max(rises) / 2]
    if risen <= 0 or len(jumps) < 2 or 2 * len(jumps) > len(rises):
        return 0.0
    return (steps[-1] - steps[0]) / len(jumps) if ALL_OF < sum(jumps) / risen < 1 / ALL_OF else 0.0


def fit(steps: Sequence[int], values: Sequence[float]) -> Line | None:
    """Fit the line; None below five points or when all steps are the same."""
    points = bucket_medians(steps, values)
    if len(points) < FEWEST_POINTS:
        return None
    slopes = _slopes(points)
    centre = median(slopes)
    low, high = _interval(slopes, len(points))
    middle = len(points) // 2
    levels = [value for _, value in points]
    return Line(
        per_step=centre,
        low=low,
        high=high,
        p=rank_p(levels),
        first_half=median(_slopes(points[: middle + 1])),
        second_half=median(_slopes(points[middle:])),
        total=levels[-1] - levels[0],
        steps=steps[-1] - steps[0],
        deepest_drop=_deepest_drop(levels),
        straight=_straight(points, centre),
        # malloc gives back some memory once: one jump, and everything beside it as even as before
        even_share=_share_near(_gains(points), centre),
    )


def agree(rates: Sequence[float], least: float = 0.0) -> bool:
    """Say whether all rates are above a least one, and about the same: within a factor of three."""
    return min(rates) > least and max(rates) <= HALVES_AGREE_WITHIN * min(rates)


def grows(line: Line, floor: Floor, level: float) -> bool:
    """Say whether the line is growth, at the false-alarm level of this look."""
    return (
        (line.p <= level or line.straight)
        and line.low > 0
        and line.per_step >= floor.per_step
        and line.total >= floor.total
        and agree(line.halves)
        and line.deepest_drop <= LARGEST_DROP * line.total
    )


def even_rate(steps: Sequence[int], values: Sequence[float]) -> float | None:
    """Return what was gained on nearly every step alike; None if steps differ.

    What a look or a collection adds or takes at once bends a line through few points, not this. Not
    where it falls again and again: an epoch's end takes away what its steps added.
    """
    gains = _gains(list(zip(steps, values, strict=True)))
    if len(gains) < FEWEST_POINTS:
        return None
    usual = median(gains)
    falls = sum(gain < -usual for gain in gains)
    even = usual > 0 and falls < FEWEST_FALLS and _share_near(gains, usual) >= EVEN_SHARE
    return usual if even else None


def is_even(steps: Sequence[int], values: Sequence[float]) -> bool:
    """Say whether exactly the same was gained a step between all readings."""
    gains = _gains(list(zip(steps, values, strict=True)))
    return len(gains) > 1 and max(gains) == min(gains)


def rises_throughout(steps: Sequence[int], values: Sequence[float]) -> bool:
    """Say whether values rise in each of `PARTS` equal stretches of the steps, and never fall."""
    span = (steps[-1] - steps[0]) / PARTS
    ends = [steps[0] + (part + 1) * span for part in range(PARTS)]
    levels = [max(v for s, v in zip(steps, values, strict=True) if s <= end) for end in ends]
    rose = all(now > past for past, now in pairwise([values[0], *levels]))
    return rose and all(now >= past for past, now in pairwise(values))


def floor_rise(steps: Sequence[int], values: Sequence[float]) -> float:
    """Return by how much the lowest values rose, evenly from quarter to quarter; 0 if they did not.

    Nor if nothing was ever given back, or as much at once: what stays beside what comes and goes
    is told from that only when it is more.
    """
    span = (steps[-1] - steps[0]) / QUARTERS if steps else 0.0
    if not span:
        return 0.0
    parts: list[list[float]] = [[] for _ in range(QUARTERS)]
    for step, value in zip(steps, values, strict=True):
        parts[min(QUARTERS - 1, int((step - steps[0]) / span))].append(value)
    if not all(parts):
        return 0.0
    lows = [min(part) for part in parts]
    rises = [now - past for past, now in pairwise(lows)]
    return lows[-1] - lows[0] if agree(rises) and 0 < _deepest_drop(values) < sum(rises) else 0.0


def stood_as_high(before: Sequence[float], level: float) -> bool:
    """Say whether values came down again and again from about a level, to a tenth of a fall."""
    fall = _deepest_drop(before) if before else 0.0
    high = [value >= level - ABOUT * fall for value in before]
    came_down = sum(past and not now for past, now in pairwise(high))
    return fall > 0 and came_down >= FEWEST_FALLS


def usual_gain(steps: Sequence[int], values: Sequence[float]) -> float:
    """Return the median of what was gained a step between two readings, 0 with fewer than two."""
    gains = _gains(list(zip(steps, values, strict=True)))
    return median(gains) if gains else 0.0


def spread(steps: Sequence[int], values: Sequence[float], per_step: float) -> float:
    """Return how far values usually are from a line: the median of the distances, with no sign."""
    offsets = [value - per_step * step for step, value in zip(steps, values, strict=True)]
    middle = median(offsets)
    return median(abs(offset - middle) for offset in offsets)


def stair_rates(
    steps: Sequence[int], values: Sequence[float], rise: float
) -> tuple[float, float] | None:
    """Return the least and greatest rate of what rises by `rise` at equal distances; else None.

    Between two readings that n rises lie apart the distance is more than the steps between them by
    n + 1 and less than these by n - 1; all pairs together leave little room.
    """
    count = [round((value - values[0]) / rise) for value in values]
    shortest, longest = 0.0, math.inf
    for i, step in enumerate(steps):
        for j in range(i + 1, len(steps)):
            apart, rises = steps[j] - step, count[j] - count[i]
            shortest = max(shortest, apart / (rises + 1)) if rises >= 0 else math.inf
            longest = min(longest, apart / (rises - 1)) if rises > 1 else longest
    return (rise / longest, rise / shortest) if shortest <= longest < math.inf else None


def level_of_look(look: int) -> float:
    """Return the level the `look`-th look (from 1) may spend; all looks together spend the rate.

    1/(1*2) + 1/(2*3) + ... = 1, so looking again and again does not add up to a false alarm.
    """
    return FALSE_ALARM_RATE / (look * (look + 1))


def bucket_medians(steps: Sequence[int], values: Sequence[float]) -> list[tuple[float, float]]:
    """Reduce points, sorted by step, to at most `BUCKETS` medians of equally many neighbours."""
    count = len(steps)
    size = max(1, math.ceil(count / BUCKETS))
    points = []
    for start in range(0, count - count % size, size):
        chunk = slice(start, start + size)
        points.append((float(median(steps[chunk])), float(median(values[chunk]))))
    return points if points and points[-1][0] > points[0][0] else []


def settled_after(steps: Sequence[int], fewest: int) -> int:
    """Return the step after which readings are judged: the first quarter is warm-up.

    At least `fewest` steps are left out, because the first optimizer step imports torch._dynamo
    (73 MB) and makes the optimizer's state. What warms up longer shows as halves that disagree.
    """
    if not steps:
        return fewest
    return max(fewest, steps[0] + (steps[-1] - steps[0]) // 4)


def rank_p(levels: Sequence[float]) -> float:
    """Return the one-sided p-value of Kendall's S: how often noise climbs at least this well."""
    count = len(levels)
    if count < 3:
        return 1.0
    score = sum(
        (levels[j] > levels[i]) - (levels[j] < levels[i])
        for i in range(count)
        for j in range(i + 1, count)
    )
    ties = [levels.count(level) for level in set(levels)]
    if count <= EXACT_RANKS_UP_TO and max(ties) == 1:
        return _exact_p(count, score)
    variance = count * (count - 1) * (2 * count + 5)
    variance -= sum(tie * (tie - 1) * (2 * tie + 5) for tie in ties)
    if variance <= 0:
        return 1.0
    z = (score - (score > 0) + (score < 0)) / math.sqrt(variance / 18)
    return 0.5 * math.erfc(z / math.sqrt(2))


def _exact_p(count: int, score: int) -> float:
    inversions = (count * (count - 1) // 2 - score) // 2
    return sum(_permutations_by_inversions(count)[: inversions + 1]) / math.factorial(count)


@lru_cache(maxsize=EXACT_RANKS_UP_TO)
def _permutations_by_inversions(count: int) -> tuple[int, ...]:
    table = [1]
    for size in range(2, count + 1):
        longer = [0] * (len(table) + size - 1)
        for inversions, ways in enumerate(table):
            for shift in range(size):
                longer[inversions + shift] += ways
        table = longer
    return tuple(table)


def _slopes(points: Sequence[tuple[float, float]]) -> list[float]:
    return [
        (later - value) / (after - step)
        for i, (step, value) in enumerate(points)
        for after, later in points[i + 1 :]
        if after > step
    ] or [0.0]


def _interval(slopes: list[float], count: int) -> tuple[float, float]:
    # Sen's interval: ranks of the sorted slopes around the median, 95 %
    spread = Z_95 * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    ordered = sorted(slopes)
    lower = max(0, math.floor((len(ordered) - spread) / 2))
    upper = min(len(ordered) - 1, math.ceil((len(ordered) + spread) / 2))
    return ordered[lower], ordered[upper]


def _deepest_drop(levels: Sequence[float]) -> float:
    peak, deepest = levels[0], 0.0
    for level in levels:
        peak = max(peak, level)
        deepest = max(deepest, peak - level)
    return deepest


def _straight(points: Sequence[tuple[float, float]], per_step: float) -> bool:
    # a counter that gains the same on every step is no noise, whatever the rank test can know
    offsets = [value - per_step * step for step, value in points]
    spread = max(offsets) - min(offsets)
    climbed = per_step * (points[-1][0] - points[0][0])
    return climbed > 0 and spread <= 0.04 * climbed


def _gains(points: Sequence[tuple[float, float]]) -> list[float]:
    return [
        (now - past) / (then - first)
        for (first, past), (then, now) in pairwise(points)
        if then > first
    ]


def _share_near(gains: Sequence[float], per_step: float) -> float:
    return sum(abs(gain - per_step) <= EVEN_WITHIN * abs(per_step) for gain in gains) / len(gains)
