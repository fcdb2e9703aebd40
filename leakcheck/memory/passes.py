"""Whole passes, or the layers of one? Both repeat; only a pass begins and ends at the same base.

A layer works while its input lives, and that is what the layer before has made: something of each
repetition lives through the peak of the next. A pass gives everything back before: a training step
takes down what it laid up, last first, and what a loop still holds of the last turn (a batch, a
loss) is replaced before the next one is at its highest. Where an inference loop keeps an output
that weighs much, the layers within the repetition tell that it is a pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import eq
from statistics import correlation
from typing import Final

from leakcheck.memory.trace import Event

SHARE_OF_PASSES: Final = 0.8  # so many repetitions must look like a pass
_MOST_KEPT: Final = 0.25  # of the rise; recorded forward passes keep 0.25 to 1 of a layer's
_MOST_HANDED_ON: Final = 0.01  # of the rise
_MOST_VARYING: Final = 0.1  # where it differs each time: equal layers hand on equal bytes
_FEWEST_LAID_UP: Final = 6
_LAST_FIRST: Final = -0.8  # rank correlation of making and freeing
_FEWEST_LAYERS: Final = 3
_SAME_LAYER: Final = 0.9
_LAGS_TRIED: Final = 24
_TIMES_IN_A_PERIOD: Final = {1: _LAGS_TRIED, 2: 6, 3: 6, 4: 6}  # of a key -> lags tried

Key = tuple[str, int]


class Lives:
    """When each block is made and freed; `partner` is the other event of the block, or -1."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.partner = [-1] * len(events)
        self.sizes = [event.size for event in events]
        self.made = [event.kind == "alloc" for event in events]
        self.level = [0]
        born: dict[int, int] = {}
        for at, event in enumerate(events):
            change = 0
            if event.kind == "alloc":
                born[event.block] = at
                change = event.size
            elif event.kind == "free":
                before = born.pop(event.block, -1)
                if before >= 0:
                    self.partner[at], self.partner[before] = before, at
                    self.sizes[at] = events[before].size
                change = -self.sizes[at]
            self.level.append(self.level[-1] + change)

    def requests(self, places: Sequence[int]) -> list[Key]:
        """What is asked for at each place: made or freed, and how many bytes."""
        return [("alloc" if self.made[at] else "free", self.sizes[at]) for at in places]

    def rhythm(self, places: Sequence[int]) -> list[Key]:
        """How many events each block lives, which another batch size does not change."""
        kinds = ("free", "alloc")
        spans = (abs(self.partner[at] - at) if self.partner[at] >= 0 else 0 for at in places)
        return [(kinds[self.made[at]], span) for at, span in zip(places, spans, strict=True)]


def whole_passes(lives: Lives, boundaries: Sequence[int]) -> bool:
    """Whether what lies between the boundaries are passes, not the layers of one."""
    stretches = list(zip(boundaries, boundaries[1:], boundaries[2:], strict=False))
    handed_on = [_handed_on(lives, *stretch) for stretch in stretches]
    varies = len(set(handed_on)) > len(handed_on) / 2
    most = _MOST_VARYING if varies else _MOST_HANDED_ON
    passes = 0
    for (begin, end, after), handed in zip(stretches, handed_on, strict=True):
        if _gives_back(lives, begin, end, after):
            rise = max(lives.level[begin : end + 1]) - lives.level[begin]
            light = handed <= most * rise
            passes += light or _last_first(lives, begin, end) or _holds_layers(lives, begin, end)
    return bool(stretches) and passes >= SHARE_OF_PASSES * len(stretches)


def lags(keys: Sequence[Key]) -> Iterator[int]:
    """Candidate periods: the distances between requests of the rarest repeating keys."""
    counts = Counter(keys)
    rare = {key for _, key in sorted((n, k) for k, n in counts.items() if n >= 2)[:_LAGS_TRIED]}
    places: dict[Key, list[int]] = {key: [] for key in rare}
    for at, key in enumerate(keys):
        if key in rare:
            places[key].append(at)
    found: set[int] = set()
    for times, tried in _TIMES_IN_A_PERIOD.items():
        gaps = Counter(
            b - a for each in places.values() for a, b in zip(each, each[times:], strict=False)
        )
        found.update(gap for gap, _ in gaps.most_common(tried))
    yield from sorted(lag for lag in found if lag * 2 <= len(keys))


def _outliving(lives: Lives, begin: int, end: int) -> list[int]:
    made, partner = lives.made, lives.partner
    return [at for at in range(begin, end) if made[at] and not at < partner[at] < end]


def _gives_back(lives: Lives, begin: int, end: int, after: int) -> bool:
    """Whether little of what is made is kept for long, and little that was made long ago freed."""
    partner, sizes, level = lives.partner, lives.sizes, lives.level
    rise = max(level[begin : end + 1]) - level[begin]
    outliving = _outliving(lives, begin, end)
    kept = sum(sizes[at] for at in outliving if not end <= partner[at] < after)
    older = 2 * begin - end  # made before the repetition before
    freed = (at for at in range(begin, end) if not lives.made[at] and 0 <= partner[at] < older)
    return max(kept, sum(sizes[at] for at in freed)) < _MOST_KEPT * rise


def _handed_on(lives: Lives, begin: int, end: int, after: int) -> int:
    """The bytes that live on through the peak of the next repetition, and end in it."""
    peak = max(range(end, after + 1), key=lives.level.__getitem__)
    outliving = _outliving(lives, begin, end)
    return sum(lives.sizes[at] for at in outliving if peak <= lives.partner[at] < after)


def _last_first(lives: Lives, begin: int, end: int) -> bool:
    """Whether what lives at the peak is freed in the reverse order of its making: a backward."""
    peak = max(range(begin, end + 1), key=lives.level.__getitem__)
    freed = [p for p in lives.partner[begin:peak] if peak <= p < end]
    if len(freed) < _FEWEST_LAID_UP:
        return False
    ranks = {at: rank for rank, at in enumerate(sorted(freed))}
    return correlation(range(len(freed)), [ranks[at] for at in freed]) <= _LAST_FIRST


def _holds_layers(lives: Lives, begin: int, end: int) -> bool:
    """Whether equal layers make up half of it, without going on beyond its end."""
    keys = lives.requests(range(begin, end))
    following = lives.requests(range(end, min(2 * end - begin, len(lives.made))))
    for lag in lags(keys):
        repeated = _longest_run(map(eq, keys, keys[lag:]))
        enough = max((_FEWEST_LAYERS - 1) * lag, len(keys) // 2 - lag)
        across = sum(map(eq, keys[-lag:], following[:lag]))
        if repeated >= enough and across < _SAME_LAYER * lag:
            return True
    return False


def _longest_run(same: Iterator[bool]) -> int:
    longest = run = 0
    for each in same:
        run = run + 1 if each else 0
        longest = max(longest, run)
    return longest
