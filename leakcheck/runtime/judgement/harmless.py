"""Growth that is confirmed and yet no leak: plain objects below the tolerance, torch's own ring."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from leakcheck.model import Notice, Reason, Suspect
from leakcheck.runtime import outlook
from leakcheck.runtime.judgement.judge import STILL_GROWS_FROM, Reading, still_climbing
from leakcheck.runtime.readings import flight_recorder
from leakcheck.runtime.readings.meters import (
    BESIDE_HEAP,
    BLOCK_BYTES,
    COUNTED_EXACTLY,
    HEAP,
    Garbage,
    is_of_device,
)
from leakcheck.runtime.readings.series import Series

STOPPED = "grew-no-more"  # what grew and stopped: this code, and those that begin with it
RESTS_BELOW = 0.5  # of a rate: garbage that waits grows beside a buffer that rests
RESTS = 3 / 2  # times the longest up to the last third: a rest that is in proportion to the run
LEAST_LATE_STEPS = 100
AS_FAST = 1.25  # times a rate that was measured, for what goes on alike
# of its own rate: what is added at each step gains just as much, and of 24 steps in which new keys
# come at 0.9, then 0.6 of the steps, one in a hundred does by chance
AS_MUCH_AS_BEFORE = 0.98
SLOWER = 0.85  # of a rate; words of a language come at 0.7 of it when twice as many were read
_OF_NUMBERS = re.compile(r" of (float|int|bool)$")
AS_MUCH = 1.05  # the garbage of the newest step is in no reading yet, and first steps make less
PLAIN = frozenset({"python.blocks", "host.heap"})


@dataclass(frozen=True, slots=True)
class Limited:
    """Growth that the program itself limits: how fast it was, and how long it may go on."""

    told: Reason
    since: int  # steps
    until: int
    rates: Mapping[str, float]  # by resource, a step

    def goes_on(self, sources: Iterable[Series]) -> bool:
        """Say whether something still gained a good part of its rate at the end.

        Exact counts are asked if they grew, and blocks only if they were all that did: garbage
        that waits is some of them.
        """
        exact = self.rates.keys() & set(COUNTED_EXACTLY)
        names = exact or self.rates.keys() - {"python.blocks"} or self.rates.keys()
        pairs = [(series, name) for series in sources for name in names]
        shares = [_late_share(series, name, self.since, self.rates[name]) for series, name in pairs]
        known = [share for share in shares if share is not None]
        return not known or max(known) >= STILL_GROWS_FROM


def _late_share(series: Series, resource: str, since: int, rate: float) -> float | None:
    """Return which part of its rate something gained at the end; None if it was read too rarely.

    In the last third, and where that is long in a sixth to a twelfth: it may have been full late.
    But not in less than it rested for before: a buffer grows by an eighth of itself, ever more
    rarely.
    """
    late = _late_rate(series, resource, since, 1 / 3)
    parts = (1 / 6, 1 / 8, 1 / 12)
    least = max(LEAST_LATE_STEPS, RESTS * _longest_rest(series, resource, since, rate))
    last = [_late_rate(series, resource, since, part, least) for part in parts]
    known = [gain for gain in (late, *last) if gain is not None]
    return min(known) / rate if known and rate else None


def _longest_rest(series: Series, resource: str, since: int, rate: float) -> int:
    """Return the most steps, up to the last third, in which less than half of it was gained."""
    steps, values = series.comparable(resource, after=since)
    reached, level, longest = since, -inf, 0
    for step, value in zip(steps, values, strict=True):
        if step > since + (steps[-1] - since) * 2 / 3:
            break
        if value >= level + RESTS_BELOW * rate * (step - reached):
            reached, level = step, value
        longest = max(longest, step - reached)
    return longest


def _late_rate(
    series: Series, resource: str, since: int, share: float, least_steps: float = 0
) -> float | None:
    """Return what the lowest level of a last share of the steps gained on that of one before it.

    The lowest, because what is emptied now and then stands high at most readings; over the steps
    between the first readings of the two, which are uneven where few were affordable.
    """
    steps, values = series.comparable(resource, after=since)
    if not steps:
        return None
    span = (steps[-1] - since) * share
    points = list(zip(steps, values, strict=True))
    late = [(step, value) for step, value in points if step >= steps[-1] - span]
    before = [(step, value) for step, value in points if span <= steps[-1] - step <= 2 * span]
    apart = late[0][0] - before[0][0] if before else 0
    if apart <= 0 or span <= least_steps:
        return None
    return (min(value for _, value in late) - min(value for _, value in before)) / apart


class Excuses:
    """Which resources may grow for now, and until which step."""

    def __init__(self) -> None:
        self.limited: Limited | None = None
        self._until: dict[str, float] = {}
        self._fills_until: dict[str, float] = {}
        self._tolerated_bytes = 0
        self.tolerated: Mapping[str, float] = {}  # rates beside it
        self.tolerated_per_step = 0.0  # bytes, by all that is tolerated
        self._slower: dict[str, Mapping[str, float]] = {}  # rates by holder, before it slowed
        self._own_rates: dict[str, Mapping[str, float]] = {}  # of these by their own lengths

    def add(self, resources: Iterable[str], until: float = inf) -> None:
        """Let `resources` grow until the step `until`."""
        self._until |= dict.fromkeys(resources, until)

    def note_filling(self, resources: Iterable[str], until: float) -> None:
        """Note that something in `resources` fills up by the step `until`, beside what else is."""
        for name in resources:
            self._fills_until[name] = max(until, self._fills_until.get(name, 0))

    def limit(
        self, told: Reason | None, rates: Mapping[str, float], step: int, *, graph: bool
    ) -> int:
        """Note a limit that the program sets; returns until when growth may go on, 0 if no more.

        Who sets one by bytes or by the clock may mean it to be reached after hours, so the wait
        is doubled each time. `told`: which limit, if there is one; `graph`: it keeps a graph, which
        nobody means to.
        """
        if told is None:
            return 0
        known = self.limited
        if known is None or known.told != told:
            steps = outlook.GRAPH_LIMIT_STEPS if graph else outlook.LIMIT_STEPS
            known = Limited(told, step, step + steps, rates)
        elif not graph and step >= known.until:
            known = replace(known, until=step + 2 * (step - known.since))
        self.limited = known
        return known.until if step < known.until else 0

    def note_slower(self, held: Sequence[Suspect], rates: Mapping[str, float]) -> None:
        """Note who holds what did not go on as fast as at first, and how fast that was."""
        if holders := _holders(held):
            self._slower[holders] = rates
            self._own_rates[holders] = _own_rates(held)

    def slowing(self, suspects: Sequence[Suspect], rates: Mapping[str, float]) -> Reason | None:
        """Say that what had slowed gains less again; None if it does not. It is asked once."""
        holders = _holders(suspects)
        own, now = self._own_rates.get(holders, {}), _own_rates(suspects)
        if own and all(now.get(name, 0.0) >= AS_MUCH_AS_BEFORE * own[name] for name in own):
            return None
        known = self._slower.get(holders, {})
        shares = [rate / known[name] for name, rate in rates.items() if known.get(name, 0) > 0]
        if not shares or max(shares) >= SLOWER:
            return None
        self._slower[holders] = rates
        return Reason.of("slows", holders=holders)

    def has_slowed(self, held: Sequence[Suspect]) -> bool:
        """Say whether what these hold grew faster before."""
        return _holders(held) in self._slower

    def is_limited(self, step: int) -> bool:
        """Say whether something may still grow up to a limit that the program sets."""
        return self.limited is not None and step < self.limited.until

    def tolerate(
        self,
        notices: Sequence[Notice],
        tolerance_bytes: int,
        rates: Mapping[str, float] | None = None,
        *,
        per_step: float = 0.0,
    ) -> None:
        """Let plain objects grow that were below the tolerance; what grows faster is no part.

        `rates`: how fast all that was confirmed grew, which goes on with them; `per_step`: bytes
        that they gain.
        """
        if any(one.kind == "below-tolerance" for one in notices):
            self._tolerated_bytes, self.tolerated_per_step = tolerance_bytes, per_step
            faster = {name: AS_FAST * rate for name, rate in (rates or {}).items()}
            self.tolerated = {**self.tolerated, **faster}

    def tolerate_no_more(self) -> None:
        """Let nothing grow any more because it is little."""
        self._tolerated_bytes, self.tolerated, self.tolerated_per_step = 0, {}, 0.0

    def without(self, readings: list[Reading]) -> list[Reading]:
        """Return the readings that have no excuse."""
        return [
            reading
            for reading in readings
            if reading.resource not in self._until and not self._is_tolerated(reading)
        ]

    def _is_tolerated(self, reading: Reading) -> bool:
        per_step = reading.line.per_step
        little = reading.resource in PLAIN and (
            _in_bytes(reading.resource, per_step) < self._tolerated_bytes
        )
        return little or per_step <= self.tolerated.get(reading.resource, 0.0)

    def hold_for(self, resource: str) -> bool:
        """Say whether `resource` may grow for now."""
        return resource in self._until

    def still_climbing(self, sources: Iterable[Series], tolerance_bytes: int) -> list[Reading]:
        """Return what climbs at the end, not regularly, and has no excuse."""
        climbing = self.without(still_climbing(sources, tolerance_bytes))
        climbing = [one for one in climbing if not self._may_be_filling(one)]
        return climbing if climbing and excuse(climbing, tolerance_bytes) is None else []

    def _may_be_filling(self, reading: Reading) -> bool:
        """Say whether what stays of what comes and goes may be what fills up."""
        fills = self._fills_until.get(reading.resource, 0) > reading.steps[-1]
        return fills and reading.line.deepest_drop > 0

    def ended_before(self, step: int) -> int:
        """End the excuses that are over at `step`; returns when the last of them was, else 0."""
        over = {resource: until for resource, until in self._until.items() if until <= step}
        for resource in over:
            del self._until[resource]
        return int(max(over.values(), default=0))


def _holders(suspects: Sequence[Suspect]) -> str:
    return ", ".join(str(one.holder) for one in suspects if one.holder)


def _own_rates(suspects: Sequence[Suspect]) -> dict[str, float]:
    """Return how fast these grow by their own lengths or sizes, empty unless each was read.

    What comes and goes beside them, or a library that keeps room for the largest that it was
    given, may gain less where they do not.
    """
    rates = {str(one.holder): one.objects_per_step or one.bytes_per_step for one in suspects}
    known = {holder: rate for holder, rate in rates.items() if rate}
    return known if len(known) == len(rates) else {}


def stopped(resources: Iterable[str], seen: str = "") -> Notice:
    """Tell that something grew and stopped, and where that was `seen`: "once-emptied"."""
    code = f"{STOPPED}-{seen}" if seen else STOPPED
    return Notice("bounded", Reason.of(code, resources=tuple(resources)))


def without_contradicted(
    notices: tuple[Notice, ...], resources: Iterable[str], suspects: Iterable[Suspect] = ()
) -> tuple[Notice, ...]:
    """Leave out that something had stopped, or would be full, which was then found to grow."""
    growing = set(resources)
    holders = {str(one.holder) for one in suspects if one.holder}
    return tuple(
        notice
        for notice in notices
        if growing.isdisjoint(_that_stopped(notice))
        and not (notice.kind == "bounded" and notice.reason.get("holder") in holders)
    )


def _that_stopped(notice: Notice) -> tuple[object, ...]:
    stopped = notice.reason.code.startswith(STOPPED)
    names = notice.reason.get("resources") if stopped else ()
    return names if isinstance(names, tuple) else ()


def are_below(suspects: Sequence[Suspect], tolerance_bytes: int) -> bool:
    """Say whether these are plain objects, gained so slowly together that nobody minds."""
    least = sum(one.objects_per_step or 0.0 for one in suspects) * BLOCK_BYTES
    plain = all(one.kind == "object" for one in suspects)
    return plain and max(gained_bytes(suspects), least) < tolerance_bytes


def gained_bytes(suspects: Iterable[Suspect]) -> float:
    """Return how many bytes a step these gain, as far as is known."""
    return sum(one.bytes_per_step or 0.0 for one in suspects)


def is_log_of_numbers(suspect: Suspect) -> bool:
    """Say whether what a container gains are plain numbers of Python's."""
    return suspect.kind == "object" and _OF_NUMBERS.search(suspect.what) is not None


def dated(notice: Notice, step: int) -> Notice:
    """Tell of growth that will end, or that nobody minds, when it was seen: a run may go on."""
    if notice.kind not in ("bounded", "below-tolerance"):
        return notice
    return replace(notice, step=step)


def newest(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    """Return each notice once, as it was told last: what fills up is told again as it goes on."""
    return tuple({_but_for_numbers(one): one for one in notices}.values())


def _but_for_numbers(notice: Notice) -> tuple[object, ...]:
    reason = notice.reason
    named = ((name, one) for name, one in reason.fields if not isinstance(one, (int, float)))
    return notice.kind, reason.code, *named


def excuse(grown: list[Reading], tolerance_bytes: int, *, confirmed: bool = True) -> Notice | None:
    """Return why growth is harmless, None if it is not.

    A heap alone that was not `confirmed` to grow may creep by less than the tolerance: free lists
    made some correct loops of 400 steps gain 100 bytes a step.
    """
    rates = {reading.resource: reading.line.per_step for reading in grown}
    if not rates.keys() <= PLAIN:
        return None
    bytes_per_step = plain_bytes(grown)
    plain = "python.blocks" in rates or not confirmed
    if plain and bytes_per_step < tolerance_bytes:
        little = Reason.of(
            "little-a-step", per_step=bytes_per_step, tolerance_bytes=tolerance_bytes
        )
        return Notice("below-tolerance", little)
    if _of_recorder(grown, tolerance_bytes):
        return Notice("bounded", Reason("flight-recorder"))
    return None


def _of_recorder(grown: list[Reading], tolerance_bytes: int) -> bool:
    """Say whether torch's own ring may be all that grew: what it holds is not Python's."""
    heap = [one for one in grown if one.resource == HEAP]
    others = [one for one in grown if one.resource != HEAP]
    gained_bytes = sum(one.line.total for one in heap)
    return plain_bytes(others) < tolerance_bytes and flight_recorder.explains(gained_bytes)


def is_garbage(grown: list[Reading], freed: Garbage, steps: int, kept_free_bytes: int = 0) -> bool:
    """Say whether collections freed, or will free, as many bytes a step as it grew.

    `freed`: by collections in so many `steps`. What leaks beside garbage was not freed with it, and
    makes the heap, or the device, gain more a step than that comes to. What was freed stays
    resident until it is given out again: of `kept_free_bytes`, that much at most.
    """
    on_heap = [one for one in grown if one.resource in PLAIN]
    on_devices = [one for one in grown if is_of_device(one.resource)]
    kept_free = [one for one in grown if one.resource == BESIDE_HEAP]
    if not grown or len(on_heap) + len(on_devices) + len(kept_free) < len(grown):
        return False
    was_freed = all(
        _was_freed(group, freed_bytes, steps)
        for group, freed_bytes in zip((on_heap, on_devices), freed, strict=True)
        if group
    )
    most_kept = min(AS_MUCH * freed.on_heap, kept_free_bytes)
    return was_freed and all(one.stairs is None and _gained(one) <= most_kept for one in kept_free)


def _was_freed(grown: list[Reading], freed_bytes: int, steps: int) -> bool:
    waiting = sum(_in_bytes(one.resource, _gained(one)) for one in grown)
    even = all(one.stairs is None for one in grown)
    gained = plain_bytes(grown) * steps
    return even and freed_bytes > 0 and gained <= AS_MUCH * (freed_bytes + waiting)


def _gained(reading: Reading) -> int:
    return reading.values[-1] - reading.values[0]


def plain_bytes(grown: Sequence[Reading]) -> float:
    """Return about how many bytes a step plain objects gain."""
    return sum(_in_bytes(one.resource, one.line.per_step) for one in grown)


def _in_bytes(resource: str, per_step: float) -> float:
    return per_step * BLOCK_BYTES if resource == "python.blocks" else per_step
