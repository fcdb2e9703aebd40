"""Which steps of a loop are judged: those after the warm-up, and since the last acquittal."""

from __future__ import annotations

from dataclasses import dataclass

from leakcheck.runtime.judgement.judge import FEWEST_WARMUP_STEPS


@dataclass(slots=True)
class LoopSpan:
    """The steps of one loop, which began after the step `origin`; `wanted` of them make it steady.

    What was read until the step `after` counts no more.
    """

    origin: int
    wanted: int
    after: int = 0

    def __post_init__(self) -> None:
        """Begin with all that is read of this loop."""
        self.after = self.origin

    def seen(self, step: int) -> int:
        """Return the steps watched since this loop became the one that counts."""
        return step - self.origin

    @property
    def warmup_steps(self) -> int:
        """Steps left out of the judgement so far."""
        return max(self.after - self.origin, FEWEST_WARMUP_STEPS)

    @property
    def settled_step(self) -> int:
        """The step after which readings are judged."""
        return self.origin + self.warmup_steps

    @property
    def steady_step(self) -> int:
        """The step at which a loop without growth is steady: half of them since an acquittal."""
        settled = self.origin + FEWEST_WARMUP_STEPS + self.wanted
        return max(settled, self.after + self.wanted // 2)
