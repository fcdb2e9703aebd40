"""The last stages: it grows, which is certain; or the loop is steady, as far as was seen."""

from __future__ import annotations

from leakcheck.runtime.judgement.judge import Reading
from leakcheck.runtime.stages.loop import LoopCourse
from leakcheck.runtime.stages.moves import Move, WatchAgain
from leakcheck.runtime.stages.stage import GrowthStage, Stage


class Growing(GrowthStage):
    """It grows; what is read from now on is for the charts."""

    name = "growing"

    def advance(self, step: int) -> Move | None:
        """Read on."""
        loop = self._loop
        if step >= loop.next_checkpoint and loop.watch.affordable(free=0):
            loop.checkpoint(step, sparing=True)
        return None

    def settle(self, step: int, *, cut_short: bool, exhausted: bool) -> Move | None:
        """Acquit what was released at the very end."""
        self._growth.settle_dispute()
        gone = self._growth.release.gone(self._loop.watch.sources, at_end=True)
        if gone is None:
            return None
        self._loop.tell(gone, step=step)
        return WatchAgain(step)


class Steady(Stage):
    """Nothing grew in enough steps; what stands higher than ever since is looked at."""

    name = "steady"

    def __init__(self, loop: LoopCourse) -> None:
        super().__init__(loop)
        self._next_lowering = 0  # of the vigil's levels, at this step
        self._next_sum = 0  # of what is tolerated: 1.5 ms, too much for each reading

    @property
    def pending(self) -> list[Reading]:
        """What rises by stairs."""
        return self._loop.in_doubt([])

    def enter(self, step: int) -> Move | None:
        """Read less from now on."""
        loop = self._loop
        loop.vigil.begin(loop.watch.sources)
        self._next_lowering = step + loop.steps
        loop.watch.read_less()
        loop.next_checkpoint = loop.watch.next_checkpoint(step)
        return None

    def advance(self, step: int) -> Move | None:
        """Compare the newest readings with the highest levels so far."""
        loop = self._loop
        rose = loop.vigil.rose(loop.watch.quick.newest())
        if step >= self._next_lowering:
            loop.vigil.lower()
            self._next_lowering = step + loop.steps
        if self._passes_tolerance(step):
            loop.watch.resume(step)
            return WatchAgain(step, closely=True)
        if step >= loop.next_checkpoint and loop.watch.affordable(free=0):
            rose |= self._rose_slowly(step)
        if not rose:
            return None
        loop.watch.resume(step)
        return WatchAgain(step)

    def _passes_tolerance(self, step: int) -> bool:
        loop = self._loop
        if step < max(self._next_sum, loop.next_checkpoint):
            return False
        self._next_sum = loop.watch.next_checkpoint(step)
        return loop.passes_tolerance(step)

    def _rose_slowly(self, step: int) -> bool:
        """Say whether a slow reading stands higher, also without what waits for the collector."""
        loop = self._loop
        loop.checkpoint(step, sparing=True, steady=True)
        newest = loop.watch.slow.newest()
        if not loop.vigil.rose(newest):
            return False
        rose = loop.vigil.rose(loop.watch.checkpoint(step, collect=True))
        loop.vigil.allow(newest)
        return rose
