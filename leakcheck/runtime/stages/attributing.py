"""Stage three, for what was confirmed to grow: who holds it, and which lines add to it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from leakcheck.model import Notice, Reason
from leakcheck.runtime import outlook
from leakcheck.runtime.attribution.window import RENEWED
from leakcheck.runtime.doubts import row_for
from leakcheck.runtime.guard import is_of_program
from leakcheck.runtime.judgement import judge
from leakcheck.runtime.judgement.confirmation import fell_as_far, is_there
from leakcheck.runtime.judgement.harmless import excuse, plain_bytes, stopped
from leakcheck.runtime.judgement.judge import Reading
from leakcheck.runtime.readings.meters import COUNTED_EXACTLY
from leakcheck.runtime.readings.shared_memory import BLOCKS
from leakcheck.runtime.stages.attribution import (
    LONGER_WINDOW_STEPS,
    LONGEST_WINDOW_STEPS,
    WINDOW_STEPS,
    Attribution,
    WindowResult,
)
from leakcheck.runtime.stages.episode import NOTHING_FOUND, Attributed, Episode
from leakcheck.runtime.stages.loop import LoopCourse
from leakcheck.runtime.stages.moves import Attribute, Await, Move, WatchAgain, confirm_for_longer
from leakcheck.runtime.stages.stage import Stage


class Attributing(Stage):
    """It grows: who holds it? The window is to see `least_steps` at least."""

    name = "attributing"

    def __init__(
        self, loop: LoopCourse, grown: Sequence[Reading], episode: Episode, least_steps: int = 0
    ) -> None:
        super().__init__(loop, replace(episode, grown=tuple(grown)))
        self._least_steps = least_steps
        self._attribution: Attribution | None = None

    @property
    def found(self) -> Attributed:
        """What an earlier window found."""
        return self.episode.held

    def enter(self, step: int) -> Move | None:
        """Open the window, unless what grows is harmless."""
        loop, episode = self._loop, self.episode
        since = episode.confirmation.begin if episode.confirmation else loop.span.after
        grown = [judge.refitted(reading, loop.watch.quick, since) for reading in episode.grown]
        if (harmless := excuse(grown, loop.tolerance_bytes)) is not None:
            if not episode.soon:
                loop.tell(harmless, step=step)
                per_step = plain_bytes(grown)
                loop.excuses.tolerate((harmless,), loop.tolerance_bytes, per_step=per_step)
            return WatchAgain(loop.span.after)  # of the others nothing was acquitted
        self.episode = replace(episode, grown=tuple(grown), grown_step=step)
        return self.open(step)

    def open(self, step: int) -> Move | None:
        """Open the window, or open it anew: what it compares with may be gone."""
        loop, episode = self._loop, self.episode
        self.abandon()
        loop.watch.trace_lines(on=True)
        try:
            self._attribution = Attribution(
                step,
                growing=list(episode.grown),
                slow=loop.watch.slow,
                longer=episode.doubted and not episode.held.suspects,
                least_steps=self._least_steps,
                case=outlook.Case(per_request=loop.per_request, trains=loop.trains),
                remade=loop.remade,
            )
        except Exception as error:  # that it grows is known; who holds it then is not
            return self._failed(step, error)
        return None

    def advance(self, step: int) -> Move | None:
        """Note a step; what the window has found decides how to go on."""
        attribution = self._attribution
        if attribution is None:  # it went as the loop ended, which begins anew
            return WatchAgain(step)
        try:
            with self._loop.watch.our_garbage():
                seen_enough = attribution.step(step)
            return self._finish(step) if seen_enough else None
        except Exception as error:
            return self._failed(step, error)

    def close(self, step: int, *, cut_short: bool, exhausted: bool) -> Move | None:
        """Take what was found before for established, as it was confirmed twice; or look now."""
        if self.episode.held.suspects:
            self.abandon()
            return Await(self.episode.held, self.episode)
        if self._attribution is None:  # Ctrl-C came as the window opened, or as it ended
            self.abandon()
            return Await(NOTHING_FOUND, self.episode)
        self._attribution.stop()
        gone = self._gone_at_end(step)
        if self._attribution.has_begun and not gone:
            return self._finish(step, at_end=True)
        self.abandon()
        counts = self._loop.watch.slow
        counted = [(one, level) for one, level in gone if one.resource in COUNTED_EXACTLY]
        if not counted or not all(fell_as_far(one, level, counts) for one, level in counted):
            return None
        self._loop.checkpoint(step)  # the fall is one of the loop's
        return WatchAgain(step)

    def _gone_at_end(self, step: int) -> list[tuple[Reading, int]]:
        """Return what grew and is not there now, with its level: nothing can tell what held it.

        It went as the function that trained returned, or in the last turn of its loop. It had been
        confirmed between collections, so that garbage it was not.
        """
        with self._loop.watch.our_garbage():
            levels = self._loop.watch.read_beside(step, collect=True)
        gone = (one for one in self.episode.grown if not is_there(one, levels))
        return [(one, levels[one.resource]) for one in gone]

    def leave(self) -> None:
        """In a forked child: stop what would go on by itself."""
        if self._attribution is not None:
            self._attribution.stop()

    def abandon(self) -> None:
        """End the window without an answer."""
        attribution, self._attribution = self._attribution, None
        self._loop.watch.trace_lines(on=False)
        if attribution is not None:
            attribution.abandon()

    def _failed(self, step: int, error: Exception) -> Move:
        self.abandon()
        if is_of_program(error):
            raise error
        told = f"{type(error).__name__}: {error}"
        self._loop.tell(Notice("note", Reason.of("no-holder", error=told)), step=step)
        return Await(NOTHING_FOUND, self.episode)

    def _finish(self, step: int, *, at_end: bool = False) -> Move:
        loop = self._loop
        findings = self._findings(step)
        if RENEWED in findings.notices and not at_end and loop.remade is None:
            # what comes many at once, as at each epoch's end, grew but once in a short window
            loop.remade = findings.window.remade
            return Attribute(self.grown, self.episode, LONGER_WINDOW_STEPS)
        loop.memory = findings.memory
        loop.tell(*findings.notices, step=step)
        full = step + findings.window.full_in_steps * outlook.FILLS_WITHIN
        loop.excuses.note_filling((one.resource for one in self.episode.grown), full)
        grown = self._of_program(findings)
        if len(grown) < len(self.episode.grown):
            loop.excuses.add((BLOCKS,))
            self.episode = replace(self.episode, grown=grown)
        if not grown:
            return WatchAgain(loop.span.after)
        if findings.is_harmless:
            tolerated = loop.tolerance.per_step_bytes
            loop.excuses.tolerate(
                findings.notices,
                tolerated,
                findings.rates_of_logs,
                per_step=findings.tolerated_bytes,
            )
            return self._excused(step, full)
        if not at_end and (move := self._look_again(findings)):
            return move
        return self._limited(step, findings) or self._held(step, findings, at_end=at_end)

    def _of_program(self, findings: WindowResult) -> tuple[Reading, ...]:
        """Return what grew, without blocks of shared memory that no line of the program's made."""
        made = any(one.kind == "shared-memory" for one in findings.suspects)
        grown = self.episode.grown
        return grown if made else tuple(one for one in grown if one.resource != BLOCKS)

    def _findings(self, step: int) -> WindowResult:
        loop, attribution, self._attribution = self._loop, self._attribution, None
        assert attribution is not None
        try:
            with loop.watch.our_garbage():
                found = attribution.close()
        except BaseException:  # Ctrl-C: the program may go on, and its lines are traced no more
            attribution.abandon()
            raise
        findings = found.tolerating(loop.tolerance_bytes, loop.numbers_bytes)
        loop.watch.trace_lines(on=False)
        loop.watch.pay(attribution.spent_s)
        del attribution  # or what it knows of the heap is in the readings that follow
        since = loop.span.seen(loop.waiting_since_step)
        return findings.since(loop.suspects, since, loop.span.seen(step))

    def _look_again(self, findings: WindowResult) -> Move | None:
        """Look once over a whole period of what may take away, if a window can be as long."""
        loop, episode = self._loop, self.episode
        period_steps = findings.prospects.period_steps
        fits = WINDOW_STEPS // 2 < period_steps <= LONGEST_WINDOW_STEPS
        if not fits or loop.looked_again or not episode.grown:
            return None
        limits = findings.limits(episode.confirmation, loop.tolerance_bytes)
        if limits is None and findings.prospects.removal is None:
            return None
        loop.looked_again = True
        return Attribute(episode.grown, episode, period_steps + 2)

    def _limited(self, step: int, findings: WindowResult) -> Move | None:
        """Excuse what the program itself limits, for as long as that may take."""
        loop = self._loop
        limits = findings.limits(self.episode.confirmation, loop.tolerance_bytes)
        limits = limits or loop.excuses.slowing(findings.suspects, findings.rates)
        until = loop.excuses.limit(limits, findings.rates, step, graph=findings.of_graph)
        if limits is None or not until:
            return None
        loop.tell(Notice("bounded", limits), step=step)
        return self._excused(step, until)

    def _held(self, step: int, findings: WindowResult, *, at_end: bool) -> Move:
        loop, episode = self._loop, self.episode
        if any(one.holder for one in episode.held.suspects) and not findings.window.has_leads:
            loop.tell(stopped(one.resource for one in episode.grown), step=step)  # it is full now
            return WatchAgain(step)
        grown, seen = list(episode.grown), loop.span.seen(step)
        row = row_for(findings.doubt(grown, seen, soon=episode.soon))
        steps = row.steps
        if at_end and any(one.stairs for one in grown):
            steps = 0  # of more steps there are none, and it did rise
        found = Attributed(
            findings.suspects,
            findings.prospects,
            findings.window.ways,
            per_training=findings.come_with(loop.rounds.trainings, grown[0].steps[0]),
            may_fill_up=steps > 0 or findings.window.keyed,
            doubt=row,
            beside_bytes=findings.beside_bytes,
        )
        if steps and not episode.doubted:
            firm = replace(found, suspects=findings.firm)
            return confirm_for_longer(episode, step, steps, firm)
        return Await(found, episode)

    def _excused(self, step: int, until: float = inf) -> Move:
        self._loop.excuse(self.grown, until)
        return WatchAgain(step)
