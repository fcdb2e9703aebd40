"""What grows inside a loop around the steps: is it released at the next turn of that loop?

The losses of an epoch are, a dataset's cache is not but stops growing, and a leak does neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple

from leakcheck.model import Notice, Reason
from leakcheck.runtime import outlook
from leakcheck.runtime.judgement import patience, rare
from leakcheck.runtime.judgement.confirmation import AGREES_FROM
from leakcheck.runtime.judgement.harmless import Limited, stopped
from leakcheck.runtime.judgement.judge import Reading
from leakcheck.runtime.readings.meters import COUNTED_EXACTLY
from leakcheck.runtime.readings.series import Series

Waits = Literal["nothing", "all but graphs", "all"]  # for the end of the loop around the steps
RELEASED_WITHIN = 0.2  # of what had grown, that may be left
TIMES_TO_BE_GONE = 4  # as many steps as it took to establish it, or more
FARTHER = 1.5  # times the step of a look, the step of the next
ASK_EVERY_STEPS = 16  # for what comes once in hundreds: all readings take 0.3 ms
GONE_BELOW = 0.25  # of what would be there
GONE = "in-the-long-run"
# a cache that is full, or what each epoch gathers and the next one lets go of
FROM_TURN_TO_TURN = "between-turns"


class Removal(NamedTuple):
    """A statement that may take away from what grows, whether by a limit or by a condition."""

    reason: Reason
    reached: bool  # it runs, or its condition is asked: no turn of a loop decides on it


@dataclass(frozen=True, slots=True)
class Hope:
    """How many steps to wait for what grows to be released, and what may release it.

    `emptied`: by the program, as far as its source says; `at_any_step`: no turn of a loop decides.
    `may_fill_up`: a cache kept through its first epoch is no leak yet; `per_training`: it comes
    once in each, and may be meant however often it comes.
    """

    steps: int = outlook.LOOP_STEPS
    emptied: bool = False
    at_any_step: bool = False
    may_fill_up: bool = False
    per_training: bool = False


NO_HOPE = Hope()


class Release:
    """The growth that was established at a step, and how much of it is there at each phase."""

    def __init__(self, established: Sequence[Reading], step: int, hope: Hope = NO_HOPE) -> None:
        self._established, self.hope = established, hope
        # an epoch's end imports and prints for the first time: that must not pass for what is kept
        exact = [one for one in established if one.resource in COUNTED_EXACTLY]
        self._judged = exact or established
        self.kept_at = 0  # depth of the outermost loop that did not release it
        self._turned = False
        self.since_step = step  # at which waiting began
        self._look_at = FARTHER * step
        self._seldom: Literal["", "rises", "stopped"] = ""
        self._ask_at = step
        # of each loop around the steps, by its depth, the first turn that was judged
        self._bases: dict[int, tuple[int, Mapping[str, int]]] = {}

    def is_overdue(self, step: int) -> bool:
        """Say whether it has been waited for long enough."""
        return step - self.since_step >= self.hope.steps

    def is_due(self, step: int, *, overdue: bool = False) -> bool:
        """Say whether to look now if it is gone: again and again while in doubt, ever more rarely.

        From step 100 to 100,000 that is 16 looks, of which each costs a checkpoint.
        """
        if not (self.in_doubt or overdue) or step < self._look_at:
            return False
        self._look_at = FARTHER * step
        return True

    def gone(self, sources: Sequence[Series], *, at_end: bool = False) -> Notice | None:
        """Say so if it did not go on, or far less is there, long after; None if it did.

        `at_end`: of the run, where there is no more to wait for.

        By the newest readings: what is emptied where no loop is seen to turn, as in a thread.
        """
        if not self._judged:  # the run ended while a second window was open: nothing was waited for
            return None
        first = max(one.steps[0] for one in self._judged)
        took = self.since_step - first
        after = self.since_step + TIMES_TO_BE_GONE * took
        shares = []
        for one, series in product(self._judged, sources):
            steps, values = series.column(one.resource, after=after)
            if steps:
                newest = {one.resource: values[-1]}
                shares.append(self._grown_share(one, steps[-1], newest, None))
        rates = {one.resource: one.line.per_step for one in self._judged}
        goes_on = Limited(Reason("grows"), self.since_step, 0, rates).goes_on(sources)
        last = max((series.last_step for series in sources), default=0)
        ended = at_end and not goes_on and last >= self.since_step + patience.TIMES_TO_END * took
        gone = bool(shares) and (not goes_on or max(shares) <= GONE_BELOW)
        if not (ended or gone):
            return None
        return stopped((one.resource for one in self._established), GONE)

    def is_over(self, step: int, readings: Mapping[str, int]) -> bool:
        """Say whether little of it is left."""
        shares = [self._grown_share(one, step, readings, None) for one in self._judged]
        return bool(shares) and max(shares) <= RELEASED_WITHIN

    def too_seldom(self, quick: Series, step: int) -> Literal["", "rises", "stopped"]:
        """Say whether it came too seldom yet to be sure, or comes no more; else ""."""
        if self.hope.per_training:
            return "rises"
        if step >= self._ask_at:
            self._ask_at = step + ASK_EVERY_STEPS
            self._seldom = rare.outcome(self._established, quick, self.since_step, step)
        return self._seldom

    @property
    def in_doubt(self) -> bool:
        """Whether it may yet be emptied, or be full."""
        return self.hope.emptied or self.hope.may_fill_up

    @property
    def hoped_for(self) -> bool:
        """Whether the program may yet empty it: at a turn of the loop, if there was none."""
        return self.hope.emptied and (self.hope.at_any_step or not self._turned)

    def judge(
        self, step: int, readings: Mapping[str, int], depth: int = 1, outermost: int = 1
    ) -> Literal["kept", "ask again"] | Notice:
        """Compare a phase's first readings with what was expected; a notice says it was no leak.

        `depth` of the loop that turned; what the nearest keeps one further out may yet release.
        """
        self._turned |= depth >= outermost
        base = self._bases.get(depth)
        share = max(self._grown_share(one, step, readings, base) for one in self._judged)
        # what an epoch gathered may be kept until the next one has gathered as much
        first = base is None and share >= AGREES_FROM
        if first or share > patience.MORE_THAN_EXPECTED:  # or something else came too
            self._bases[depth] = (step, readings)
            return "ask again"
        if share >= AGREES_FROM:
            self.kept_at = depth
            return "kept" if depth >= outermost else "ask again"
        resources = tuple(one.resource for one in self._established)
        if share > RELEASED_WITHIN or base is not None:
            return stopped(resources, FROM_TURN_TO_TURN if base is not None else "")
        return Notice("epoch-sawtooth", Reason.of("released-at-turns", resources=resources))

    def _grown_share(
        self,
        reading: Reading,
        step: int,
        readings: Mapping[str, int],
        base: tuple[int, Mapping[str, int]] | None,
    ) -> float:
        since, levels = base or (reading.steps[0], {reading.resource: reading.values[0]})
        expected = reading.line.per_step * (step - since)
        start = levels.get(reading.resource, reading.values[0])
        return (readings.get(reading.resource, start) - start) / expected if expected else 0.0
