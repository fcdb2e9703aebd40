"""Found growing twice, and hardly larger the second time: it was emptied in between.

Something beside it grows on, so that the counters alone do not tell: a list emptied at the end of
each epoch, beside a `deque(maxlen=20000)` that still fills.
"""

from __future__ import annotations

from collections.abc import Sequence

from leakcheck.model import Holder, Suspect

EMPTIED_BELOW = 0.5  # of what it should have gained since, as the steps went on


def kept(
    before: Sequence[Suspect], now: Sequence[Suspect], seen_before: int, seen: int
) -> tuple[Suspect, ...]:
    """Return those of `now` that were not emptied since they were among those of `before`.

    `seen_before`, `seen`: steps watched by then. What grew all along gains as the steps do.
    """
    if not 0 < seen_before < seen:
        return tuple(now)
    most = 1.0 + EMPTIED_BELOW * (seen - seen_before) / seen_before
    lengths = {_path(one): _length(one) for one in before}
    return tuple(one for one in now if not 0.0 < _length(one) < most * lengths.get(_path(one), 0.0))


def _path(suspect: Suspect) -> tuple[Holder | str, ...]:
    """Return how its container is reached: one dictionary may hold two that grow."""
    return (suspect.holder, *(link.edge for link in suspect.links))


def _length(suspect: Suspect) -> float:
    """Return how many elements its container holds; 0 if that is not known."""
    sizes = (link.retained_bytes or 0 for link in suspect.links if link.suspect)
    held_bytes = max(sizes, default=0)
    if not suspect.bytes_per_step or not suspect.objects_per_step:
        return 0.0
    return held_bytes * suspect.objects_per_step / suspect.bytes_per_step
