"""Stage four: is what grows released after all: at a turn, by a statement, when it is full?"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from leakcheck.model import Holder, Notice
from leakcheck.runtime import outlook
from leakcheck.runtime.judgement import patience
from leakcheck.runtime.judgement.harmless import stopped
from leakcheck.runtime.judgement.release import GONE
from leakcheck.runtime.stages.moves import Attribute, Move, Settle, WatchAgain, confirm_for_longer
from leakcheck.runtime.stages.stage import GrowthStage

EMPTIED = "once-emptied"
AS_BEFORE = "than-before"


class Waiting(GrowthStage):
    """It is known who holds what grows, as far as anybody can tell."""

    name = "waiting"

    def enter(self, step: int) -> Move | None:
        """Begin to wait, if there is anything to wait for."""
        self._loop.suspects, self._loop.waiting_since_step = self.found.suspects, step
        return self.advance(step)

    def advance(self, step: int) -> Move | None:
        """Measure, and decide what was waited for long enough."""
        loop, growth = self._loop, self._growth
        release, prospects = growth.release, self.found.prospects
        seldom = release.too_seldom(loop.watch.quick, step)
        long = release.is_overdue(step)
        if emptied := self._emptied(step):
            return emptied
        if prospects.too_much:
            return Settle(growth)
        if growth.is_disputed and step - release.since_step > patience.DISPUTED_STEPS:
            growth.settle_dispute()
        if growth.is_disputed and not long:
            return None
        counts = self._counts(step)
        over = (long or self._never_came) and counts
        over = over and not (seldom or prospects.waits_for_end)
        if over or release.is_due(step, overdue=long):
            loop.checkpoint(step)
            if gone := release.gone(loop.watch.sources):
                return self._gone(step, gone)
        if seldom == "stopped":
            loop.tell(self._stopped(""), step=step)
            loop.looks.acquit(step)
            return WatchAgain(step)
        if over and prospects.looks_again and not self.episode.looked_late:
            return self._look_late(step)
        if not over and (seldom or not counts or self._may_be_released(step)):
            return None
        if growth.is_unheld and growth.is_gone(loop.watch.checkpoint(step)):
            return self._gone(step, self._stopped(EMPTIED))
        if full := self._full(step):
            return full
        if self.rests:  # until it goes on, or has stood for long enough
            return None
        return self._settled(step)

    def _settled(self, step: int) -> Move | None:
        """Establish a leak; what may yet be taken beside it is a note, or decides."""
        told = self._growth.leave_out_hoped(step)
        if told is None:
            return None
        self._loop.tell(*told, step=step)
        return Settle(self._growth)

    def _emptied(self, step: int, *, at_end: bool = False) -> Move | None:
        """Read how long the containers are, and acquit what was emptied."""
        self._growth.lengths.measure(step, at_end=at_end)
        emptied_from = self._growth.emptied_from
        self._loop.emptied_from |= emptied_from
        return self._without(emptied_from, EMPTIED, step)

    def _taken_out(self, step: int) -> Move | None:
        """Acquit, at the end, what its holder holds no more, if the counters came down too."""
        released = self._growth.lengths.released()
        if not released:
            return None
        readings = self._loop.watch.checkpoint(step, collect=True)
        over = self._growth.release.is_over(step, readings)
        return self._without(released, EMPTIED, step) if over else None

    def _full(self, step: int) -> Move | None:
        return self._without(self._growth.full, GONE, step)

    def _without(self, holders: Collection[Holder], seen: str, step: int) -> Move | None:
        """Go on without these; if no leak is left, what grew is over, as was `seen`."""
        growth = self._growth
        if not holders or growth.goes_on_without(holders) or growth.waits_on_without(holders):
            return None
        return self._gone(step, self._stopped(seen))

    def _stopped(self, seen: str) -> Notice:
        return stopped((one.resource for one in self.grown), seen)

    def _gone(self, step: int, notice: Notice) -> Move:
        self._loop.tell(notice, step=step)
        self._loop.acquitted |= {one.resource for one in self.grown}
        self._loop.excuse(self.grown, 2 * step)
        return WatchAgain(step)

    def _look_late(self, step: int) -> Move:
        period_steps = self.found.prospects.period_steps
        steps = max(patience.FINE_STEPS, patience.PERIODS_THAT_CONFIRM * period_steps)
        late = replace(self.episode, looked_late=True)
        return confirm_for_longer(late, step, steps, self.found)

    @property
    def rests(self) -> bool:
        """Whether what holds it gains nothing now, though often it did: it may be full."""
        return self._growth.lengths.rest

    @property
    def _never_came(self) -> bool:
        """Whether what might take away has been waited for, and nothing was taken."""
        waits = self._loop.waits != "nothing" or self._growth.waits_long
        return not waits and self._growth.rose_for(patience.NEVER_CAME_STEPS)

    def _may_be_released(self, step: int) -> bool:
        loop = self._loop
        graph = any(reading.resource == "graph.nodes" for reading in self.grown)
        if graph and not self.found.prospects.removal and (loop.waits != "all" or loop.by_phase):
            waits = self._growth.waits_for_graph(step)
            return waits or loop.span.seen(step) < loop.graph_patience_steps
        return self._growth.release.hope.emptied or (loop.waits != "nothing" and not loop.by_phase)

    def turn(self, step: int, depth: int) -> Move | None:
        """Judge whether the loop that turned has released it."""
        loop, release = self._loop, self._growth.release
        self._growth.turned()
        if depth <= release.kept_at:
            return None
        readings = loop.watch.checkpoint(step, collect=True)
        outcome = release.judge(step, readings, depth, loop.rounds.outermost)
        if not isinstance(outcome, str):
            return self._by_phase(step, depth, outcome)
        may_be = release.hope.emptied or self.found.prospects.turns
        if outcome == "kept" and may_be and not self.episode.doubted:
            # what the turn empties is not the holder: look for longer
            return Attribute(self.grown, replace(self.episode, doubted=True))
        if outcome == "kept":
            loop.waits = "nothing"
        return None

    def _by_phase(self, step: int, depth: int, notice: Notice) -> Move:
        """From now on compare one turn with the next."""
        loop = self._loop
        loop.tell(notice, step=step)
        loop.by_phase, loop.phase_depth, loop.suspects = True, depth, ()
        loop.watch.slow.clear()
        loop.excuses.add(loop.in_use)  # its quick readings are not at one phase
        return WatchAgain(step)

    def settle(self, step: int, *, cut_short: bool, exhausted: bool) -> Move | None:
        """Establish it where nothing more is to come that may release it."""
        loop, growth = self._loop, self._growth
        growth.settle_dispute()
        as_before = growth.as_before(loop.emptied_from)
        if ended := self._emptied(step, at_end=True) or self._without(as_before, AS_BEFORE, step):
            return ended
        if taken := self._taken_out(step):
            return taken
        if not (cut_short or exhausted) and (move := self.acquit(step)):
            return move
        if gone := growth.release.gone(loop.watch.sources, at_end=True):
            loop.tell(gone, step=step)
            return WatchAgain(step)
        if full := self._full(step):
            return full
        seldom = bool(growth.release.too_seldom(loop.watch.quick, step))  # to be sure
        hoped = seldom or (self._is_hoped_for(step) and not exhausted)
        counts = not cut_short or self._counts(step)
        return self._settled(step) if counts and not hoped else None

    def _counts(self, step: int) -> bool:
        """Say whether growth counts before the loop has ended: one without a graph may gather data.

        Not what nothing reads but that loop: `for request in stream: log[request.id] = answer`.
        """
        waited_steps = step - self._growth.release.since_step
        long = waited_steps > outlook.ELSEWHERE_STEPS
        return self._loop.trusted or (long and self.found.prospects.is_unread)

    def _is_hoped_for(self, step: int) -> bool:
        growth = self._growth
        waits = growth.is_disputed or self.found.prospects.waits_for_end or self.rests
        return growth.release.hoped_for or growth.waits_for_graph(step) or waits

    def acquit(self, step: int) -> Move | None:
        """Acquit what a loop that is over gathered for what comes after it."""
        loop, prospects = self._loop, self.found.prospects
        gathered = prospects.gathered
        if not gathered.each or not prospects.explain(self.grown):
            return None
        loop.tell(*gathered.told_of_gathered(loop.span.seen(step)), step=step)
        holders = [one.suspect.holder for one in gathered.each]
        if gathered == prospects or self._growth.is_little_without(holders):
            loop.excuse(self.grown, 2 * step)
            return WatchAgain(loop.span.after)  # the run is over: its steps were judged
        self._growth.goes_on_without(holders)
        return None
