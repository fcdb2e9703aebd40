"""Which loops around the steps go on to their next iteration, and which of that is worth a look.

The nearest is at depth 1, the epochs of most programs; folds or trials around those are at 2.
"""

from __future__ import annotations

from leakcheck.runtime.judgement import patience
from leakcheck.runtime.judgement.judge import FEWEST_STEPS

FEWEST_BEGUN = 2  # since what grows was first seen
LEAST_SHARE = 0.8  # of the steps of a training, between two additions


class Trainings:
    """The steps after which another optimizer took over, never seen before: folds, trials.

    What is kept once in each training may be what it is for: no number of them makes it a leak.
    One too short for a verdict is none: a weak learner takes fifty steps, an inner loop of
    meta-learning one to ten (Finn et al., 2017), and what each of those leaves is a leak.
    """

    def __init__(self) -> None:
        self._begun: list[int] = []

    def begin(self, step: int) -> None:
        """Note that training begins anew after `step`."""
        self._begun.append(step)

    def keep(self, apart_steps: float, since: int) -> bool:
        """Say whether what is added every `apart_steps` since a step may come once a training."""
        begun = [step for step in self._begun if step > since]
        if len(begun) < FEWEST_BEGUN:
            return False
        length = (begun[-1] - begun[0]) / (len(begun) - 1)
        return length >= FEWEST_STEPS and apart_steps >= LEAST_SHARE * length


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
