"""How long to confirm growth: until ten new objects, or until it exceeds the noise in bytes."""

from __future__ import annotations

from dataclasses import replace

from leakcheck.runtime.judgement.confirmation import (
    AGREES_FROM,
    CONFIRM_OTHER_STEPS,
    LONGEST_CONFIRMATION_STEPS,
    OWN_BLOCKS,
    Confirmation,
)
from leakcheck.runtime.judgement.judge import Reading, companions
from leakcheck.runtime.judgement.patience import FINE_STEPS
from leakcheck.runtime.judgement.trend import spread
from leakcheck.runtime.readings.meters import BLOCK_BYTES, HELD_BACK, OUTSIDE, unit_of
from leakcheck.runtime.readings.series import Series

FEWEST_NEW = 10  # objects that a confirmation waits for
FEWEST_NEW_AT_TIMES = 24  # where they come at random: twelve in a half, and six must be there
# the median distance from the line is 0.67 deviations, and half of the gain must show between two
# readings: that is 2.4 of theirs
TIMES_NOISE = 10.0
# resource -> fewest steps to confirm it over; bytes jump, counters do not
_CONFIRM_STEPS = {"graph.nodes": 10, "tensors": 16, "hooks": 16, "python.blocks": 64}
_CONFIRM_HELD_BACK_STEPS = 150  # what only seems to be lost comes in use again


def confirmation(
    suspected: list[Reading], slow: Series, step: int, tolerance_bytes: int, length: int = 0
) -> Confirmation:
    """Plan the confirmation: long enough for ten new objects of the slowest suspected counter.

    `slow` has the exact counters to look at beside; `length`: how many steps it takes if that is
    known.
    """
    if any(reading.stairs for reading in suspected):
        return again(suspected, step)
    blocks_alone = all(reading.resource == "python.blocks" for reading in suspected)
    if blocks_alone and tolerance_bytes < BLOCK_BYTES:
        length = FINE_STEPS
    lengths = []
    for reading in suspected:
        fewest = _CONFIRM_STEPS.get(reading.resource, CONFIRM_OTHER_STEPS)
        if reading.resource.endswith((*HELD_BACK, OUTSIDE)) and not reading.even:
            fewest = _CONFIRM_HELD_BACK_STEPS
        if unit_of(reading.resource) == "B":
            fewest = max(fewest, _beyond_noise(reading))
        new = FEWEST_NEW if reading.line.straight else FEWEST_NEW_AT_TIMES
        lengths.append(max(fewest, round(new / reading.line.per_step)))
    length = length or min(max(lengths), LONGEST_CONFIRMATION_STEPS)
    beside = [_above_our_own(reading, length) for reading in companions(slow, suspected)]
    return Confirmation(suspected, step, length, beside)


def again(grown: list[Reading], step: int, steps: int = 0) -> Confirmation:
    """Plan a confirmation over `steps` more, or until just before a jump where stairs grow."""
    known = [reading.stairs for reading in grown if reading.stairs is not None]
    length = max((one.ready_after(step, steps) - step for one in known), default=steps)
    return Confirmation(grown, step, length)


def _beyond_noise(reading: Reading) -> int:
    """Return in how many steps each half gains far more than single readings differ by chance.

    Batches of as many tokens as fit leave the heap 100 KB higher or lower at the end of a step.
    """
    noise = spread(reading.steps, reading.values, reading.line.per_step)
    return round(2 * TIMES_NOISE * noise / reading.line.per_step)


def _above_our_own(reading: Reading, length: int) -> Reading:
    if reading.resource != "python.blocks":
        return reading
    least = OWN_BLOCKS / (AGREES_FROM * length / 2)
    line = replace(reading.line, per_step=max(reading.line.per_step, least))
    return replace(reading, line=line)
