"""Stage three, for what was confirmed to grow: who holds it, and may it yet stop growing?

A short attribution window is opened; how long it is hangs on what grows and how fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from time import thread_time

from leakcheck.model import DeviceMemory, Holder, Notice, Reason, Suspect
from leakcheck.runtime import outlook
from leakcheck.runtime.attribution import turnover
from leakcheck.runtime.attribution.device_growth import DeviceGrowth
from leakcheck.runtime.attribution.library import logs_of_libraries
from leakcheck.runtime.attribution.way import Way
from leakcheck.runtime.attribution.window import Findings, Window
from leakcheck.runtime.doubts import Doubt
from leakcheck.runtime.introspection.texts import file_of
from leakcheck.runtime.judgement import patience
from leakcheck.runtime.judgement.confirmation import Confirmation
from leakcheck.runtime.judgement.harmless import are_below, gained_bytes, is_log_of_numbers
from leakcheck.runtime.judgement.judge import Reading, added_at_once
from leakcheck.runtime.judgement.rounds import Trainings
from leakcheck.runtime.judgement.trend import jumps_apart
from leakcheck.runtime.prospects import NO_PROSPECTS, OF_A_PLAIN_LOOP, Prospects, prospects_of
from leakcheck.runtime.readings.meters import COUNTED, COUNTED_EXACTLY, is_in_use, unit_of
from leakcheck.runtime.readings.series import Series
from leakcheck.source.pools import pool_at

WINDOW_STEPS = 24
FEWEST_WINDOW_STEPS = 8
FEWEST_SURVIVORS = 3  # of the slowest counter, before the window closes
# so that one of them is in the first third of the window wherever the window begins, and none of
# them among the newest steps: else the kind of a leak would hang on the step it was found at
SPARE_STEPS = 5
LONGEST_WINDOW_STEPS = 200
FEWEST_RARE = 2  # of what comes once in hundreds of steps
FARTHEST_APART_STEPS = 1000  # where it is not known when it comes
LONGER_WINDOW_STEPS = 72  # once a window has found nothing
UNEVEN = 0.1  # of a rate, for its interval to be wider than that of steps that are alike
_OF_LIBRARIES = ("native", "fragmentation")
LEAST_SHARE = 0.2  # of what is gained, for a suspect to account for it
# of the Nodes gained, that one suspect has, for a few steps to be enough: those that accumulate
# gradients have no date and are not counted in a window
LEAST_EXPLAINED, MOST_EXPLAINED = 0.5, 1.05


def _steps_apart(reading: Reading, slow: Series) -> float:
    """Return how many steps lie between additions: an evaluation may add five tensors at once."""
    if reading.stairs is not None:
        return float(reading.stairs.apart)
    if unit_of(reading.resource) == "B":
        apart = jumps_apart(reading.steps, reading.values)
        return apart if apart > WINDOW_STEPS else 0.0
    return added_at_once(reading, slow) / reading.line.per_step


def _is_uneven(reading: Reading) -> bool:
    """Say whether some steps add and others do not, as those with shapes that are new inside."""
    line = reading.line
    return _is_memory(reading) and line.high - line.low > UNEVEN * line.per_step


def _is_memory(reading: Reading) -> bool:
    return reading.resource.startswith("host.") or is_in_use(reading.resource)


def _is_inside(suspect: Suspect) -> bool:
    """Say whether only an object written in C is known to hold it, as a list in a Connection.

    sqlite3 keeps a weak reference to each cursor there, and throws the dead away at every 200th.
    """
    return suspect.holder.kind == "inside"


def _pools_of(suspects: Sequence[Suspect]) -> dict[Holder, str]:
    at = ((one.holder, place) for one in suspects for place in one.locations[:1])
    pools = ((holder, pool_at(file_of(place.path), place.line)) for holder, place in at)
    return {holder: f"`{pool}`" for holder, pool in pools if pool}


def _is_unheld(suspect: Suspect) -> bool:
    return not suspect.holder or suspect.holder.kind == "outside"


def _is_of_nobody(suspect: Suspect) -> bool:
    of_python = suspect.kind in ("tensor", "object")
    return of_python and (_is_unheld(suspect) or _is_inside(suspect))


@dataclass(frozen=True, slots=True)
class WindowResult:
    """What an attribution window found."""

    suspects: tuple[Suspect, ...]
    notices: tuple[Notice, ...]
    window: Findings
    rates: Mapping[str, float]  # by resource, of what was confirmed, a step
    memory: tuple[DeviceMemory, ...] = ()  # of the devices that grow
    prospects: Prospects = NO_PROSPECTS  # of the suspects, without those that only fill up
    limited: Prospects = NO_PROSPECTS  # those
    taken: Mapping[Holder, str] = field(default_factory=dict)  # by holder: from whom it takes
    asked_often: bool = False  # and most often has what it is asked for
    emptied_bytes: float = 0.0  # a step, gained by what is emptied again and again
    apart_steps: float = 0.0  # between two additions, 0 if not known
    tolerated_bytes: float = 0.0  # a step, gained by logs of numbers
    joined: bool = False  # a line joins more to something that grows

    def explain(self, nodes_per_step: float) -> bool:
        """Say whether one suspect, and nothing beside it, has most of the Nodes gained."""
        if len(self.suspects) != 1 or self.notices or not self.suspects[0].locations:
            return False
        nodes = self.suspects[0].objects_per_step or 0.0
        share = nodes / nodes_per_step
        return self.suspects[0].kind == "graph" and LEAST_EXPLAINED <= share <= MOST_EXPLAINED

    def tolerating(self, tolerance_bytes: int, numbers_bytes: int) -> WindowResult:
        """Return them without libraries' logs of numbers, which become notices.

        Nor the program's own, where they gain less than `numbers_bytes` a step and what else gains
        as little is no longer tolerated.
        """
        logs = logs_of_libraries(self.suspects, numbers_bytes)
        less = tolerance_bytes < numbers_bytes
        own = tuple(filter(is_log_of_numbers, self.suspects)) if less else ()
        if own and gained_bytes(own) < numbers_bytes:
            return self._without(own, "log", numbers_bytes)
        return self._without(logs, "library-log", numbers_bytes) if logs else self

    def _without(self, logs: Sequence[Suspect], code: str, tolerance_bytes: int) -> WindowResult:
        holders = tuple(str(log.holder) for log in logs)
        told = Reason.of(code, holders=holders, tolerance_bytes=tolerance_bytes)
        return replace(
            self,
            suspects=tuple(one for one in self.suspects if one not in logs),
            notices=(*self.notices, Notice("below-tolerance", told)),
            tolerated_bytes=gained_bytes(logs),
        )

    def since(self, before: Sequence[Suspect], seen_before: int, seen: int) -> WindowResult:
        """Return them without what was emptied since an earlier window, if others explain it."""
        kept = turnover.kept(before, self.suspects, seen_before, seen)
        if kept == self.suspects or (not kept and self.beside_bytes is None):
            return self
        gone = gained_bytes(one for one in self.suspects if one not in kept)
        return replace(self, suspects=kept, emptied_bytes=gone)

    @property
    def firm(self) -> tuple[Suspect, ...]:
        """The suspects, unless a longer window may yet tell what it is that grows."""
        return () if self.window.doubtful else self.suspects

    def limits(self, confirmation: Confirmation | None, tolerance_bytes: int) -> Reason | None:
        """Say what ends all that grows, as far as is known; None if something is beyond any limit.

        What the `confirmation` saw grow with the size of a step ends as steps grow no more.
        """
        large = [one for one in self.suspects if not are_below([one], tolerance_bytes)]
        if self.limited.each and not large:  # a log beside a window that fills
            return self.limited.limits
        if large and all(one.holder in self.taken for one in large):
            moves = (
                Reason.of("takes-in", holder=str(one.holder), pool=self.taken[one.holder])
                for one in large
            )
            return Reason.of("moves", moves=tuple(moves))
        heap_alone = self.rates.keys().isdisjoint(COUNTED_EXACTLY)
        unheld = heap_alone and not self.joined and all(map(_is_unheld, self.suspects))
        lengthening = confirmation.lengthening if confirmation is not None and unheld else None
        return lengthening or self.prospects.limits

    @property
    def of_graph(self) -> bool:
        """Whether a graph grows."""
        return any(one.kind == "graph" for one in self.suspects)

    def come_with(self, trainings: Trainings, since: int) -> bool:
        """Say whether what grows is a result of each of the `trainings`: no graph, no worker."""
        may_be = not self.of_graph and self.rates.keys().isdisjoint(COUNTED)
        return may_be and trainings.keep(self.apart_steps, since)

    @property
    def beside_bytes(self) -> float | None:
        """The bytes a step of what has a limit or is emptied; None if nothing that grows is."""
        bounded = any(notice.kind == "bounded" for notice in self.notices)
        gained = self.window.filling_bytes + self.emptied_bytes
        return gained if bounded or self.emptied_bytes else None

    @property
    def rates_of_logs(self) -> Mapping[str, float]:
        """How fast what is confirmed grows by logs: bytes only where nothing fills beside them."""
        if self.beside_bytes is None:
            return self.rates
        return {name: rate for name, rate in self.rates.items() if name in COUNTED_EXACTLY}

    @property
    def is_harmless(self) -> bool:
        """Whether all that grows has a limit, or is a library's log."""
        harmless = any(one.kind in ("bounded", "below-tolerance") for one in self.notices)
        return not self.suspects and harmless

    def doubt(self, grown: list[Reading], seen: int, *, soon: bool) -> Doubt:
        """Return what is known of all that grows, which may yet stop by itself.

        `seen`: so many steps were seen at all; `soon`: the usual span was not waited for.
        """
        memory_alone = all(map(_is_memory, grown))
        of_libraries = all(
            one.kind in _OF_LIBRARIES or (memory_alone and _is_unheld(one)) for one in self.suspects
        )
        may_be = of_libraries and (bool(self.suspects) or memory_alone)
        early = soon or seen < patience.EARLY_STEPS or any(reading.slows for reading in grown)
        return Doubt(
            of_shapes=may_be and self.window.shapes_vary,
            uneven=may_be and any(map(_is_uneven, grown)),
            mostly_found=self.asked_often,
            memo=self.window.memo or self.prospects.memo,
            found=bool(self.suspects),
            on_host=all(one.resource.startswith("host.") for one in grown),
            held_by_nothing=self.window.doubtful or any(map(_is_of_nobody, self.suspects)),
            may_fill=(soon and any(map(_is_unheld, self.suspects)))
            or (early and self.window.keyed),
        )


class Attribution:
    """One attribution window over the steps that follow; a graph's may be brief."""

    def __init__(
        self,
        step: int,
        growing: list[Reading],
        slow: Series,
        *,
        longer: bool = False,
        least_steps: int = 0,
        case: outlook.Case = OF_A_PLAIN_LOOP,
        remade: Mapping[Holder, Way] | None = None,
    ) -> None:
        apart = max(_steps_apart(each, slow) for each in growing)
        wanted = round(FEWEST_SURVIVORS * apart) + SPARE_STEPS
        wanted = max(wanted, LONGER_WINDOW_STEPS) if longer else wanted
        wanted = max(wanted, least_steps)
        two = round(FEWEST_RARE * min(apart, FARTHEST_APART_STEPS)) + SPARE_STEPS
        length = max(WINDOW_STEPS, min(wanted, LONGEST_WINDOW_STEPS), two)
        rare = next((each.stairs for each in growing if each.stairs is not None), None)
        if rare is not None:
            length = FEWEST_RARE * rare.apart + SPARE_STEPS
        self._case = case
        self._last_step = step + length
        self._first_step = step
        self._rates = rates = {reading.resource: reading.line.per_step for reading in growing}
        self._brief = any(one.resource == "graph.nodes" and one.line.straight for one in growing)
        self._found: WindowResult | None = None
        self.spent_s = 0.0  # of the thread's processor time, once it is closed
        self._apart_steps = apart
        exact = [each for each in growing if each.resource in COUNTED_EXACTLY]
        self._nearest_steps = min(_steps_apart(each, slow) for each in exact or growing)
        last_look = length - SPARE_STEPS if length > WINDOW_STEPS else 0
        traced_steps = 2 * rare.early if rare and rare.is_regular else 0
        # an allocator's history of a thousand steps is too long
        self._devices = DeviceGrowth(() if rare else tuple(rates))
        self._window = Window(rates, apart, last_look, traced_steps, remade)
        self._window.open()

    @property
    def has_begun(self) -> bool:
        """Whether a step has passed since the window was opened."""
        return self._window.has_begun

    def step(self, step: int) -> bool:
        """Note a step boundary; True when the window has seen enough."""
        self._window.step()
        self._devices.step(step)
        if self._brief and step - self._first_step >= FEWEST_WINDOW_STEPS:
            return self._is_explained_at(step)
        return step >= self._last_step

    def close(self) -> WindowResult:
        """Close the window and return what it found."""
        memory = self._devices.close()
        began_s = thread_time()
        found = self._found or self._look_back()
        self.spent_s += self._window.spent_s + thread_time() - began_s
        notices = (*found.notices, *self._devices.notices)
        return replace(found, memory=memory, notices=notices, apart_steps=self._nearest_steps)

    def _is_explained_at(self, step: int) -> bool:
        """Say whether a few steps were enough: one holder has most of what the graph gains.

        If not, a window of the usual length begins.
        """
        self._brief = False
        self._found = self._look_back()
        if self._found.explain(self._rates["graph.nodes"]):
            return True
        self._found = None
        self.spent_s += self._window.spent_s
        self._first_step, self._last_step = step, self._last_step + FEWEST_WINDOW_STEPS
        self._window = Window(self._rates, self._apart_steps)
        self._window.open()
        return False

    def _look_back(self) -> WindowResult:
        found = self._window.close()
        suspects = [one for one in found.suspects if self._accounts(one)]
        asked = prospects_of(suspects, found, self._case)
        beyond = asked.beyond
        others = [one for one in asked.each if one not in beyond.each]
        grow = beyond.suspects
        places = (place for one in grow for place in one.locations)
        # what is kept with its graph is never a cache
        cached = bool(grow) and all(one.kind != "graph" for one in grow)
        return WindowResult(
            grow,
            (*found.notices, *beyond.passed, *beyond.too_large),
            replace(found, keyed=cached and found.keyed, memo=cached and found.memo),
            self._rates,
            prospects=beyond,
            limited=Prospects(tuple(others)),
            taken=_pools_of(grow) | {one: str(giving) for one, giving in found.taken.items()},
            asked_often=cached and beyond.mostly_found(found.steps),
            joined=any(found.sources.joins_more(at.path, at.line) for at in places),
        )

    def _accounts(self, suspect: Suspect) -> bool:
        """Say whether a suspect gains a good part of something that was measured to grow.

        What was larger at each look may be a batch, and beside tensors that come from an
        evaluation now and then a list of numbers grows on every step.
        """
        counted = suspect.kind == "object" and not self._rates.keys().isdisjoint(COUNTED_EXACTLY)
        if not suspect.is_extended and not counted:
            return True
        gained = max(
            (rate for name, rate in self._rates.items() if unit_of(name) == "B"), default=0
        )
        blocks = self._rates.get("python.blocks", inf)
        in_bytes, count = suspect.bytes_per_step or 0.0, suspect.objects_per_step or 0.0
        return in_bytes >= LEAST_SHARE * gained or count >= LEAST_SHARE * blocks

    def stop(self) -> None:
        """Trace no more lines, as at the end or in a forked child; hold none of the containers."""
        self._window.stop()

    def abandon(self) -> None:
        """Stop looking without an answer."""
        self._devices.close()
        self._window.abandon()
