"""What a witness notes of a run must not look like a leak of the run."""

from __future__ import annotations

import sys

import pytest

from leakcheck.cure.witness import SAMPLE, SAMPLED, TIMED_STEPS, Witness


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


def test_of_each_weight_as_many_values_are_noted_evenly_spaced(tmp_path):
    torch = pytest.importorskip("torch")
    small, large = torch.tensor([0.5, float("inf")]), torch.arange(1000.0).reshape(10, 100)
    witness = Witness()
    witness._stepped(torch.optim.SGD([small, large, torch.zeros(0)], lr=0.1))

    hashes = witness.weights(tmp_path / "weights")

    first, second, third = SAMPLE.iter_unpack((tmp_path / "weights").read_bytes())
    assert len(hashes) == 3
    assert first == (0.5, float("inf"), *(SAMPLED - 2) * (0.0,))
    assert second[:63] == tuple(16.0 * at for at in range(63))
    assert third == SAMPLED * (0.0,)
