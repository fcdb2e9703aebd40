"""What every stage of a watch can be asked, and how it answers where it has nothing to say."""

from __future__ import annotations

from typing import ClassVar, Literal

from leakcheck.runtime.judgement.judge import Reading
from leakcheck.runtime.stages.episode import NEW_EPISODE, NOTHING_FOUND, Attributed, Episode
from leakcheck.runtime.stages.growth import EstablishedGrowth
from leakcheck.runtime.stages.loop import LoopCourse
from leakcheck.runtime.stages.moves import Move

StageName = Literal["watching", "confirming", "waiting", "attributing", "growing", "steady"]


class Stage:
    """One stage of the watch of a loop; each of its answers is a move, or None to stay."""

    name: ClassVar[StageName]

    def __init__(self, loop: LoopCourse, episode: Episode = NEW_EPISODE) -> None:
        self._loop, self.episode = loop, episode

    @property
    def grown(self) -> tuple[Reading, ...]:
        """What was confirmed to grow."""
        return self.episode.grown

    @property
    def found(self) -> Attributed:
        """Who holds what grows, as far as is known."""
        return NOTHING_FOUND

    @property
    def pending(self) -> list[Reading]:
        """What looks like growth that would count, and was neither confirmed nor acquitted."""
        return []

    @property
    def rests(self) -> bool:
        """Whether what was confirmed to grow gains nothing now, as far as is known."""
        return False

    def enter(self, step: int) -> Move | None:
        """Begin, at a step boundary."""
        return None

    def advance(self, step: int) -> Move | None:
        """Do what is due at a step boundary."""
        return None

    def turn(self, step: int, depth: int) -> Move | None:
        """A loop around the steps has turned, `depth` loops out."""
        return None

    def close(self, step: int, *, cut_short: bool, exhausted: bool) -> Move | None:
        """The program has ended: end what is open. `settle` comes after that."""
        return None

    def settle(self, step: int, *, cut_short: bool, exhausted: bool) -> Move | None:
        """The program has ended, `cut_short` or `exhausted` (of memory): come to a conclusion."""
        return None

    def acquit(self, step: int) -> Move | None:
        """The loop is over, and the program goes on: acquit what was kept for what comes now."""
        return None

    def leave(self) -> None:
        """In a forked child: stop what would go on by itself."""

    def abandon(self) -> None:
        """End what is under way without an answer."""


class GrowthStage(Stage):
    """A stage that is about growth which is established."""

    def __init__(self, loop: LoopCourse, growth: EstablishedGrowth) -> None:
        super().__init__(loop, growth.episode)
        self._growth = growth

    @property
    def found(self) -> Attributed:
        """Who holds it, without what was seen to be emptied."""
        return self._growth.found
