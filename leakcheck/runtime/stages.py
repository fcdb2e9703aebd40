"""The course of a watch: watching, then confirming, waiting, attributing, and the conclusion.

The numbers that it decides on stand in `patience`, `outlook` and `doubts`; what it reads comes from
`watching` and `attribution_window`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Literal

from leakcheck.model import DeviceMemory, Holder, Notice, Reason, Suspect
from leakcheck.runtime import outlook
from leakcheck.runtime.attribution.way import Way
from leakcheck.runtime.attribution_window import LONGEST_WINDOW_STEPS, WINDOW_STEPS, Attribution
from leakcheck.runtime.doubts import longer_steps
from leakcheck.runtime.guard import is_of_program
from leakcheck.runtime.judgement import judge, patience
from leakcheck.runtime.judgement.confirmation import Confirmation
from leakcheck.runtime.judgement.curve import LengthCurve
from leakcheck.runtime.judgement.harmless import (
    PLAIN,
    Excuses,
    dated,
    excuse,
    is_garbage,
    newest,
    plain_bytes,
    stopped,
)
from leakcheck.runtime.judgement.judge import Reading, Recurring
from leakcheck.runtime.judgement.looks import Looks
from leakcheck.runtime.judgement.planned import again, confirmation
from leakcheck.runtime.judgement.release import Hope, Release, Removal, Waits
from leakcheck.runtime.judgement.rounds import Rounds
from leakcheck.runtime.judgement.span import LoopSpan
from leakcheck.runtime.judgement.tolerance import Passed, Tolerance
from leakcheck.runtime.judgement.vigil import Vigil
from leakcheck.runtime.prospects import NO_PROSPECTS
from leakcheck.runtime.readings.meters import COUNTED, HELD_BACK, is_in_use
from leakcheck.runtime.readings.watching import FREE_CHECKPOINT_S, Watch

EMPTIED = "once-emptied"
Stage = Literal["watching", "confirming", "waiting", "attributing", "growing", "steady"]


class Course:
    """Which stage the watch of one loop is in, and what it has established."""

    def __init__(self, watch: Watch, steps: int, tolerance: Tolerance) -> None:
        self.watch, self.steps, self.tolerance = watch, steps, tolerance
        self.waits: Waits = "nothing"
        self.per_request = False  # the steps are requests
        self.trains = True  # an optimizer makes them, as far as is known
        self.graph_patience_steps = 0  # a sum over so many samples may be meant, before backward
        self._confirmation: Confirmation | None = None
        self._attribution: Attribution | None = None
        self._attribute_from: Callable[[int], Attribution]
        self.trusted, self.established_step, self._phase_depth = True, 0, 0
        self.fills_beside: float | None = None  # the bytes a step of what fills up beside a leak
        self.rounds, self._recurring = Rounds(), Recurring(patience.PHASES_THAT_CONFIRM)
        self._release = Release([], 0)
        self.restart(0)

    @property
    def tolerance_bytes(self) -> int:
        """What plain objects may gain a step without being looked at."""
        if self._passed:
            return self.tolerance.beside(self._passed_per_step)
        return self.tolerance.per_step_bytes

    @property
    def next_step(self) -> int:
        """The next step at which `advance` has something to do."""
        return self._next_read if self._attribution is None else 0

    @property
    def pending(self) -> list[Reading]:
        """What looks like growth that would count, and was neither confirmed nor acquitted."""
        confirmation = self._confirmation if self.stage == "confirming" else None
        found = self._looks.found() if self.stage == "watching" and not self._by_phase else []
        found = confirmation.in_doubt(self.watch.quick) if confirmation else found
        if self.stage in ("watching", "confirming", "steady"):
            found = self._looks.in_doubt(found)
        sure = confirmation is not None and len(confirmation.taken) > 1
        seen = self.span.seen(self.watch.quick.last_step)
        waits = not sure and is_garbage(found, self.watch.garbage, seen)
        excused = waits or excuse(found, self.tolerance_bytes, confirmed=sure)
        return [] if excused else found

    def restart(self, step: int) -> None:
        """Watch another loop from `step` on."""
        self._drop_attribution()
        self.established: list[Reading] = []
        self.suspects: tuple[Suspect, ...] = ()
        self.memory: tuple[DeviceMemory, ...] = ()  # of the devices that grow
        self.notices: tuple[Notice, ...] = ()
        self.removal: Removal | None = None  # a statement that may yet take away what they hold
        self.watch.start_over(step)
        self.stage: Stage = "watching"
        self.excuses, self._vigil, self.span = Excuses(), Vigil(), LoopSpan(step, self.steps)
        self._passed: Passed = ""  # of what is tolerated,
        self._passed_per_step = 0.0  # by so many bytes a step
        self._looks = Looks(self.watch, self.span, self.excuses, self.tolerance_bytes)
        self._confirmation, self._by_phase = None, False
        # it grows: too evenly to wait as usual; where a cache may fill up; it was looked at longer
        self._soon = self._may_fill_up = self._doubted = self.per_training = False
        self._waits_long = self._disputed = False
        self._looked_again = False  # over a whole period of what may take it away
        self._looked_late = False  # after that was waited for
        self._prospects = NO_PROSPECTS  # of the suspects
        self._way_by_holder: Mapping[Holder, Way] = {}
        self._curves: dict[Holder, LengthCurve] = {}  # of the containers that these lead to
        self.held: tuple[Suspect, ...] = ()  # what was found before it was confirmed for longer
        self._next_read, self._next_checkpoint = step + 1, self.watch.next_checkpoint(step)
        self._next_lowering = step  # of the vigil's levels

    def trust(self) -> None:
        """Take the steps for training steps: growth of any kind counts from now on."""
        self.trusted = True
        self.watch.budget_anew()

    def advance(self, step: int) -> None:
        """Do what is due at this step boundary."""
        if self.stage == "attributing":
            self._next_read = step + 1
            self._attribute(step)
            return
        self._next_read = self.watch.read(step)
        if depth := self.rounds.take(step):
            self._begin_phase(step, depth)
        if self.stage == "watching":
            self._look_if_due(step)
        elif self.stage == "confirming":
            self._confirm(step)
        elif self.stage == "waiting":
            self._wait(step)
        elif self._attribution is None:
            self._keep_watch(step)

    @property
    def heeds_phases(self) -> bool:
        """Whether it matters when the loop around the steps begins anew."""
        return self.stage == "waiting" or self._by_phase

    def phase(self, depth: int = 1) -> None:
        """Note that a loop around the steps turns; judged when what it held is rebound."""
        if self.heeds_phases:
            self.rounds.note(depth)
        self._next_read = 0

    def _begin_phase(self, step: int, depth: int) -> None:
        turned = self._by_phase and depth >= self._phase_depth
        if self.stage == "waiting" and depth > self._release.kept_at:
            self._judge_release(step, depth)
        elif self.stage == "watching" and turned and self.watch.affordable():
            self._checkpoint(step)
            self._take_a_look(step)

    def settle(self, step: int, *, cut_short: bool = False, exhausted: bool = False) -> None:
        """The program has ended, `cut_short` or `exhausted` (of memory): close what is open."""
        if self.stage == "attributing" and self.held:  # confirmed twice, and found the first time
            self._drop_attribution()
            self._wait_or_establish(step, self.held)
        elif self.stage == "attributing":
            self._finish_attribution(step, at_end=True)
        elif self.stage == "confirming" and not cut_short:
            self._establish_so_far(step, exhausted=exhausted)
        self._settle_dispute()
        if self.stage == "waiting" and not (cut_short or exhausted):
            self._settle_gathered(step)
        hoped = self._release.hoped_for and not exhausted
        hoped = hoped or ((self._is_disputed or self._prospects.waits_for_end) and not exhausted)
        hoped = hoped or bool(self._release.too_seldom(self.watch.quick, step))  # to be sure
        gone = self._release.gone(self.watch.sources, at_end=True)
        if gone is not None and self.stage in ("waiting", "growing"):
            self._add(gone, step=step)
            self._watch_again(step)
        elif self.stage == "waiting" and (self.trusted or not cut_short) and not hoped:
            self.stage = "growing"  # to the end, and it was never released

    def _settle_gathered(self, step: int) -> None:
        """Acquit what a loop that is over gathered for what comes after it."""
        gathered = self._prospects.gathered
        if not gathered.each or not self._prospects.explain(self.established):
            return
        self._add(*gathered.told_of_gathered(self.span.seen(step)), step=step)
        if gathered == self._prospects:
            self._excuse(2 * step)
            self._watch_again(step, self.span.after)  # the run is over: its steps were judged
        else:
            self._goes_on_without([one.suspect.holder for one in gathered.each])

    def _establish_so_far(self, step: int, *, exhausted: bool) -> None:
        if self._confirmation and self.held and not self.excuses.has_slowed(self.held):
            self.established = self._confirmation.so_far(exhausted=exhausted)
            if self.established:
                self._wait_or_establish(step, self.held)

    def _look_if_due(self, step: int) -> None:
        if step < self._next_checkpoint:
            return
        if self._is_tolerated_no_more(step):
            self._look_closely(step)
            return
        last = self.trusted and step >= self.span.steady_step
        free_s = FREE_CHECKPOINT_S if self.trusted else patience.FREE_WHILE_IN_DOUBT_S
        if not last and not self.watch.affordable(free_s):
            self._next_checkpoint = self.watch.next_checkpoint(step)
        elif not self._by_phase:
            self._checkpoint(step, sparing=not last)
            self._take_a_look(step)
        if self.stage == "watching" and last and self._looks.saw_enough:
            self.stage = "steady"
            self._vigil.begin(self.watch.sources)
            self._next_lowering = step + self.steps
            self.watch.read_less()
            self._next_checkpoint = self.watch.next_checkpoint(step)

    def _keep_watch(self, step: int) -> None:
        rose = self._vigil.rose(self.watch.quick.newest())
        if step >= self._next_lowering:
            self._vigil.lower()
            self._next_lowering = step + self.steps
        if step >= self._next_checkpoint and self._is_tolerated_no_more(step):
            self.watch.resume(step)
            self._look_closely(step)
            return
        if step >= self._next_checkpoint and self.watch.affordable(free_s=0.0):
            self._checkpoint(step, sparing=True)
            if self._vigil.rose(newest := self.watch.slow.newest()):  # or waits for the collector
                rose |= self._vigil.rose(self.watch.checkpoint(step, collect=True))
                self._vigil.allow(newest)
        if rose and self.stage == "steady":
            self.watch.resume(step)
            self._watch_again(step)

    def _checkpoint(self, step: int, *, sparing: bool = False) -> None:
        self.watch.checkpoint(step, sparing=sparing)
        settled = 0 if self.stage == "steady" else self.span.steady_step
        self._next_checkpoint = self.watch.next_before(step, self.span.after, settled)

    def _is_tolerated_no_more(self, step: int) -> bool:
        """Say whether what is little a step has come to too much: it is looked at again then."""
        creeping = judge.creep_per_step(self.watch.quick, self.span.origin)
        gained = max(self.excuses.tolerated_per_step, creeping)
        passed = self.tolerance.passed(gained, self.span.seen(step), self.watch.elapsed_s)
        if not passed or passed == self._passed:
            return False
        self._passed, self._passed_per_step = passed, gained
        self.excuses.tolerate_no_more()
        return True

    def _look_closely(self, step: int) -> None:
        """Confirm whatever grows, however slowly, over many steps."""
        self._watch_again(step)
        self._checkpoint(step)
        if plain := judge.companions(self.watch.slow, [], PLAIN):
            self._suspect(plain, step, patience.FINE_STEPS)

    def _take_a_look(self, step: int) -> None:
        found = self._looks.take(step)
        if self._by_phase:
            # steps inside a phase confirm nothing: what is released at its end grows in them
            if recurring := self._recurring.note(found):
                self._open_window(step, recurring)
        elif found:
            self._suspect(found, step)
        elif found := self._looks.soon():
            self._soon = True
            self._suspect(found, step, patience.EVEN_STEPS)

    def _suspect(self, found: list[Reading], step: int, length: int = 0) -> None:
        planned = confirmation(found, self.watch.slow, step, self.tolerance_bytes, length)
        self._begin_confirmation(planned, step)

    def _begin_confirmation(self, confirmation: Confirmation, step: int) -> None:
        self._confirmation, self.stage = confirmation, "confirming"
        self._confirm(step)

    def _confirm(self, step: int) -> None:
        confirmation = self._confirmation
        if confirmation is None or step < confirmation.next_step:
            return
        complete = confirmation.read(self.watch, step)
        if confirmation.was_garbage and excuse(confirmation.suspected, self.tolerance_bytes):
            self._watch_again(step, self.span.after)  # it fell: what was read so far shows that too
        elif not complete:
            return
        elif confirmed := confirmation.confirmed(self.watch):
            self._open_window(step, confirmed)
        elif self._soon:  # wait for as long as usual
            self._watch_again(step, self.span.after)
        elif (longer := confirmation.longer(step, self.span.seen(step))) is not None:
            self._confirmation = longer  # read at the next step: the blocks of this one are gone
        elif (beside := self._went_on_beside(confirmation)) and not self._is_excused(beside):
            self._suspect(beside, step)
        else:
            self.excuses.note_slower(self.held, confirmation.rates_at_first())
            self._add(*confirmation.what_stayed(), step=confirmation.begin)
            if any(one.stairs for one in confirmation.suspected):
                self._looks.acquit(step)
            self._watch_again(step)

    def _went_on_beside(self, confirmation: Confirmation) -> list[Reading]:
        """Return what was only looked at and went on, though nothing suspected did.

        Of requests all that is counted; elsewhere blocks and tensors count for little beside the
        heap, but nothing makes a thread, a descriptor or a child by chance.
        """
        went_on = confirmation.went_on_beside(self.watch)
        return [one for one in went_on if self.per_request or one.resource in COUNTED]

    def _is_excused(self, found: list[Reading]) -> bool:
        return excuse(found, self.tolerance_bytes) is not None

    def _watch_again(self, step: int, after: int | None = None) -> None:
        self._confirmation, self._soon, self._doubted, self.held = None, False, False, ()
        self._looked_late = False
        self.established = []
        self.span.after, self.stage = step if after is None else after, "watching"
        self._next_checkpoint = self.watch.next_checkpoint(step)

    def _wait_or_establish(self, step: int, suspects: tuple[Suspect, ...]) -> None:
        self.stage, self.suspects = "waiting", suspects
        self._waits_long = self.waits != "nothing" and self._prospects.waits_long
        self._release = Release(self.established, step, self._hope)
        wanted = suspects if self.removal is not None or self._disputed else ()
        known = (one.holder for one in wanted if one.holder in self._way_by_holder)
        self._curves = {holder: LengthCurve() for holder in known}
        self._wait(step)

    @property
    def _hope(self) -> Hope:
        """What may yet take away what grows, and for how long that is waited for."""
        doubt = self._may_fill_up or not self.suspects
        emptied = self._waits_long or self.removal is not None
        steps = outlook.ELSEWHERE_STEPS if doubt else outlook.LOOP_STEPS
        if emptied:
            wanted = self._prospects.wait_steps
            steps = max(steps, wanted if self._waits_long else min(wanted, outlook.ELSEWHERE_STEPS))
        at_any_step = self.removal is not None and self.removal.reached
        return Hope(steps, emptied, at_any_step, doubt, self.per_training)

    def _wait(self, step: int) -> None:
        seldom = self._release.too_seldom(self.watch.quick, step)
        long = self._release.is_overdue(step)
        self._measure(step)
        emptied = [holder for holder, curve in self._curves.items() if curve.came_down]
        if emptied and not self._goes_on_without(emptied):
            self._add(stopped((one.resource for one in self.established), EMPTIED), step=step)
            self._excuse_until(step, 2 * step)
            return
        if self._is_disputed and step - self._release.since_step > patience.DISPUTED_STEPS:
            self._settle_dispute()
        if self._is_disputed and not long:
            return
        meant = bool(seldom) or self._prospects.waits_for_end
        over = (long or self._in_vain) and self.trusted and not meant
        if over or self._release.is_due(step, overdue=long):
            self._checkpoint(step)
            if gone := self._release.gone(self.watch.sources):
                self._add(gone, step=step)
                self._excuse_until(step, 2 * step)
                return
        if seldom == "stopped":
            self._add(stopped(one.resource for one in self.established), step=step)
            self._looks.acquit(step)
            self._watch_again(step)
        elif over and self._prospects.looks_again and not self._looked_late:
            steps = max(
                patience.FINE_STEPS, patience.PERIODS_THAT_CONFIRM * self._prospects.period_steps
            )
            self._confirm_for_longer(step, steps, self.suspects)
            self._looked_late = True
        elif over or (self.trusted and not seldom and not self._may_be_released(step)):
            self.stage = "growing"

    def _measure(self, step: int) -> None:
        for holder, curve in self._curves.items():
            curve.read(step, self._way_by_holder[holder].length())

    def _settle_dispute(self) -> None:
        """Leave out, beside a leak, what did not grow evenly: something did remove from it."""
        vain = set(self._prospects.in_vain) if self._disputed else set()
        curves = ((holder, self._curves.get(holder)) for holder in vain)
        wavers = [h for h, one in curves if one is None or not one.rose_evenly(0)]
        if wavers and self._goes_on_without(wavers):
            self._disputed = bool(self._prospects.in_vain)

    def _goes_on_without(self, holders: Collection[Holder]) -> bool:
        """Leave out what these hold, if another is a leak whatever becomes of it; say whether."""
        left = self._prospects.without(holders)
        if left.leaks:
            self._prospects = left
            self.suspects = tuple(one for one in self.suspects if one.holder not in holders)
            self._curves = {h: one for h, one in self._curves.items() if h not in holders}
        return left.leaks

    @property
    def _in_vain(self) -> bool:
        """Whether what might take away has been waited for, and nothing was taken."""
        waits = self.waits != "nothing" or self._waits_long
        return not waits and self._rose_for(patience.IN_VAIN_STEPS)

    @property
    def _is_disputed(self) -> bool:
        """Whether a statement that took nothing from it yet is to have some more chances."""
        known = self._disputed and bool(self._curves)
        return known and not self._rose_for(patience.DISPUTED_STEPS)

    def _rose_for(self, steps: int) -> bool:
        """Say whether each of the containers was measured to grow evenly for so many steps."""
        curves = self._curves.values()
        return bool(curves) and all(curve.rose_evenly(steps) for curve in curves)

    def _may_be_released(self, step: int) -> bool:
        graph = any(reading.resource == "graph.nodes" for reading in self.established)
        if graph and not self.removal and (self.waits != "all" or self._by_phase):
            return self.span.seen(step) < self.graph_patience_steps
        return self._release.emptied or (self.waits != "nothing" and not self._by_phase)

    def _judge_release(self, step: int, depth: int) -> None:
        readings = self.watch.checkpoint(step, collect=True)
        outcome = self._release.judge(step, readings, depth, self.rounds.outermost)
        may_be = self._release.emptied or self._prospects.turns
        if not isinstance(outcome, str):
            self._add(outcome, step=step)
            self._by_phase, self._phase_depth, self.suspects = True, depth, ()
            self.watch.slow.clear()
            self.excuses.add(self._in_use)  # its quick readings are not at one phase
            self._watch_again(step)
        elif outcome == "kept" and may_be and not self._doubted:
            self._doubted = True  # what the turn empties is not the holder: look for longer
            self._open_window(step, self.established)
        elif outcome == "kept":
            self.waits = "nothing"

    def _open_window(self, step: int, confirmed: list[Reading], least_steps: int = 0) -> None:
        since = self._confirmation.begin if self._confirmation else self.span.after
        confirmed = [judge.refitted(reading, self.watch.quick, since) for reading in confirmed]
        if (harmless := excuse(confirmed, self.tolerance_bytes)) is not None:
            if not self._soon:
                self._add(harmless, step=step)
                per_step = plain_bytes(confirmed)
                self.excuses.tolerate((harmless,), self.tolerance_bytes, per_step=per_step)
            self._watch_again(step, self.span.after)  # of the others nothing was acquitted
            return
        self.established, self.established_step, self.stage = confirmed, step, "attributing"
        try:
            longer = self._doubted and not self.held
            self._attribute_from = partial(
                Attribution,
                growing=confirmed,
                slow=self.watch.slow,
                longer=longer,
                least_steps=least_steps,
                case=outlook.Case(per_request=self.per_request, trains=self.trains),
            )
            self._attribution = self._attribute_from(step)
        except Exception as error:  # that it grows is known; who holds it then is not
            self._attribution_failed(step, error)

    def _attribute(self, step: int) -> None:
        try:
            with self.watch.our_garbage():
                seen_enough = self._attribution is not None and self._attribution.step(step)
            if seen_enough:
                self._finish_attribution(step)
        except Exception as error:
            self._attribution_failed(step, error)

    @property
    def grows_at(self) -> Mapping[Holder, Way]:
        """The ways to the containers that were found to grow, by holder, once that is certain."""
        return self._way_by_holder if self.stage == "growing" else {}

    def look_again(self, step: int) -> None:
        """Begin the window anew: what it compares with was under another load, or went away."""
        if self.stage in ("attributing", "growing"):
            self._drop_attribution()
            self.stage, self._doubted = "attributing", True
            self._attribution = self._attribute_from(step)

    def leave(self) -> None:
        """In a forked child: stop what would go on by itself."""
        if self._attribution is not None:
            self._attribution.leave()

    def abandon(self) -> None:
        """End what is under way without an answer: the watch has failed."""
        self._drop_attribution()

    def _attribution_failed(self, step: int, error: Exception) -> None:
        self._drop_attribution()
        if is_of_program(error):
            raise error
        told = f"{type(error).__name__}: {error}"
        self._add(Notice("note", Reason.of("no-holder", error=told)), step=step)
        self._wait_or_establish(step, ())

    def _finish_attribution(self, step: int, *, at_end: bool = False) -> None:
        attribution, self._attribution = self._attribution, None
        assert attribution is not None
        with self.watch.our_garbage():
            numbers_bytes = self.tolerance.for_numbers(self._passed)
            findings = attribution.close().tolerating(self.tolerance_bytes, numbers_bytes)
        since = self.span.seen(self._release.since_step)
        findings = findings.since(self.suspects, since, self.span.seen(step))
        self.watch.pay(attribution.spent_s)
        del attribution  # or what it knows of the heap is in the readings that follow
        suspects, self.memory = findings.suspects, findings.memory
        self.fills_beside, self._prospects = findings.fills_beside, findings.prospects
        self.removal = self._prospects.removal
        self._add(*findings.notices, step=step)
        if findings.is_harmless:
            self.excuses.tolerate(
                findings.notices,
                self.tolerance.per_step_bytes,
                findings.rates,
                per_step=findings.tolerated_bytes,
            )
            self._excuse_until(step, step + findings.full_in_steps * outlook.FILLS_WITHIN)
            return
        self.per_training = findings.come_with(self.rounds.trainings, self.established[0].steps[0])
        limits = findings.limits(self._confirmation, self.tolerance_bytes)
        self._disputed = bool(self._prospects.in_vain)
        period = self._prospects.period_steps
        self._way_by_holder = findings.way_by_holder
        if (limits or self.removal) and self._may_look_again(period):
            self._looked_again = True
            self._open_window(step, self.established, period + 2)
            return
        limits = limits or self.excuses.slowing(suspects, findings.rates)
        until = self.excuses.limit(limits, findings.rates, step, graph=findings.of_graph)
        if limits is not None and until:
            self._add(Notice("bounded", limits), step=step)
            self._excuse_until(step, until)
            return
        if any(one.holder for one in self.held) and not findings.found:  # it is full now
            self._add(stopped(one.resource for one in self.established), step=step)
            self._watch_again(step)
            return
        seen = self.span.seen(step)
        steps = longer_steps(findings.doubt(self.established, seen, soon=self._soon))
        if at_end and any(one.stairs for one in self.established):
            steps = 0  # of more steps there are none, and it did rise
        self._may_fill_up = steps > 0 or findings.keyed
        if steps and not self._doubted and self.established:
            self._confirm_for_longer(step, steps, findings.firm)
            return
        self._wait_or_establish(step, suspects)

    def _confirm_for_longer(self, step: int, steps: int, held: tuple[Suspect, ...]) -> None:
        self._doubted, self._soon, self.held = True, False, held
        longer, self.established = again(self.established, step, steps), []
        self._begin_confirmation(longer, step)

    def _may_look_again(self, period_steps: int) -> bool:
        """Say whether a window may see what runs every so many steps, and has not looked yet."""
        fits = WINDOW_STEPS // 2 < period_steps <= LONGEST_WINDOW_STEPS
        return fits and not self._looked_again and bool(self.established)

    def _excuse_until(self, step: int, until: float) -> None:
        self._excuse(until)
        self._watch_again(step)

    def _excuse(self, until: float) -> None:
        grew = (one.resource for one in self.established)
        self.excuses.add({*grew, *PLAIN, *self._in_use, *HELD_BACK}, until)

    @property
    def _in_use(self) -> list[str]:
        return list(filter(is_in_use, self.watch.quick.resources))

    def _drop_attribution(self) -> None:
        attribution, self._attribution = self._attribution, None
        if attribution is not None:
            attribution.abandon()

    def _add(self, *notices: Notice, step: int) -> None:
        told = (dated(notice, self.span.seen(step)) for notice in notices)
        self.notices = newest((*self.notices, *told))
