"""When did training begin anew, with an optimizer never seen before? Folds, trials, weak learners.

What is kept once in each training may be what it is for: no number of them makes it a leak. One
too short for a verdict is none: a weak learner takes fifty steps, an inner loop of meta-learning
one to ten (Finn et al., 2017), and what each of those leaves is a leak.
"""

from __future__ import annotations

from leakcheck.runtime.judgement.judge import FEWEST_STEPS

FEWEST_BEGUN = 2  # since what grows was first seen
LEAST_SHARE = 0.8  # of the steps of a training, between two additions


class Trainings:
    """The steps after which another optimizer took over."""

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
