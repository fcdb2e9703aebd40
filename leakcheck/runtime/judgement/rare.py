"""Growth that comes rarely: something large that is kept at the end of each epoch of 400 steps.

A line is no measure of it, and a confirmation of a hundred steps sees one jump or none. Stairs are
taken for growth instead: two jumps for a suspicion, one more when it is due for a confirmation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from leakcheck.runtime.judgement.judge import Reading
from leakcheck.runtime.judgement.stairs import FEWEST_APART_STEPS, Stairs, stairs
from leakcheck.runtime.judgement.trend import ALL_OF, fit
from leakcheck.runtime.readings.meters import is_in_use
from leakcheck.runtime.readings.series import Series

FEWEST_DOUBTFUL = 5  # jumps, for a run that ends before they are confirmed
# and for a leak: of five folds, or of six cycles of a schedule, something is kept on purpose
FEWEST_CERTAIN = 8
LEAST_JUMP_BYTES = 64 << 10
WAITS_FOR = 2.25  # times the steps until the first jump, for a second one


def climbing(quick: Series, after: int, tolerance_bytes: int) -> list[Reading]:
    """Return the bytes in use that rise in stairs beyond `after`, by more than the tolerance."""
    found = []
    for resource in filter(is_in_use, quick.resources):
        steps, values = quick.column(resource, after=after)
        known, line = stairs(steps, values), fit(steps, values)
        if known is None or line is None:
            continue
        if known.rise >= LEAST_JUMP_BYTES and known.per_step > tolerance_bytes:
            found.append(_with(Reading(resource, steps, values, line), known))
    return found


def in_doubt(found: list[Reading], climbing: list[Reading]) -> list[Reading]:
    """Return what a run that ends now leaves in doubt: of stairs those that rose often enough."""
    often = [one for one in climbing if one.stairs and one.stairs.count >= FEWEST_DOUBTFUL]
    return [one for one in found if one.stairs is None] + often


def as_seen(reading: Reading, quick: Series) -> Reading:
    """Return stairs with the jumps that were seen since they were suspected."""
    known = stairs(*quick.column(reading.resource, after=reading.steps[0] - 1))
    return reading if known is None else _with(reading, known)


def outcome(
    established: Sequence[Reading], quick: Series, since: int, step: int
) -> Literal["", "rises", "stopped"]:
    """Say whether established stairs have not yet risen often enough, or rise no more; else "".

    `since`: the end of the window, which takes no readings, and after which there are some again.
    """
    for one in established:
        if (known := one.stairs) is None:
            continue
        steps, values = quick.column(one.resource, after=one.steps[0] - 1)
        rises = [now - past for past, now in pairwise(values)]
        # two jumps in a window are one of twice the height
        jumps = [at for at, rise in zip(steps[1:], rises, strict=True) if 2 * rise > known.rise]
        if step > max([since, *jumps]) + WAITS_FOR * known.apart:
            return "stopped"
        if values[-1] - values[0] < (FEWEST_CERTAIN - 0.5) * known.rise:
            return "rises"
    return ""


def is_due(quick: Series, origin: int, after: int, tolerance_bytes: int) -> bool:
    """Say whether a second jump may yet come: as far from the first as that is from `origin`."""
    for resource in filter(is_in_use, quick.resources):
        steps, values = quick.column(resource, after=after)
        rises = [now - past for past, now in pairwise(values)]
        if not rises or max(rises) < LEAST_JUMP_BYTES:
            continue
        at = steps[rises.index(max(rises)) + 1]
        apart = at - origin
        stayed = values[-1] - values[0] >= ALL_OF * max(rises)
        enough = stayed and max(rises) > tolerance_bytes * apart and apart >= FEWEST_APART_STEPS
        if enough and steps[-1] < origin + WAITS_FOR * apart:
            return True
    return False


def _with(reading: Reading, known: Stairs) -> Reading:
    rate = known.per_step
    line = replace(reading.line, per_step=rate, low=rate, high=rate)
    return replace(reading, line=line, stairs=known)
