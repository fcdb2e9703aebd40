"""Stage one: look at the readings now and then, ever more rarely, for what seems to grow."""

from __future__ import annotations

from leakcheck.runtime.judgement import judge, patience
from leakcheck.runtime.judgement.confirmation import CONFIRM_OTHER_STEPS
from leakcheck.runtime.judgement.harmless import PLAIN
from leakcheck.runtime.judgement.judge import Reading
from leakcheck.runtime.stages.episode import NEW_EPISODE, Episode
from leakcheck.runtime.stages.loop import LoopCourse
from leakcheck.runtime.stages.moves import Attribute, Move, Settle, WatchAgain, confirm
from leakcheck.runtime.stages.stage import Stage


class Watching(Stage):
    """Nothing is suspected, so far; what was read until the step `after` counts no more.

    `closely`: whatever grows, however slowly, is to be confirmed.
    """

    name = "watching"

    def __init__(self, loop: LoopCourse, after: int, *, closely: bool = False) -> None:
        super().__init__(loop)
        self._after, self._closely = after, closely

    @property
    def pending(self) -> list[Reading]:
        """What the newest look found: within a phase a look confirms nothing."""
        return self._loop.in_doubt([] if self._loop.by_phase else self._loop.looks.found())

    def enter(self, step: int) -> Move | None:
        """Begin to look, some steps from now unless closely."""
        loop = self._loop
        loop.span.after = self._after
        loop.next_checkpoint = loop.watch.next_before(step, self._after, loop.span.steady_step)
        if not self._closely:
            return None
        loop.checkpoint(step)
        plain = judge.companions(loop.watch.slow, [], PLAIN)
        return confirm(plain, loop, step, patience.FINE_STEPS) if plain else None

    def advance(self, step: int) -> Move | None:
        """Look if that is due and affordable; with nothing found in enough steps it is steady."""
        loop = self._loop
        if step < loop.next_checkpoint:
            return None
        if loop.passes_tolerance(step):
            return WatchAgain(step, closely=True)
        last = self._is_last(step)
        if not last and not self._affordable(step):
            loop.next_checkpoint = loop.watch.next_checkpoint(step)
        elif not loop.by_phase:
            loop.checkpoint(step, sparing=not last)
            if move := self._look(step):
                return move
            stays = loop.excuses.without(loop.find_what_stays(step))
            if stays and loop.span.seen(step) >= CONFIRM_OTHER_STEPS:  # what is even was found
                return confirm(stays, loop, step, CONFIRM_OTHER_STEPS)
        return self._saw_enough(step)

    def _affordable(self, step: int) -> bool:
        loop = self._loop
        if not loop.trusted:
            return loop.watch.affordable(patience.FREE_WHILE_IN_DOUBT)
        overdue = loop.watch.is_overdue(step, loop.span.after, loop.span.steady_step)
        return overdue or loop.watch.affordable()

    def _is_last(self, step: int) -> bool:
        return self._loop.trusted and step >= self._loop.span.steady_step

    def _saw_enough(self, step: int) -> Move | None:
        enough = self._is_last(step) and self._loop.looks.saw_enough
        return Settle(None) if enough and not self._loop.went_on() else None

    def turn(self, step: int, depth: int) -> Move | None:
        """Compare this turn with the last ones, where steps within one confirm nothing."""
        loop = self._loop
        if not loop.by_phase or depth < loop.phase_depth or not loop.watch.affordable():
            return None
        loop.checkpoint(step)
        return self._look(step)

    def _look(self, step: int) -> Move | None:
        loop = self._loop
        found = loop.looks.take(step)
        if loop.by_phase:
            # steps inside a phase confirm nothing: what is released at its end grows in them
            recurring = loop.recurring.note(found)
            return Attribute(recurring, NEW_EPISODE) if recurring else None
        if found:
            return confirm(found, loop, step)
        if even := loop.looks.soon():
            return confirm(even, loop, step, patience.EVEN_STEPS, Episode(soon=True))
        return None
