"""What requests leave behind, by their outcome: those that finished, and those that were aborted.

How many entries a container has rises with the number of both. Where their mixture is not always
the same, as of clients that go away when they like, least squares tell what one of each leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from leakcheck.runtime.readings.series import Series

FINISHED, ABORTED = "finished", "aborted"
FEWEST_ROWS = 30
LEAST_GAIN = 2.0  # entries, in two thirds of so many looks
SURE = 4.0  # times its standard error, that the difference between the outcomes is


def kept_by_outcome(ended: Series, entries: str) -> tuple[float, float] | None:
    """Return how many entries a request that finished leaves, and one that was aborted.

    `ended` has the number of `entries`, and how many requests had finished and were aborted. None
    if they are few, or the difference is not sure.
    """
    columns = [ended.column(name)[1] for name in (FINISHED, ABORTED, entries)]
    if len(columns[2]) < FEWEST_ROWS or len({*map(len, columns)}) > 1:
        return None
    return _least_squares(*map(_centred, columns))


def goes_on(ended: Series, entries: str) -> bool:
    """Say whether a container was seen to grow further.

    What only the requests in flight have in it is as long at the end as at first.
    """
    _, lengths = ended.column(entries)
    third = len(lengths) // 3
    return len(lengths) >= FEWEST_ROWS and (
        fmean(lengths[-third:]) - fmean(lengths[:third]) >= LEAST_GAIN
    )


def _centred(values: Sequence[int]) -> list[float]:
    mean = fmean(values)
    return [value - mean for value in values]


def _least_squares(
    first: Sequence[float], second: Sequence[float], values: Sequence[float]
) -> tuple[float, float] | None:
    """Return what one of each count adds to a value, if they surely add different amounts."""
    ff, ss, fs = _dot(first, first), _dot(second, second), _dot(first, second)
    fv, sv = _dot(first, values), _dot(second, values)
    apart = ff * ss - fs * fs
    if apart <= 1e-9 * ff * ss:
        return None
    one, other = (fv * ss - sv * fs) / apart, (sv * ff - fv * fs) / apart
    left = [v - one * f - other * s for f, s, v in zip(first, second, values, strict=True)]
    variance = _dot(left, left) / (len(left) - 3) * (ff + ss + 2 * fs) / apart
    return (one, other) if (other - one) ** 2 > SURE**2 * variance else None


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
