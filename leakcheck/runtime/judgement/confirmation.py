"""Stage two, paid only when something seems to grow: is it so?

A suspicion is confirmed on new steps, between collections of garbage, so that noise, cycles
waiting for the collector and a buffer that has just filled up are acquitted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import sqrt
from statistics import median

from leakcheck.model import Notice, Reason
from leakcheck.runtime import outlook
from leakcheck.runtime.judgement import rare
from leakcheck.runtime.judgement.harmless import stopped
from leakcheck.runtime.judgement.judge import (
    LEAST_RISEN,
    Reading,
    added_at_once,
    counts_since,
)
from leakcheck.runtime.judgement.patience import WORTH_A_NOTICE
from leakcheck.runtime.judgement.trend import HALVES_AGREE_WITHIN, fit, is_even, stair_rates
from leakcheck.runtime.readings.categories import resource_of
from leakcheck.runtime.readings.meters import (
    COUNTED_EXACTLY,
    HEAP,
    HELD_BACK,
    NEWEST_NODES,
    is_in_use,
    place_name,
    unit_of,
)
from leakcheck.runtime.readings.series import GARBAGE, Series
from leakcheck.runtime.readings.watching import Watch

LONGEST_CONFIRMATION_STEPS = 400
AGREES_FROM = 0.5  # share of the suspected rate that each half of the new steps must show
# between collected readings we left up to 30 blocks behind in a half: counters of ours that passed
# 256, kinds of objects seen for the first time
OWN_BLOCKS = 40
STANDS_BELOW = 0.1  # of the suspected rate, from one reading to the next
STEADILY = 0.8  # of the growth at first, at the end of a long confirmation
AT_ONCE = 0.2  # of the growth, at most, in one half where it comes in one jump in the other
AGREE_AT_TIMES = 2.0  # the halves, where what comes every hundred steps was in both
FEWEST_APART_STEPS = 3.0  # additions, for those in a confirmation not to be counted well
CHANCE = 2.0  # deviations that the halves of what comes at random may differ by
SLACK_BYTES = 32 << 10  # that the halves of a confirmation may differ by beside
CONFIRM_OTHER_STEPS = 100  # of bytes, which jump
IN_TENSORS = 0.5  # of what memory gained, for it to be no library's
LEAST_OF_ONE_STEP = 0.1  # of what memory gains, that is in tensors of the newest step


@dataclass(slots=True)
class Confirmation:
    """Three collected readings at the start, middle and end of a stretch of new steps."""

    suspected: list[Reading]
    begin: int
    length: int
    along: list[Reading] = field(default_factory=list)  # confirmed too, if they grow as well
    taken: Series = field(init=False)
    garbage_bytes: int = 0

    def __post_init__(self) -> None:
        """Make room for the readings: kept as objects, they counted as growth of 12 blocks each."""
        names = [reading.resource for reading in (*self.suspected, *self.along)]
        in_use = [HEAP, *filter(is_in_use, names)]
        of_one_step = (NEWEST_NODES, "tensors", *in_use, *map(_temporaries_beside, in_use))
        self.taken = Series(6, list(dict.fromkeys((*names, *of_one_step))))

    @property
    def next_step(self) -> int:
        """The step of the next collected reading."""
        return self._due[min(len(self.taken), len(self._due) - 1)]

    @property
    def end(self) -> int:
        """The step of the last collected reading."""
        return self.begin + self.length

    @property
    def _middle(self) -> int:
        return self.begin + self.length // 2

    @property
    def _due(self) -> tuple[int, ...]:
        # between the ends of a long one, in case the run ends before
        within = (50, 100, 200) if self.length > LONGEST_CONFIRMATION_STEPS else ()
        return (self.begin, *(self.begin + steps for steps in within), self._middle, self.end)

    def _levels(self, resource: str) -> tuple[int, ...]:
        """Return what was read at the begin, in the middle and at the end; () before that."""
        _, levels = self.taken.column(resource)
        return (levels[0], *levels[-2:]) if len(levels) == len(self._due) else ()

    def _halves(self, resource: str) -> tuple[int, int]:
        """Return how many steps lie between those readings: each may come later than it is due."""
        steps, _ = self.taken.column(resource)
        return steps[-2] - steps[0], steps[-1] - steps[-2]

    def read(self, watch: Watch, step: int) -> bool:
        """Take a collected reading; True when it was the last."""
        readings = watch.checkpoint(step, collect=True)
        if not len(self.taken):
            self.garbage_bytes = readings.get(GARBAGE, 0)
        known = {name: readings[name] for name in self.taken.resources if name in readings}
        self.taken.append(step, 0.0, known)
        return len(self.taken) == len(self._due)

    def in_doubt(self, quick: Series) -> list[Reading]:
        """Return what may yet be confirmed if the run ends now: not what was mostly garbage.

        Nor counts that stand, or bytes that the `quick` readings since it began show to grow much
        less.
        """
        return [
            reading
            for reading in self.suspected
            if self._is_left(reading)
            if not (self._stands(reading) or self._lags(reading, quick))
        ]

    def _stands(self, reading: Reading) -> bool:
        """Say whether hardly any more were counted at the last reading, where many were due."""
        steps, levels = self.taken.column(reading.resource)
        if len(levels) < 2 or unit_of(reading.resource) == "B" or reading.stairs is not None:
            return False
        ours = OWN_BLOCKS if reading.resource == "python.blocks" else 0
        due = reading.line.per_step * (steps[-1] - steps[-2])
        gained = levels[-1] - levels[-2] - ours
        return gained <= STANDS_BELOW * due and AGREES_FROM * due >= max(LEAST_RISEN, ours)

    def _lags(self, reading: Reading, quick: Series) -> bool:
        line = fit(*quick.column(reading.resource, after=self.begin))
        return line is not None and line.high < AGREES_FROM * reading.line.per_step

    def _is_left(self, reading: Reading) -> bool:
        steps, levels = self.taken.column(reading.resource)
        if len(levels) > 1 and unit_of(reading.resource) == "B":
            expected = reading.line.per_step * (steps[-1] - steps[0])
            if levels[-1] - levels[0] < AGREES_FROM * expected:
                return False
        return not levels or is_there(reading, {reading.resource: levels[0]})

    def confirmed(self, watch: Watch) -> list[Reading]:
        """Return the suspected resources that went on growing, counters with their exact rate."""
        confirmed = [one for one in self.suspected if self._went_on(one, watch)]
        if not confirmed and not any(map(self._never_fell, self.along)):
            return []  # what was only looked at beside them proves nothing alone
        beside = [one for one in self.along if self._went_on(one, watch, beside=True)]
        return [self._measured(one, watch) for one in (*confirmed, *beside)]

    def went_on_beside(self, watch: Watch) -> list[Reading]:
        """Return the exact counters that went on growing, though nothing suspected did."""
        went_on = (one for one in self.along if self._went_on(one, watch, beside=True))
        return [self._measured(one, watch) for one in went_on]

    @property
    def lengthening(self) -> Reason | None:
        """Say what grew of one single step, as with longer sequences or larger batches.

        A step ends while its graph is alive: of such memory nobody can say what else grew.
        """
        if self._risen(NEWEST_NODES):
            return Reason("graph-lengthens")
        if self._risen("tensors") > 0:
            return None
        for resource in filter(is_in_use, self.taken.resources):
            gained, temporaries = map(self._risen, (resource, _temporaries_beside(resource)))
            if temporaries >= LEAST_OF_ONE_STEP * gained > 0:
                memory = Reason("the-heap") if resource == HEAP else resource
                return Reason.of("tensors-lengthen", memory=memory)
        return None

    @property
    def is_of_tensors(self) -> bool:
        """Whether most of what memory gained so far is in tensors, and so in no library's cache."""
        in_use = [each for each in self.taken.resources if is_in_use(each)]
        return any(
            self._gained(_temporaries_beside(each)) >= IN_TENSORS * self._gained(each) > 0
            for each in in_use
        )

    def _gained(self, resource: str) -> int:
        _, levels = self.taken.column(resource)
        return levels[-1] - levels[0] if levels else 0

    def _risen(self, resource: str) -> int:
        """Return what a resource gained, 0 if it fell meanwhile."""
        levels = self._levels(resource) or (0, 0, 0)
        return levels[-1] - levels[0] if list(levels) == sorted(levels) else 0

    def _never_fell(self, reading: Reading) -> bool:
        """Say whether an exact count rose in both halves, and has not fallen before."""
        levels = self._levels(reading.resource)
        rose = all(now - past >= LEAST_RISEN for past, now in pairwise(levels)) and len(levels) > 0
        known = [*reading.values, *levels]
        return reading.resource in COUNTED_EXACTLY and rose and known == sorted(known)

    def so_far(self, *, exhausted: bool = False) -> list[Reading]:
        """Return what grew at every reading yet, for a run that ends before the last of them.

        What had grown and did not stop before memory was `exhausted` needs no second reading.
        """
        if exhausted and len(self.taken) < 2:
            return self.suspected
        return [one for one in self.suspected if self._has_grown(one)]

    def _has_grown(self, reading: Reading) -> bool:
        points = list(zip(*self.taken.column(reading.resource), strict=True))
        rates = [(level - past) / (at - since) for (since, past), (at, level) in pairwise(points)]
        if not rates or rates[-1] < STEADILY * median(rates):
            return False
        return min(rates) >= AGREES_FROM * reading.line.per_step

    def longer(self, step: int, seen: int) -> Confirmation | None:
        """Plan a longer look from `step` on at memory that rose too seldom to be sure of.

        That of a file in memory gains by an eighth at a time, what an evaluation keeps comes every
        hundred steps. None if it did not rise, or few steps were `seen` of this loop, or the look
        was as long as any.
        """
        in_use = [one for one in self.suspected if is_in_use(one.resource) and not one.stairs]
        long_enough = self.length >= LONGEST_CONFIRMATION_STEPS
        if long_enough or seen < LONGEST_CONFIRMATION_STEPS:
            return None
        if not any(self._rose_at_times(one) for one in in_use):
            return None
        length = max(LONGEST_CONFIRMATION_STEPS, seen // 2)
        return Confirmation(in_use, step + 1, length, self.along)

    def _rose_at_times(self, reading: Reading) -> bool:
        begin, middle, end = self._levels(reading.resource) or (0, 0, 0)
        enough = end - begin >= AGREES_FROM * reading.line.per_step * self.length
        slower, faster = sorted((middle - begin, end - middle))
        at_times = slower <= AT_ONCE * (end - begin) or faster <= AGREE_AT_TIMES * slower
        return enough and slower >= -SLACK_BYTES and at_times

    def what_stayed(self) -> tuple[Notice, ...]:
        """Say what grew before this confirmation and then stayed, if it is worth a word."""
        came = [
            one.resource
            for one in self.suspected
            if one.line.total >= WORTH_A_NOTICE[unit_of(one.resource) == "B"]
        ]
        if not came or self.garbage_bytes:
            return ()
        return (stopped(came),)

    def rates_at_first(self) -> dict[str, float]:
        """Return what was gained a step in the first half, by resource."""
        levels = {one.resource: self._levels(one.resource) for one in self.suspected}
        return {
            name: (read[1] - read[0]) / self._halves(name)[0]
            for name, read in levels.items()
            if read
        }

    def _measured(self, reading: Reading, watch: Watch) -> Reading:
        if reading.stairs is not None:
            return rare.as_seen(reading, watch.quick)
        short = unit_of(reading.resource) == "B" and self.length < CONFIRM_OTHER_STEPS
        shifts = reading.resource.endswith(HELD_BACK)  # by collections themselves
        if short or shifts or reading.stairs:
            return reading
        begin, middle, end = self._levels(reading.resource)
        first, second = self._halves(reading.resource)
        halves = ((middle - begin) / first, (end - middle) / second)
        rate = (end - begin) / (first + second)
        if unit_of(reading.resource) != "B":
            rate = _in_stairs(reading, watch.slow, rate)
        line = replace(reading.line, per_step=rate, low=min(*halves, rate), high=max(*halves, rate))
        return replace(reading, line=line, slows=_slows(reading.resource, begin, middle, end))

    def _went_on(self, reading: Reading, watch: Watch, *, beside: bool = False) -> bool:
        levels = self._levels(reading.resource)
        if len(levels) < 3:
            return False
        begin, middle, end = levels
        if reading.stairs is not None:
            jumps = max(1, self.length // reading.stairs.apart)
            return end - begin >= STEADILY * jumps * reading.stairs.rise
        expected = AGREES_FROM * reading.line.per_step
        if reading.resource == "python.blocks" and not beside:
            # garbage between collections made the suspected rate too high
            expected = max(
                OWN_BLOCKS / self.length, min(expected, AGREES_FROM * (end - begin) / self.length)
            )
        slower, faster = sorted((middle - begin, end - middle))
        if slower < expected * self.length / 2:
            return False
        if beside and faster > HALVES_AGREE_WITHIN * slower + OWN_BLOCKS:
            return False
        if unit_of(reading.resource) == "B" and faster > HALVES_AGREE_WITHIN * slower + SLACK_BYTES:
            return False  # one jump, such as a library's buffer for larger batches
        if self.length >= outlook.MEMO_STEPS and _gains_less(reading.resource, *levels):
            return False  # new keys come ever more rarely
        return unit_of(reading.resource) != "B" or self._climbed_between(reading, watch, expected)

    def _climbed_between(self, reading: Reading, watch: Watch, expected: float) -> bool:
        # the collections themselves leave some kilobytes in malloc's caches; the steps between
        # them must show the growth too
        halves = ((self.begin, self._middle), (self._middle, self.end))
        for first, last in halves:
            steps, values = watch.quick.column(reading.resource, after=first)
            count = sum(step < last for step in steps)
            line = fit(steps[:count], values[:count])
            if line is None:
                continue
            by_stairs = self.length >= LONGEST_CONFIRMATION_STEPS
            rate = line.total / line.steps if by_stairs else line.per_step
            if rate < expected:
                return False
        return True


def is_there(reading: Reading, levels: Mapping[str, int]) -> bool:
    """Say whether at these levels most of what had grown is still there, as far as they tell."""
    level = levels.get(reading.resource)
    return level is None or level - reading.values[0] >= AGREES_FROM * reading.line.total


def fell_as_far(reading: Reading, level: int, counts: Series) -> bool:
    """Say whether it came down in the loop before, as far as from its newest count to this level.

    What had outlived the newest such fall is there still, or it is another that is gone now.
    """
    _, values = counts.column(reading.resource)
    drop = values[-1] - level if values else 0
    falls = (now for past, now in pairwise(values) if past - now >= AGREES_FROM * drop > 0)
    low = deque(falls, maxlen=1)
    return bool(low) and level >= low[0] - (1 - AGREES_FROM) * drop


def _temporaries_beside(resource: str) -> str:
    return resource_of(place_name(resource), "temporaries")


def _in_stairs(reading: Reading, slow: Series, rate: float) -> float:
    """Return a rate that all readings allow, for what comes many at once and now and then.

    Of an evaluation every sixty steps a hundred steps see one or two; the middle of what the
    readings allow is off by half their room at most, and the rate of one stretch by all of it.
    What gains in proportion to the steps comes on each of them: readings that happen to lie 15, 18
    and 21 steps apart say as little against it as those that lie 16 apart.
    """
    at_once = added_at_once(reading, slow)
    steps, values = counts_since(reading, slow)
    if at_once < FEWEST_APART_STEPS * rate or is_even(steps, values):
        return rate
    least, greatest = stair_rates(steps, values, at_once) or (rate, rate)
    return (least + greatest) / 2


def _gains_less(resource: str, begin: int, middle: int, end: int) -> bool:
    """Say whether less was gained at the end than at first, though it may be by chance."""
    first, second = middle - begin, end - middle
    by_chance = sqrt(max(0, end - begin)) if resource in COUNTED_EXACTLY else first
    return first - second > min((1 - STEADILY) * first, by_chance)


def _slows(resource: str, begin: int, middle: int, end: int) -> bool:
    """Say whether less was gained at the end than at first, by more than chance takes."""
    first, second = middle - begin, end - middle
    is_bytes = unit_of(resource) == "B"
    by_chance = SLACK_BYTES if is_bytes else CHANCE * sqrt(max(0, end - begin))
    return first - second > (1 - STEADILY) * first + by_chance
