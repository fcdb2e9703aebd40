"""Series in, trends and a verdict out: which resources are judged, how strictly, from what.

The judges are exact counters. RSS and what allocators keep are reported beside them, because on
correct programs both creep, and on a warm heap a leak of 8 KB a step leaves RSS flat for 1,000.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd, inf
from statistics import median

from leakcheck.model import Trend, Verdict
from leakcheck.runtime.judgement.stairs import Stairs
from leakcheck.runtime.judgement.trend import (
    FEWEST_POINTS,
    LARGEST_DROP,
    Floor,
    Line,
    agree,
    fit,
    floor_rise,
    grows,
    level_of_look,
    rises_throughout,
    settled_after,
)
from leakcheck.runtime.readings.meters import (
    BESIDE_HEAP,
    COUNTED,
    COUNTED_EXACTLY,
    HEAP,
    HELD_BACK,
    is_in_use,
    unit_of,
)
from leakcheck.runtime.readings.proc import CHILDREN
from leakcheck.runtime.readings.series import Series
from leakcheck.runtime.readings.shared_memory import BLOCKS

FEWEST_WARMUP_STEPS = 10
SHORT_RUN_STEPS = 60  # a graph that grows is established by then
FEWEST_STEPS = 30  # settled steps below which nothing is said
# per step; a checkpoint leaves up to ten blocks of ours behind
COMPANION_RATES = {
    "graph.nodes": 0.05,
    "tensors": 0.05,
    "python.blocks": 0.8,
    "threads": 0.02,
    "descriptors": 0.02,
    "processes": 0.02,
    BLOCKS: 0.02,
}

SURE, SURE_OF_BYTES = 1e-2, 1e-4  # that something climbs which is not regular
LEAST_OF_CHILDREN_BYTES = 16 << 20
RISING_LOOKS = 3  # in a row, that show growth where a run ends before it is confirmed
LEAST_RISEN = 5  # tensors or Nodes, threads or descriptors
FEWEST_LOOKS = 8  # that all found more: what is emptied now and then is lower at one of so many
LEAST_TENSORS = 0.01  # a step: not even an image an epoch, of a hundred steps, in a list
NEW_SHARE = 0.5  # of a late climb, that must be above all levels before
SMALL_RISE = 0.1  # of the usual one: what comes and goes beside
LATE_STEPS = 150  # that a leak which began late must have gone on for
STILL_GROWS_FROM = 0.3  # of its rate at first, at the end
EVEN_SPAN_STEPS = 30
LEAST_EVEN_SHARE = 0.9
EVEN_TIMES_TOLERANCE = 2


@dataclass(frozen=True, slots=True)
class Judge:
    """How a kind of resource is judged: its floor, and the span of steps a look needs."""

    floor: Floor
    span_steps: int
    even_floor: Floor | None = None  # for what gains the same on every step


# Floors: half of the smallest leak worth finding (one Node in ten steps; 64 bytes of heap a step:
# clean programs stay below 3.5 bytes a step in 99 of 100 windows), and totals that no cache fills.
JUDGES = {
    "graph.nodes": Judge(Floor(0.02, 5), 22),
    "tensors": Judge(Floor(0.02, 5), 36),
    "hooks": Judge(Floor(0.05, 5), 36),
    "python.blocks": Judge(Floor(0.05, 24), 110),
    "descriptors": Judge(Floor(0.01, 5), 48),
    "threads": Judge(Floor(0.01, 5), 48),
    "processes": Judge(Floor(0.01, 5), 48),
    BLOCKS: Judge(Floor(0.01, 5), 48),
    "host.heap": Judge(Floor(48, 16 << 10), 120),
    # 33 clean programs gained at most 650 bytes of it a step, but for one whose cycles wait for the
    # collector
    BESIDE_HEAP: Judge(Floor(4096, 8 << 20), 100, Floor(4096, 3 << 20)),
}
_OF_DEVICES = {
    "allocated": Judge(Floor(48, 4096), 100),
    "reserved-allocated": Judge(Floor(1024, 40 << 20), 300),  # a large segment is of 20 MiB
    "outside": Judge(Floor(1024, 32 << 20), 300),  # the driver gives 2 MiB at a time
}


@dataclass(frozen=True, slots=True)
class Reading:
    """One resource's points after warm-up, with the line through them."""

    resource: str
    steps: list[int]
    values: list[int]
    line: Line
    slows: bool = False  # it gained clearly less in the second half of its confirmation
    stairs: Stairs | None = None  # if it rises now and then, and not between

    @property
    def even(self) -> bool:
        """Whether it gains about the same on nearly every step."""
        return self.line.even_share >= LEAST_EVEN_SHARE


class Recurring:
    """What is suspected at look after look, where the steps between looks confirm nothing."""

    def __init__(self, looks: int) -> None:
        self._looks: deque[set[str]] = deque(maxlen=looks)

    def note(self, found: list[Reading]) -> list[Reading]:
        """Return those of `found` that were suspected at all of the last looks, and start over."""
        self._looks.append({reading.resource for reading in found})
        always = set.intersection(*self._looks)
        if len(self._looks) < (self._looks.maxlen or 0) or not always:
            return []
        self._looks.clear()
        return [reading for reading in found if reading.resource in always]


def judge_of(resource: str) -> Judge | None:
    """Return how `resource` is judged; None when it is only reported."""
    return JUDGES.get(resource) or _OF_DEVICES.get(resource.rpartition(".")[2])


def read(series: Series, resource: str, after: int = 0, until: float = inf) -> Reading | None:
    """Fit the settled points of one resource up to `until`; None while there are too few."""
    steps, values = series.column(resource)
    if not steps:
        return None
    start = max(after, settled_after(steps, FEWEST_WARMUP_STEPS))
    steps, values = series.column(resource, after=start)
    count = sum(step <= until for step in steps)
    steps, values = steps[:count], values[:count]
    line = fit(steps, values)
    return Reading(resource, steps, values, line) if line else None


def read_known(series: Series, resource: str) -> Reading | None:
    """Fit the settled points, or the last few of what is counted too seldom for as many.

    Not for verdicts: once nothing rises, counts are taken at a few steps only.
    """
    settled = read(series, resource)
    if settled is not None:
        return settled
    steps, values = series.column(resource, after=FEWEST_WARMUP_STEPS)
    steps, values = steps[-FEWEST_POINTS:], values[-FEWEST_POINTS:]
    line = fit(steps, values)
    return Reading(resource, steps, values, line) if line else None


def suspicious(sources: Iterable[Series], look: int, after: int = 0) -> list[Reading]:
    """Return the judged resources that grow at this look (counted from 1).

    If nothing has since `after`, what grows in the last third or sixth of the steps, beyond all
    levels before: a leak may begin at any of them. A smaller level is spent on each, so that all
    looks together still spend the rate.
    """
    sources = tuple(sources)
    found = [one for series in sources for one in _growing(series, look, after)]
    newest = max(series.last_step for series in sources)
    for share, stricter in ((3, 2), (6, 3)):
        since = newest - (newest - after) // share
        if not found and newest - since >= LATE_STEPS:
            for series in sources:
                late = _growing(series, stricter * look, since)
                found += [one for one in late if _is_new_high(one, series, after)]
    return found


def _growing(series: Series, look: int, after: int) -> list[Reading]:
    found = []
    for resource in series.resources:
        judge = judge_of(resource)
        reading = read(series, resource, after) if judge else None
        if judge is None or reading is None or reading.line.steps < judge.span_steps:
            continue
        even_floor = judge.even_floor if reading.even else None
        if grows(reading.line, even_floor or judge.floor, level_of_look(look)):
            found.append(reading)
    return found


def _is_new_high(late: Reading, series: Series, after: int) -> bool:
    """Say whether most of a late climb is above all that was read since `after`, unlike a saw."""
    steps, values = series.column(late.resource, after=after)
    before = [value for step, value in zip(steps, values, strict=True) if step < late.steps[0]]
    return late.values[-1] - max(before, default=0) >= NEW_SHARE * late.line.total


def evenly(quick: Series, tolerance_bytes: int) -> list[Reading]:
    """Return memory in use that gains the same on every step, and much: there is no noise in it.

    So does a list of arrays. A cache that fills up does too, for a while.
    """
    least = EVEN_TIMES_TOLERANCE * tolerance_bytes
    known = (read(quick, resource) for resource in filter(is_in_use, quick.resources))
    return [
        one
        for one in known
        if one and one.line.steps >= EVEN_SPAN_STEPS and one.line.straight
        if one.line.per_step > least
    ]


def companions(
    slow: Series, found: list[Reading], wanted: Collection[str] = COMPANION_RATES
) -> list[Reading]:
    """Return the exact counters to confirm along with what was found, at their smallest rates.

    A Node in ten steps shows in the heap first; to be told as a graph it must be confirmed too.
    """
    known = {reading.resource for reading in found}
    others = [name for name in COMPANION_RATES if name in wanted and name not in known]
    readings = [read_known(slow, name) for name in others]
    return [
        replace(one, line=replace(one.line, per_step=COMPANION_RATES[one.resource]))
        for one in readings
        if one is not None
    ]


def refitted(reading: Reading, quick: Series, after: int) -> Reading:
    """Return the line through all quick readings beyond `after`, for bytes that climb evenly.

    Bytes jump: more points make a better line, but for one that was straight before the collections
    of the confirmation left some behind. Counters were measured exactly, and of what is held back
    they leave most.
    """
    exact = unit_of(reading.resource) != "B" or reading.resource.endswith(HELD_BACK)
    newer = None if exact else read(quick, reading.resource, after)
    if newer is None or reading.stairs:
        return reading
    if 2 * (newer.line.high - newer.line.low) > newer.line.per_step:
        return reading
    return reading if reading.line.straight and not newer.line.straight else newer


def added_at_once(reading: Reading, slow: Series) -> int:
    """Return by how much an exact counter that was found to grow rises when it does, at least one.

    By its smallest rise, if it sometimes does not rise; else by what divides every rise. Where
    something else comes and goes beside them, additions are taken to come one at a time.
    """
    _, values = counts_since(reading, slow)
    gains = [now - past for past, now in pairwise(values)]
    least = SMALL_RISE * median([gain for gain in gains if gain > 0] or [0])
    rises = [gain for gain in gains if gain > least]
    sometimes = any(abs(gain) <= least for gain in gains)
    return max(1, min(rises, default=1) if sometimes else gcd(*rises))


def counts_since(reading: Reading, slow: Series) -> tuple[list[int], list[int]]:
    """Return the steps and values of a counter since it was suspected, of two at a step the last.

    A confirmation begins at the step of the checkpoint that asks for it.
    """
    known = dict(zip(*slow.column(reading.resource, after=reading.steps[0] - 1), strict=True))
    return list(known), list(known.values())


def rose_all_along(slow: Series, after: int) -> list[str]:
    """Return the counters of Nodes and tensors that rose at every look since `after`, to the end.

    What holds them was then not emptied, whatever was: their number would have come down.
    """
    found = []
    for name in COUNTED_EXACTLY:
        steps, values = slow.column(name, after=after)
        looks = dict(zip(steps, values, strict=True))  # of two at a step the last
        reading = read(slow, name, after)
        rises = all(past < now for past, now in pairwise(looks.values()))
        if reading is not None and len(looks) >= FEWEST_LOOKS and rises:
            lasting = _newest_rate(reading) >= STILL_GROWS_FROM * reading.line.per_step
            found += [name] if lasting and reading.line.total >= LEAST_RISEN else []
    return found


def counters_that_rise(slow: Series, *, short: bool) -> list[str]:
    """Return the counters of Nodes and tensors that rose at each of the last looks, and evenly.

    In a `short` run it is enough if they rose at every look, at whatever rate.
    """
    return [name for name in COUNTED_EXACTLY if _rose(*slow.column(name), short=short)]


def _rose(steps: list[int], values: list[int], *, short: bool) -> bool:
    looks = pairwise(dict(zip(steps, values, strict=True)).items())  # of two at a step the last
    rates = [(now - past) / (at - since) for (since, past), (at, now) in looks]
    last = rates[-RISING_LOOKS:]
    if len(last) < RISING_LOOKS or min(last) <= 0:
        return False
    high = values[-1] - max(values[:-RISING_LOOKS]) >= LEAST_RISEN
    return (high and agree(last)) or (short and min(rates) > 0)


def still_climbing(sources: Iterable[Series], smallest_bytes_per_step: float) -> list[Reading]:
    """Return what climbs at the end without being regular enough to call growth.

    Bytes at more than a rate, and counts at any.
    """
    found = []
    for series in sources:
        for resource in series.resources:
            reading = read(series, resource) if judge_of(resource) is not None else None
            if reading is None or reading.line.steps < FEWEST_STEPS:
                continue
            if _still_climbs(reading, smallest_bytes_per_step):
                found.append(reading)
    return found


def _still_climbs(reading: Reading, smallest_bytes_per_step: float) -> bool:
    line, resource = reading.line, reading.resource
    never_fell = line.deepest_drop == 0
    rises = agree(line.halves) and line.p <= SURE and line.total >= LEAST_RISEN and never_fell
    if resource in COUNTED_EXACTLY:
        lasting = rises and _newest_rate(reading) >= STILL_GROWS_FROM * line.per_step
        climbs = lasting or floor_rise(reading.steps, reading.values) >= LEAST_RISEN
        # an image an epoch is kept on purpose: bytes tell whether it matters
        return climbs and (resource != "tensors" or line.per_step >= LEAST_TENSORS)
    if resource in COUNTED:  # nothing makes a thread or a descriptor by chance
        return rises
    above = min(line.halves) > smallest_bytes_per_step and line.p <= SURE_OF_BYTES
    return is_in_use(resource) and above and never_fell


def creep_per_step(quick: Series, after: int) -> float:
    """Return how many bytes a step the process gains, if that has gone on all along since `after`.

    However slowly: what gains 50 bytes a step shows in no window, and after a night it does. What
    is in use on the heap is counted exactly; resident memory must rise throughout, because what the
    allocator keeps comes in 4 MiB at a time, goes again, and may make 60 MiB in 900 steps. Of it,
    what belongs to a file counts for nothing: the kernel takes it back when memory is short.
    """
    heap, resident = read(quick, HEAP, after), read(quick, "host.rss", after)
    in_use = _gained_per_step(heap, quick) if heap else 0.0
    if resident is None or not rises_throughout(resident.steps, resident.values):
        return in_use
    outside = read(quick, BESIDE_HEAP, after)
    of_no_file = heap.line.high + outside.line.high if heap and outside else inf
    return max(in_use, min(_gained_per_step(resident, quick), of_no_file))


def _gained_per_step(reading: Reading, quick: Series) -> float:
    """Return what goes on to be gained, no more than was in the whole run; 0 if it does not."""
    whole = read(quick, reading.resource)
    if whole is None or not _goes_on(reading):
        return 0.0
    gained, steps = whole.values[-1] - whole.values[0], whole.steps[-1] - whole.steps[0]
    return max(0.0, min(reading.line.low, gained / steps))


def _goes_on(reading: Reading) -> bool:
    line = reading.line
    given_back = line.deepest_drop > LARGEST_DROP * line.total
    return agree(line.halves) and line.low > 0 and not given_back and line.p <= SURE_OF_BYTES


def _newest_rate(reading: Reading) -> float:
    """Return what was gained a step since a reading that is long enough before the last one."""
    last = reading.steps[-1]
    before = [at for at, step in enumerate(reading.steps) if last - step >= LATE_STEPS]
    since = before[-1] if before else 0
    return (reading.values[-1] - reading.values[since]) / (last - reading.steps[since])


def grown_children(slow: Series, tolerance_bytes: int) -> Reading | None:
    """Return what child processes hold, if it rose all along and far above the tolerance.

    Only resident memory is known of them, which creeps on correct programs; so this is a doubt.
    """
    reading = read_known(slow, CHILDREN)
    if reading is None or reading.line.total < LEAST_OF_CHILDREN_BYTES:
        return None
    line = reading.line
    goes_on = agree(line.halves, tolerance_bytes)
    return reading if goes_on and line.p <= SURE and line.deepest_drop == 0 else None


def as_trend(
    reading: Reading, verdict: Verdict, seconds_per_step: float | None, room_bytes: int | None
) -> Trend:
    """Turn a fitted resource into the value that reports show."""
    line = reading.line
    per_hour = line.per_step * 3600 / seconds_per_step if seconds_per_step else None
    exhausts_in_s = None
    if verdict == "growing" and room_bytes and seconds_per_step and line.per_step > 0:
        exhausts_in_s = room_bytes / line.per_step * seconds_per_step
    return Trend(
        resource=reading.resource,
        unit=unit_of(reading.resource),
        per_step=line.per_step,
        low=line.low,
        high=line.high,
        total=line.per_step * line.steps if verdict == "growing" else line.total,
        steps=line.steps,
        verdict=verdict,
        per_hour=per_hour,
        exhausts_in_s=exhausts_in_s,
    )
