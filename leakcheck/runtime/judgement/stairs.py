"""What rises now and then: jumps that are alike and equally far apart. Pure, as `trend` is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from leakcheck.runtime.judgement.trend import ALL_OF

FEWEST_APART_STEPS = 65  # nearer ones are seen by a window of the usual length, three at a time
MOST_JUMPS = 64  # in the readings that are kept; more are near each other
ALIKE = 1.25  # times the least, for the greatest of the jumps and of the distances between them
EARLY_SHARE, FEWEST_EARLY_STEPS = 20, 8  # of the distance, to be ready before the next jump


@dataclass(frozen=True, slots=True)
class Stairs:
    """Jumps of `rise` each, every `apart` steps; the first and the last of them at these steps."""

    rise: int
    apart: int
    first: int
    last: int
    count: int
    spread: int  # steps, between the least and the greatest distance

    @property
    def is_regular(self) -> bool:
        """Whether it is known when the next jump comes."""
        return self.count > 2 and self.spread <= self.early

    @property
    def per_step(self) -> float:
        """The rate, in the unit of the values a step."""
        return self.rise / self.apart

    @property
    def early(self) -> int:
        """How many steps before the next jump one should be ready for it."""
        return max(FEWEST_EARLY_STEPS, self.apart // EARLY_SHARE)

    def ready_after(self, step: int, least: int = 0) -> int:
        """Return the step to be ready at, once a jump beyond `step` was seen and `least` steps."""
        passed = (step + self.early - self.last) // self.apart
        ready = self.last + (passed + 2) * self.apart - self.early
        return ready + self.apart * max(0, -(-(step + least - ready) // self.apart))


def stairs(steps: Sequence[int], values: Sequence[int]) -> Stairs | None:
    """Return the newest run of jumps that make all of a rise, None if there are not two.

    One that is larger than those which follow, as of a first evaluation, is passed over; so are
    jumps at other distances before them. `apart` of two jumps is the one distance between them.
    """
    rises = [now - past for past, now in pairwise(values)]
    first = 0
    while first < len(rises):
        largest = max(rises[first:])
        jumps = [at for at in range(first, len(rises)) if largest > 0 and 2 * rises[at] > largest]
        if not jumps or len(jumps) > MOST_JUMPS:
            return None
        gained = [rises[at] for at in jumps[1:]]  # the first evaluation may make buffers too
        apart = [steps[now + 1] - steps[past + 1] for past, now in pairwise(jumps)]
        if apart and _are_alike(gained, rises[jumps[0]], values[-1] - values[jumps[0] + 1]):
            begin, end = steps[jumps[0] + 1], steps[jumps[-1] + 1]
            read_every = max(steps[at + 1] - steps[at] for at in jumps)
            spread = max(apart) - min(apart)
            if min(apart) >= FEWEST_APART_STEPS and spread <= (ALIKE - 1) * min(apart) + read_every:
                rise, distance = round(sum(gained) / len(gained)), round((end - begin) / len(apart))
                return Stairs(rise, distance, begin, end, len(jumps), spread)
        first = jumps[0] + 1
    return None


def _are_alike(gained: Sequence[int], before: int, risen: int) -> bool:
    """Say whether jumps after the one `before` are alike, and make all of what has risen since."""
    low, high = min(gained), max(gained)
    return (
        high <= ALIKE * low
        and before * ALIKE >= low
        and ALL_OF < sum(gained) / max(1, risen) < 1 / ALL_OF
    )
