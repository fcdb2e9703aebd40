"""What grows inside a loop around the steps: is it released at the next turn of that loop?

The losses of an epoch are, a dataset's cache is not but stops growing, and a leak does neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from leakcheck.model import Notice
from leakcheck.runtime.judgement import patience
from leakcheck.runtime.judgement.confirmation import AGREES_FROM
from leakcheck.runtime.judgement.harmless import stopped
from leakcheck.runtime.judgement.judge import Reading
from leakcheck.runtime.readings.meters import COUNTED_EXACTLY

Waits = Literal["nothing", "all but graphs", "all"]  # for the end of the loop around the steps
RELEASED_WITHIN = 0.2  # of what had grown, that may be left


class Release:
    """The growth that was established at a step, and how much of it is there at each phase."""

    def __init__(
        self, established: Sequence[Reading], step: int, elapsed_s: float, *, may_fill_up: bool
    ) -> None:
        self._established = established
        # an epoch's end imports and prints for the first time: that must not pass for what is kept
        exact = [one for one in established if one.resource in COUNTED_EXACTLY]
        self._judged = exact or established
        self.emptied = False  # by the program, as far as its source says, when the loop turns
        self._turned = False
        self._may_fill_up = may_fill_up  # a cache kept through its first epoch is no leak yet
        self._since = (step, elapsed_s)
        self._base: tuple[int, Mapping[str, int]] | None = None  # the first phase that was judged

    def is_overdue(self, step: int, elapsed_s: float) -> bool:
        """Say whether the end of the enclosing loop has been waited for long enough."""
        waited, waited_s = step - self._since[0], elapsed_s - self._since[1]
        times = patience.TIMES_MAY_FILL_UP if self._may_fill_up else 1
        times = patience.TIMES_EMPTIED if self.emptied else times
        long_enough = waited >= times * patience.LONGEST_WAIT_STEPS
        return long_enough and waited_s >= times * patience.LONGEST_WAIT_S

    @property
    def hoped_for(self) -> bool:
        """Whether the program would empty it at a turn of the loop, and there was none."""
        return self.emptied and not self._turned

    def judge(
        self, step: int, readings: Mapping[str, int]
    ) -> Literal["kept", "ask again"] | Notice:
        """Compare a phase's first readings with what was expected; a notice says it was no leak."""
        self._turned = True
        share = max(self._grown_share(one, step, readings) for one in self._judged)
        # what an epoch gathered may be kept until the next one has gathered as much
        first = self._base is None and share >= AGREES_FROM
        if first or share > patience.MORE_THAN_EXPECTED:  # or something else came too
            self._base = (step, readings)
            return "ask again"
        if share >= AGREES_FROM:
            return "kept"
        if share > RELEASED_WITHIN or self._base is not None:
            return stopped(one.resource for one in self._established)
        names = ", ".join(one.resource for one in self._established)
        told = f"{names} grow inside the enclosing loop and are released at its end"
        return Notice("epoch-sawtooth", told)

    def _grown_share(self, reading: Reading, step: int, readings: Mapping[str, int]) -> float:
        since, levels = self._base or (reading.steps[0], {reading.resource: reading.values[0]})
        expected = reading.line.per_step * (step - since)
        start = levels.get(reading.resource, reading.values[0])
        return (readings.get(reading.resource, start) - start) / expected if expected else 0.0
