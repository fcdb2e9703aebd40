"""Which loops around the steps go on to their next iteration, and which of that is worth a look.

The nearest is at depth 1, the epochs of most programs; folds or trials around those are at 2.
"""

from __future__ import annotations

from leakcheck.runtime.judgement import patience
from leakcheck.runtime.judgement.trainings import Trainings


class Rounds:
    """The turns of the loops around the steps, of which the outermost ends all it holds."""

    def __init__(self) -> None:
        self.trainings = Trainings()  # a round of their own, which no loop need show
        self.outermost = 1  # depth of the loops that can tell
        self._turned = 0
        self._last: dict[int, int] = {}  # step of the last turn that was looked at, by depth

    def note(self, depth: int) -> None:
        """Note that the loop at `depth` turns, and so those inside it begin anew."""
        self._turned = max(self._turned, depth)

    def take(self, step: int) -> int:
        """Return the depth of the loop that turned before `step`; 0 if none, or too soon again."""
        depth, self._turned = self._turned, 0
        last = max((at for known, at in self._last.items() if known >= depth), default=0)
        if not depth or step - last < patience.SHORT_PHASE_STEPS:
            return 0
        self._last[depth] = step
        return depth
