"""Does a series of byte counts at equal phase grow, and is it a leak or fragmentation?

Pure arithmetic over one number a step. The first steps are warm-up (optimizer state, workspaces and
autotuning arrive there); a series that rose and then stayed is steady.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise
from math import sqrt
from statistics import median
from typing import Final, Literal, TypeVar

from leakcheck.memory.rounding import ALIGN_BYTES, LARGE_SEGMENT_BYTES

MemoryVerdict = Literal["leak", "fragmentation", "steady", "unclear"]

_T = TypeVar("_T")

WARMUP_STEPS: Final = 2
FEWEST_SETTLED: Final = 4
_FEWEST_RANKED: Final = 6  # below it even a perfect order is no evidence at 1 %
_SURE: Final = 2.58  # two-sided 1 % of the normal distribution
_WORTH_A_WORD: Final = 0.02  # of the reserved bytes; less excess is not fragmentation
_MOST_PAIRED: Final = 300  # points in the pairwise statistics; more are thinned out


@dataclass(frozen=True, slots=True)
class SeriesGrowth:
    """How a series moves over the settled steps; `grows` is the answer, `reason` why."""

    grows: bool | None
    per_step: float
    total: int
    steps: int
    reason: str


def grows(series: Sequence[int], least_per_step: float = ALIGN_BYTES) -> SeriesGrowth:
    """Judge one series, a value a step at equal phase.

    Growing means: the later half of the settled steps still rises, by rank (Mann-Kendall at 1 %)
    or in equal positive jumps, by at least `least_per_step` bytes (a block of 512 by default) in
    the Theil-Sen slope. `grows` is None with too few steps.
    """
    settled = list(series[WARMUP_STEPS:])
    if len(settled) < FEWEST_SETTLED:
        need = WARMUP_STEPS + FEWEST_SETTLED
        return SeriesGrowth(None, 0.0, 0, len(settled), f"{len(series)} steps, {need} are needed")
    total = settled[-1] - settled[0]
    slope = _slope(settled)
    late = settled[len(settled) // 2 :]
    if slope < least_per_step or total < least_per_step * (len(settled) - 1) / 2:
        return SeriesGrowth(False, slope, total, len(settled), "flat")
    if not _rises(settled):
        if len(settled) < _FEWEST_RANKED and all(b > a for a, b in pairwise(settled)):
            return SeriesGrowth(None, slope, total, len(settled), "rises, too few steps to be sure")
        return SeriesGrowth(False, slope, total, len(settled), "up and down")
    if _slope(late) < least_per_step or late[-1] <= late[0]:
        return SeriesGrowth(False, slope, total, len(settled), "rose, then stayed")
    return SeriesGrowth(True, slope, total, len(settled), "rises step after step")


def excess_grows(reserved: Sequence[int], live_peaks: Sequence[int]) -> SeriesGrowth:
    """Whether reserved bytes outgrow the highest live bytes so far: fragmentation.

    A longer input raises both once; only what no live byte ever needed is counted. The excess must
    grow by a large segment and by 2 % of what is reserved, and still in the later half. One jump is
    one longer input, whose blocks do not fit where the others were: without it, it must grow, too.
    """
    excess = [r - top for r, top in zip(reserved, accumulate(live_peaks, max), strict=True)]
    settled = excess[WARMUP_STEPS:]
    if len(settled) < FEWEST_SETTLED:
        return grows(excess)
    total, slope = settled[-1] - settled[0], _slope(settled)
    worth = max(LARGE_SEGMENT_BYTES, _WORTH_A_WORD * reserved[-1])
    if total < worth:
        return SeriesGrowth(False, slope, total, len(settled), "reserved follows the live bytes")
    if total - max(b - a for a, b in pairwise(settled)) < worth:
        return SeriesGrowth(False, slope, total, len(settled), "reserved rose once")
    late = settled[len(settled) // 2 :]
    if late[-1] - late[0] < LARGE_SEGMENT_BYTES:
        return SeriesGrowth(False, slope, total, len(settled), "reserved rose, then stayed")
    return SeriesGrowth(
        True, total / (len(settled) - 1), total, len(settled), "reserved outgrows live"
    )


def verdict(live: SeriesGrowth, excess: SeriesGrowth) -> MemoryVerdict:
    """Leak before fragmentation: live bytes that grow drag the reserved ones along."""
    if live.grows is None:
        return "unclear"
    if live.grows:
        return "leak"
    return "fragmentation" if excess.grows else "steady"


def _rises(values: Sequence[int]) -> bool:
    jumps = {b - a for a, b in pairwise(values)}
    if len(jumps) == 1:
        return jumps.pop() > 0
    return _mann_kendall(_thinned(values)) > _SURE


def _mann_kendall(values: Sequence[int]) -> float:
    """The rank statistic over its standard deviation, for a series without ties (Kendall 1975)."""
    n = len(values)
    score = sum((b > a) - (b < a) for a, b in combinations(values, 2))
    deviation = sqrt(n * (n - 1) * (2 * n + 5) / 18)
    return (score - 1) / deviation if score > 0 else 0.0


def _slope(values: Sequence[int]) -> float:
    """Theil-Sen: the median of the slopes between all pairs of points."""
    if len(values) < 2:
        return 0.0
    points = _thinned(list(enumerate(values)))
    return median((b - a) / (j - i) for (i, a), (j, b) in combinations(points, 2))


def _thinned(values: Sequence[_T]) -> Sequence[_T]:
    stride = -(-len(values) // _MOST_PAIRED)
    return values if stride == 1 else values[::stride]
