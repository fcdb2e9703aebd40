"""Looks at the readings of one loop: what seems to grow in them, without what has an excuse."""

from __future__ import annotations

from leakcheck.runtime.judgement import judge, rare
from leakcheck.runtime.judgement.harmless import Excuses, excuse
from leakcheck.runtime.judgement.judge import Reading
from leakcheck.runtime.judgement.span import LoopSpan
from leakcheck.runtime.readings.watching import FEWEST_CHECKPOINTS, Watch


class Looks:
    """The looks so far: the more there were, the more each of them must see."""

    def __init__(
        self, watch: Watch, span: LoopSpan, excuses: Excuses, tolerance_bytes: int
    ) -> None:
        self._watch, self._span, self._excuses = watch, span, excuses
        self._tolerance_bytes = tolerance_bytes
        self._taken, self._took_soon = 0, False
        self._rare_after = span.settled_step  # where nothing was acquitted

    def take(self, step: int) -> list[Reading]:
        """Take one more, once the excuses that are over have ended."""
        self._taken += 1
        self._span.after = max(self._span.after, self._excuses.ended_before(step))
        return self.found()

    def found(self) -> list[Reading]:
        """Return what seems to grow at the newest look, by stairs if they are all that does."""
        found = judge.suspicious(self._watch.sources, self._taken or 1, self._span.after)
        counting = (one for one in found if excuse([one], self._tolerance_bytes) is None)
        even = any(reading.line.straight for reading in counting)
        return ([] if even else self._rare()) or self._excuses.without(found)

    def soon(self) -> list[Reading]:
        """Return, once, what grows so evenly that the usual wait is not needed."""
        even = [] if self._took_soon else judge.evenly(self._watch.quick, self._tolerance_bytes)
        found = self._excuses.without(even)
        self._took_soon |= bool(found)
        return found

    def in_doubt(self, found: list[Reading]) -> list[Reading]:
        """Return what grows if the run ends now, with staircases that rose often enough."""
        return rare.in_doubt(found, self._rare())

    def acquit(self, step: int) -> None:
        """Forget the staircases up to `step`: the next rise that was expected did not come."""
        self._rare_after = step

    @property
    def saw_enough(self) -> bool:
        """Whether more steps would answer no open question."""
        steps, _ = self._watch.slow.column("python.blocks", after=self._span.after)
        climbing = self._excuses.still_climbing(self._watch.sources, self._tolerance_bytes)
        full = not steps or not self._excuses.is_limited(steps[-1])
        full &= not self._watch.rises or bool(self._excuses.tolerated)
        since = self._span.origin, self._rare_after
        due = rare.is_due(self._watch.quick, *since, self._tolerance_bytes)
        return full and len(steps) >= FEWEST_CHECKPOINTS and not climbing and not due

    def _rare(self) -> list[Reading]:
        climbing = rare.climbing(self._watch.quick, self._rare_after, self._tolerance_bytes)
        return self._excuses.without(climbing)
