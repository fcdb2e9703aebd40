"""The course of a watch: which stage it is in, and which one follows from each move.

The numbers that the stages decide on stand in `patience`, `outlook` and `doubts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from leakcheck.model import Holder
from leakcheck.runtime.attribution.way import Way
from leakcheck.runtime.judgement.tolerance import Tolerance
from leakcheck.runtime.readings.watching import Watch
from leakcheck.runtime.stages.attributing import Attributing
from leakcheck.runtime.stages.confirming import Confirming
from leakcheck.runtime.stages.growth import EstablishedGrowth
from leakcheck.runtime.stages.loop import LoopCourse
from leakcheck.runtime.stages.moves import Attribute, Await, Confirm, Move, Settle, WatchAgain
from leakcheck.runtime.stages.settled import Growing, Steady
from leakcheck.runtime.stages.stage import Stage
from leakcheck.runtime.stages.waiting import Waiting
from leakcheck.runtime.stages.watching import Watching


class Course:
    """The watch of one loop after another, as the stage that it is in."""

    def __init__(self, watch: Watch, steps: int, tolerance: Tolerance) -> None:
        self.loop = LoopCourse(watch, steps, tolerance)
        self.stage: Stage
        self._begin(0)

    def _begin(self, step: int) -> None:
        self.stage = Watching(self.loop, step)
        self._next_read = step + 1
        self._turned = False  # the loop around the steps, since the last of them

    @property
    def next_step(self) -> int:
        """The next step at which `advance` has something to do."""
        return 0 if self.stage.name == "attributing" else self._next_read

    def restart(self, step: int) -> None:
        """Watch another loop from `step` on."""
        self.stage.abandon()
        self.loop.restart(step)
        self._begin(step)

    def advance(self, step: int) -> None:
        """Do what is due at this step boundary."""
        if self._turned:
            self._turned = False
            self.loop.teeth.turn(step)
        if self.stage.name == "attributing":  # which disturbs the readings
            self._next_read = step + 1
            self._go(step, self.stage.advance(step))
            return
        self._next_read = self.loop.watch.read(step)
        depth = self.loop.rounds.take(step)
        move = self.stage.turn(step, depth) if depth else None
        self._go(step, move or self.stage.advance(step))

    def _go(self, step: int, move: Move | None) -> None:
        """Follow the moves until a stage stays."""
        while move is not None:
            self.stage.abandon()
            self.stage = self._after(move, step)
            move = self.stage.enter(step)

    def _after(self, move: Move, step: int) -> Stage:
        loop = self.loop
        match move:
            case WatchAgain(after, closely):
                return Watching(loop, after, closely=closely)
            case Confirm(confirmation, episode):
                return Confirming(loop, confirmation, episode)
            case Attribute(grown, episode, least_steps):
                return Attributing(loop, grown, episode, least_steps)
            case Await(found, episode):
                waits = loop.waits != "nothing"
                little_bytes = loop.tolerance_bytes
                growth = EstablishedGrowth(
                    found, episode, step, waits=waits, tolerance_bytes=little_bytes
                )
                return Waiting(loop, growth)
            case Settle(growth):
                return Growing(loop, growth) if growth is not None else Steady(loop)

    @property
    def heeds_phases(self) -> bool:
        """Whether it matters when the loop around the steps begins anew."""
        return self.stage.name == "waiting" or self.loop.by_phase

    def phase(self, depth: int = 1) -> None:
        """Note that a loop around the steps turns; judged when what it held is rebound."""
        self._turned = True
        if self.heeds_phases:
            self.loop.rounds.note(depth)
        self._next_read = 0

    def settle(self, step: int, *, cut_short: bool = False, exhausted: bool = False) -> None:
        """The loop has ended, `cut_short` or `exhausted` (of memory): close what is open."""
        self._go(step, self.stage.close(step, cut_short=cut_short, exhausted=exhausted))
        self._go(step, self.stage.settle(step, cut_short=cut_short, exhausted=exhausted))

    def end(self, step: int, *, cut_short: bool, exhausted: bool) -> None:
        """Settle for the last time, and tell what rose to the end from garbage."""
        self.settle(step, cut_short=cut_short, exhausted=exhausted)
        if self.stage.name == "watching" and not exhausted:
            self.loop.find_garbage(step)

    def loop_ended(self, step: int) -> None:
        """Close what is open of a loop that has ended, and acquit what it gathered.

        One that trained is judged as at the end of the program.
        """
        if self.loop.trusted:
            self.settle(step)
            return
        self._go(step, self.stage.close(step, cut_short=False, exhausted=False))
        self._go(step, self.stage.acquit(step))

    @property
    def grows_at(self) -> Mapping[Holder, Way]:
        """The ways to the containers that were found to grow, by holder, once that is certain."""
        return self.stage.found.way_by_holder if self.stage.name == "growing" else {}

    def look_again(self, step: int) -> None:
        """Begin the window anew: what it compares with was under another load, or went away."""
        stage = self.stage
        if isinstance(stage, Growing):
            stage = Attributing(self.loop, stage.grown, stage.episode)
        if isinstance(stage, Attributing):
            self.stage = stage
            self._go(step, stage.open(step))
            stage.episode = replace(stage.episode, doubted=True)

    def leave(self) -> None:
        """In a forked child: stop what would go on by itself."""
        self.stage.leave()

    def abandon(self) -> None:
        """End what is under way without an answer: the watch has failed."""
        self.stage.abandon()
