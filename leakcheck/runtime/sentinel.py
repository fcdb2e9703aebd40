"""The sentinel around a loop: counts its steps, watches what the process holds, and answers.

    with leakcheck.Sentinel() as sentinel:
        for batch in loader:
            train(batch)
            sentinel.step()
    print(sentinel.report().verdict)

or, with the loop's own iteration as the step, `for batch in leakcheck.watch(loader): ...`.
A sentinel keeps numbers only, never an object of the program, and what goes wrong inside it is
told in the report: it never reaches the program.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import get_ident
from time import perf_counter
from types import CodeType, TracebackType
from typing import Protocol

from leakcheck.model import Holder, Reason, Report, Sample
from leakcheck.runtime.attribution.loops import Turns, loops_around
from leakcheck.runtime.attribution.way import Way
from leakcheck.runtime.clock.beside import OVER_AFTER
from leakcheck.runtime.clock.epochs import LoaderEpochs
from leakcheck.runtime.conclusion import Ending, conclude, ended
from leakcheck.runtime.guard import ErrorGuard, forget_what_was_raised
from leakcheck.runtime.judgement.judge import FEWEST_STEPS, read
from leakcheck.runtime.judgement.release import Waits
from leakcheck.runtime.judgement.tolerance import (
    DEFAULT_PER_HOUR_BYTES,
    DEFAULT_TOLERANCE_BYTES,
    DEFAULT_TOTAL_BYTES,
    Tolerance,
)
from leakcheck.runtime.readings.limits import Limits
from leakcheck.runtime.readings.meters import BLOCK_BYTES
from leakcheck.runtime.readings.watching import Watch
from leakcheck.runtime.stages.course import Course
from leakcheck.source.tree import Loop
from leakcheck.units import format_bytes

DEFAULT_STEPS = 1000


class Writer(Protocol):
    """Where the readings of a sentinel, and what it knows of a leak, are written."""

    def sample(self, step: int, elapsed_s: float, watch: Watch, clock: str) -> None:
        """Write the newest readings."""

    def leak(self, report: Report) -> None:
        """Write what is known of a leak."""


class Sentinel:
    """Watches a loop from `start` (or `with`) to `stop`; call `step` once an iteration.

    Started again after that, it watches another loop; its report is then of that one.

    `steps`: settled steps after which a loop without growth counts as steady;
    `tolerance_bytes`: growth of plain Python objects a step that nobody minds, unless it comes to
    `tolerance_total_bytes` in the run, or to `tolerance_per_hour_bytes` in a run of over a minute
    and is no log of numbers;
    `on_leak`: called once with the report when a leak is established, in the stepping thread.
    Steps may come from any thread, and leakcheck works in one: that of the first step, or of those
    that follow when it ends or steps no more. A forked child's steps are not counted. What is
    counted is the whole process's, so of two loops that run at once each sentinel sees the other's
    leak.
    Raises TypeError or ValueError for arguments that are none.
    """

    def __init__(
        self,
        *,
        steps: int = DEFAULT_STEPS,
        tolerance_bytes: int = DEFAULT_TOLERANCE_BYTES,
        tolerance_total_bytes: int = DEFAULT_TOTAL_BYTES,
        tolerance_per_hour_bytes: int = DEFAULT_PER_HOUR_BYTES,
        on_leak: Callable[[Report], object] | None = None,
        limits: Limits | None = None,
        recorder: Writer | None = None,
    ) -> None:
        _check(steps, tolerance_bytes, on_leak)
        self.clock = "sentinel.step()"
        self._on_leak = on_leak
        self._limits = limits or Limits()
        self._recorder = recorder
        self._lock = threading.RLock()
        tolerance = Tolerance(tolerance_bytes, tolerance_per_hour_bytes, tolerance_total_bytes)
        self._settings = (steps, tolerance)
        self._epochs = LoaderEpochs(self._loader_begins)
        self.completes: Callable[[Report], Report] | None = None  # with what else is known
        self._forget()

    def _forget(self) -> None:
        self.guard = ErrorGuard()
        self.hit_limit = ""
        self.previous: Report | None = None
        self._doubted: Report | None = None  # of a training that ended while something had grown
        self._count = itertools.count(1)
        self._step = 0
        self._next = 1
        self._pid = 0
        self._thread, self._foreign = 0, 0  # whose steps count, and how many of others since
        self._turned_elsewhere = 0  # the depth of a loop that another thread saw turn
        self._by_loader, self._loader_known = True, False  # what tells of epochs, and has it
        self._outer: dict[int, Turns] = {}  # of the loops around the steps, by depth
        self._turns: dict[int, Turns] = {}  # while it matters
        self._watch: Watch | None = None
        self._course: Course | None = None
        self._report: Report | None = None

    @property
    def broken(self) -> str:
        """What went wrong in leakcheck and ended the watch; "" if nothing did."""
        return self.guard.broken

    def start(self) -> Sentinel:
        """Begin to watch, after `stop` another loop anew; while it watches this changes nothing."""
        if self._report is not None:
            self._forget()
        if self._watch is None:
            self._pid = os.getpid()
            steps, tolerance = self._settings
            self._watch = Watch(fine=tolerance.per_step_bytes < BLOCK_BYTES)
            self._course = Course(self._watch, steps, tolerance)
            self._epochs.listen()
        return self

    def stop(self, *, cut_short: bool = False, exhausted: bool = False) -> None:
        """End the watch; the report stays available.

        `cut_short`: the loop was not at its end; `exhausted`: it ended for want of memory.
        """
        if self._watch is not None and self._report is None:
            exhausted = exhausted or bool(self.hit_limit)
            self._report = self._conclude(Ending(), cut_short=cut_short, exhausted=exhausted)
            self._watch.close()
            self._epochs.stop()

    def leave(self) -> None:
        """In a forked child: what of this watch would go on by itself ends; the parent keeps it.

        No lock is taken: a thread that is not in the child may have held it.
        """
        with suppress(Exception):
            if self._watch is not None:
                self._watch.leave()
            if self._course is not None:
                self._course.leave()
            self._epochs.stop()

    def pause(self) -> None:
        """The loop ended, and may begin anew, as in each epoch: settle what can be settled."""
        if self._course is None or self.broken or self._report is not None:
            return
        try:
            with self._lock:
                self._course.settle(self._step)
                self._next = 0
        except Exception as error:
            self._break(error)

    def __enter__(self) -> Sentinel:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def step(self) -> None:
        """Count one step; most calls cost less than a microsecond, readings about ten."""
        self._step = step = next(self._count)
        if get_ident() != self._thread and not self._takes_over():
            return
        if self._turns:
            self._heed(self._turns)
        if self._turned_elsewhere:
            depth, self._turned_elsewhere = self._turned_elsewhere, 0
            self.phase(depth)
        if step < self._next or self._report is not None:
            return
        self.start()
        if self.broken or os.getpid() != self._pid:
            return
        leak: Report | None = None
        forget_what_was_raised()
        try:
            leak = self._established() if self._advance(step) else None
        except Exception as error:  # ours, and the program must not pay for it
            self._break(error)
        if leak is not None and self._on_leak is not None:
            self._on_leak(leak)

    def _takes_over(self) -> bool:
        """Say whether the steps of this thread count from now on, and not those of another."""
        self._foreign += 1
        if self._thread and self._foreign < OVER_AFTER and _lives(self._thread):
            return False
        self._thread, self._foreign = get_ident(), 0
        return True

    def waits_for(self, waits: Waits, outermost: int = 1, *, by_loader: bool = False) -> None:
        """Say what grows until a loop around the steps turns.

        `outermost`: the depth of the outermost of those whose turns are told; `by_loader`: a
        DataLoader may tell those of the nearest.
        """
        with self._lock:
            self._by_loader, self._loader_known, self._outer = by_loader, False, {}
            if self._course is not None:
                self._course.loop.waits = waits
                self._course.loop.rounds.outermost = outermost

    def loop_begins(self, around: Sequence[tuple[CodeType, Loop]]) -> None:
        """Note that the loop of the steps begins, or begins anew in the loops `around` it."""
        if self._step:
            self.phase()
            return
        self.start().waits_for("all but graphs" if around else "nothing")
        self._ask(enumerate(Turns.of_outer(around), 2))

    def _ask(self, outer: Iterable[tuple[int, Turns]]) -> None:
        """Ask these loops around the steps, by depth, whether they turned: who can tell."""
        self._outer = {depth: turns for depth, turns in outer if turns.names}
        if self._course is not None:
            self._course.loop.rounds.outermost = max(self._outer, default=1)

    def phase(self, depth: int = 1) -> None:
        """Note that a loop around the steps begins its next iteration: an epoch is at depth 1."""
        if self._course is None or self.broken or self._report is not None:
            return
        if self._thread not in (0, get_ident()):  # noted, and told at the next step
            self._turned_elsewhere = max(depth, self._turned_elsewhere)
            return
        try:
            with self._lock:
                self._course.phase(depth)
                self._next = 0
        except Exception as error:
            self._break(error)

    def _loader_begins(self) -> None:
        if self._by_loader:
            self.phase()

    def restart(
        self,
        clock: str,
        *,
        trusted: bool,
        waits: Waits = "nothing",
        outermost: int = 1,
        graph_patience_steps: int = 0,
        per_request: bool = False,
        trains: bool = True,
        over: bool = False,
    ) -> None:
        """Count steps by another clock from now on; what was seen before is kept as second best.

        `over`: the loop that made them has ended. `trains`: an optimizer makes them, or may; a
        loop without one may be there to gather. `per_request`: they are a server's requests; what
        each leaves is then too much, unless a tolerance was asked for.
        """
        if self._report is not None:  # what trains after the end, at exit, is not watched
            return
        self.start()
        assert self._course is not None
        course, loop = self._course, self._course.loop
        with self._lock:
            if self.certain_to_grow:
                return
            if self._step - loop.watch.origin >= FEWEST_STEPS:
                if over:
                    course.loop_ended(self._step)
                if self.certain_to_grow:
                    return
                self.previous = self._conclude(Ending(running=True))
                if over and loop.trusted and course.stage.name == "waiting":
                    self._doubted = self.previous
            self.clock = clock
            if per_request and loop.tolerance.per_step_bytes == DEFAULT_TOLERANCE_BYTES:
                loop.tolerance = replace(loop.tolerance, per_step_bytes=0)
                loop.watch.fine = True
            loop.per_request, loop.trains = per_request, trains
            course.restart(self._step)
            loop.trusted = False
            self.waits_for(waits, outermost)
            loop.graph_patience_steps = graph_patience_steps
            if trusted:
                loop.trust()
            self._next = self._step + 1

    def look_again(self) -> None:
        """Begin the closer look that is under way anew: the load has changed since it began."""
        if self._course is None or self.broken or self._thread != get_ident():
            return
        try:
            with self._lock:
                self._course.look_again(self._step)
        except Exception as error:
            self._break(error)

    @property
    def grows_at(self) -> Mapping[Holder, Way]:
        """The ways to the containers that were found to grow, by holder, once that is certain."""
        return self._course.grows_at if self._course is not None else {}

    @property
    def certain(self) -> bool:
        """True once the verdict will not change: growing and attributed, or steady."""
        return self._course is not None and self._course.stage.name in ("growing", "steady")

    @property
    def certain_to_grow(self) -> bool:
        """True once it grows for certain, whatever loops come after."""
        return self._course is not None and self._course.stage.name == "growing"

    def begins_anew(self) -> None:
        """Note that from here on another optimizer trains."""
        if self._course is not None:
            self._course.loop.rounds.trainings.begin(self._step)

    def trust(self) -> None:
        """Take the steps for training steps: growth of any kind counts from now on."""
        if self._course is not None:
            self._course.loop.trust()

    @property
    def state(self) -> tuple[int, str]:
        """The number of steps so far and the stage the watch is in."""
        return self._step, self._course.stage.name if self._course else "watching"

    def rates(self) -> str:
        """The heap's rate of growth so far, in words for one line; "" while unknown."""
        reading = read(self._course.loop.watch.quick, "host.heap") if self._course else None
        return f", heap {format_bytes(reading.line.per_step)} a step" if reading else ""

    def samples(self) -> tuple[Sample, ...]:
        """Return the readings that are kept, oldest first, for charts."""
        return () if self._watch is None else self._watch.samples

    def report(self, ending: Ending | None = None) -> Report:
        """Say what is known so far; after `stop`, what was known then."""
        if self._report is not None:
            return ended(self._report, ending) if ending else self._report
        self.start()
        return self._conclude(ending or Ending(running=True))

    def _advance(self, step: int) -> bool:
        began_s = perf_counter()
        with self._lock:
            course, watch = self._course, self._watch
            assert course is not None
            assert watch is not None
            watch.boundary(step)
            self._epochs.step()
            if self._by_loader and not self._loader_known:
                self._look_around(course)
            before, checkpoints_s = course.stage.name, watch.checkpoint_s
            course.advance(step)
            self._next = course.next_step
            self._turns = self._outer if course.heeds_phases else {}
            if self._limits and not self.hit_limit:
                self.hit_limit = self._limits.exceeded(watch.quick.newest())
            if self._recorder is not None:
                self._recorder.sample(step, watch.elapsed_s, watch, self.clock)
            if before == course.stage.name == "watching" and watch.checkpoint_s == checkpoints_s:
                watch.note_cost(perf_counter() - began_s)
        return course.stage.name == "growing" != before

    def _heed(self, outer: dict[int, Turns]) -> None:
        try:
            turned = [depth for depth, turns in outer.items() if turns.turned()]
            if turned:
                self.phase(max(turned))
        except Exception as error:
            self._turns = {}
            self._break(error)

    def _look_around(self, course: Course) -> None:
        """Look what tells of epochs: a DataLoader, and the loops around that of the steps."""
        self._loader_known = self._epochs.feed
        outer: list[Turns] = []
        if course.loop.span.seen(self._step) == 1:
            outer = Turns.of_outer(loops_around(sys._getframe(1)))
            self._ask(enumerate(outer, 1))
        if outer or self._loader_known:
            course.loop.waits = "all but graphs"

    def _established(self) -> Report | None:
        if self._on_leak is None and self._recorder is None:
            return None
        report = self._conclude(Ending(running=True))
        if self._recorder is not None:
            self._recorder.leak(report)
        return report

    def _conclude(
        self, ending: Ending, *, cut_short: bool = False, exhausted: bool = False
    ) -> Report:
        assert self._course is not None
        try:
            with self._lock:
                if not ending.running:
                    self._course.end(self._step, cut_short=cut_short, exhausted=exhausted)
                report = conclude(self._course, self._step, self.clock, self.broken, ending)
                if self.completes is not None:
                    report = self.completes(report)
        except Exception as error:  # ours, and the program must not pay for it
            self._break(error)
            return Report(verdict="unclear", reason=Reason.of("failed", error=self.broken))
        if report.verdict == "steady" and self._doubted is not None and not ending.running:
            return self._doubted
        if report.verdict != "unclear" or self.previous is None or ending.running:
            return report
        return self.previous if self._course.loop.span.seen(self._step) < FEWEST_STEPS else report

    def _break(self, error: Exception) -> None:
        self.guard.keep(error)
        if self._course is not None:
            with suppress(Exception):  # it has failed already, and is dropped
                self._course.abandon()


def _lives(thread: int) -> bool:
    return any(each.ident == thread for each in threading.enumerate())


def _check(steps: object, tolerance_bytes: object, on_leak: object) -> None:
    for name, value, least in (("steps", steps, 1), ("tolerance_bytes", tolerance_bytes, 0)):
        if not isinstance(value, int):
            raise TypeError(f"Sentinel({name}={value!r}): a whole number is needed")
        if value < least:
            raise ValueError(f"Sentinel({name}={value!r}): at least {least} is needed")
    if on_leak is not None and not callable(on_leak):
        raise TypeError(f"Sentinel(on_leak={on_leak!r}): a function of the report is needed")
