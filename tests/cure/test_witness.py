"""What a witness notes of a run must not look like a leak of the run."""

from __future__ import annotations

import sys

from leakcheck.cure.witness import TIMED_STEPS, Witness


def test_to_time_a_step_leaves_no_block_behind():
    witness = Witness()
    for _ in range(3):
        witness.step()
    before = sys.getallocatedblocks()

    for _ in range(TIMED_STEPS // 2):
        witness.step()

    assert sys.getallocatedblocks() - before < 20
    assert witness.step_s > 0


def test_more_steps_than_are_kept_are_timed_by_the_last_ones():
    witness = Witness()
    for _ in range(2 * TIMED_STEPS):
        witness.step()

    assert witness.step_s > 0
