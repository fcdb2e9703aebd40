"""Stage two: does what seems to grow go on growing over new steps, collected at each reading?"""

from __future__ import annotations

from dataclasses import replace

from leakcheck.runtime.judgement.confirmation import Confirmation
from leakcheck.runtime.judgement.harmless import excuse
from leakcheck.runtime.judgement.judge import Reading
from leakcheck.runtime.readings.meters import COUNTED
from leakcheck.runtime.stages.episode import Episode
from leakcheck.runtime.stages.lengths import Lengths
from leakcheck.runtime.stages.loop import LoopCourse
from leakcheck.runtime.stages.moves import Attribute, Await, Move, WatchAgain, confirm
from leakcheck.runtime.stages.stage import Stage


class Confirming(Stage):
    """Something seems to grow."""

    name = "confirming"

    def __init__(self, loop: LoopCourse, confirmation: Confirmation, episode: Episode) -> None:
        super().__init__(loop, replace(episode, confirmation=confirmation))
        self._confirmation = confirmation
        self._lengths = Lengths(episode.held)

    @property
    def pending(self) -> list[Reading]:
        """What may yet be confirmed."""
        found = self._confirmation.in_doubt(self._loop.watch.quick)
        return self._loop.in_doubt(found, sure=len(self._confirmation.taken) > 1)

    def enter(self, step: int) -> Move | None:
        """Take the first reading."""
        return self.advance(step)

    def advance(self, step: int) -> Move | None:
        """Take a reading that is due, and judge after the last."""
        self._lengths.measure(step, at_end=False)
        if step < self._confirmation.next_step:
            return None
        return self._judge(step) if self._confirmation.read(self._loop.watch, step) else None

    def _judge(self, step: int) -> Move | None:
        loop, confirmation, episode = self._loop, self._confirmation, self.episode
        if confirmed := confirmation.confirmed(loop.watch):
            return Attribute(confirmed, episode)
        if episode.soon:  # wait for as long as usual
            return WatchAgain(loop.span.after)
        if (longer := confirmation.longer(step, loop.span.seen(step))) is not None:
            self._confirmation = longer  # read at the next step: the blocks of this one are gone
            self.episode = replace(episode, confirmation=longer)
            return None
        beside = self._went_on_beside()
        if beside and excuse(beside, loop.tolerance_bytes) is None:
            return confirm(beside, loop, step, episode=episode)
        loop.excuses.note_slower(episode.held.suspects, confirmation.rates_at_first())
        loop.tell(*confirmation.what_stayed(), step=confirmation.begin)
        if any(one.stairs for one in confirmation.suspected):
            loop.looks.acquit(step)
        return WatchAgain(step)

    def _went_on_beside(self) -> list[Reading]:
        """Return what was only looked at and went on, though nothing suspected did.

        Of requests all that is counted; elsewhere blocks and tensors count for little beside the
        heap, but nothing makes a thread, a descriptor or a child by chance.
        """
        went_on = self._confirmation.went_on_beside(self._loop.watch)
        return [one for one in went_on if self._loop.per_request or one.resource in COUNTED]

    def close(self, step: int, *, cut_short: bool, exhausted: bool) -> Move | None:
        """Take what was found before for established, if it went on at every reading since.

        But not a cache of new shapes, or one that has most of what it is asked for: it may be full
        at any time, and what gained nothing for a while may be full now.
        """
        held = self.episode.held
        if not (held.doubt.settles or exhausted or self._confirmation.is_of_tensors):
            return None
        if self._lengths.rest and not exhausted:
            return None
        if cut_short or not held.suspects or self._loop.excuses.has_slowed(held.suspects):
            return None
        grown = tuple(self._confirmation.so_far(exhausted=exhausted))
        return Await(held, replace(self.episode, grown=grown)) if grown else None
