"""What is kept once in each training, however many there are."""

from __future__ import annotations

import pytest

from leakcheck.runtime.judgement.rounds import Trainings


@pytest.mark.parametrize(
    ("begun", "apart_steps", "may_be_meant"),
    [
        ([200, 400, 600], 200.0, True),
        ([200, 400, 600], 160.0, True),
        ([200, 400, 600], 100.0, False),  # twice in each
        ([200, 400, 600], 0.0, False),  # it is not known when
        ([200], 200.0, False),
        ([5, 10, 200], 200.0, False),  # before it was seen to grow
        ([50, 100, 150], 50.0, True),  # weak learners
        ([20, 40, 60, 80], 20.0, False),  # of a task of twenty steps each
    ],
)
def test_additions_as_far_apart_as_trainings_begin_may_be_their_results(
    begun, apart_steps, may_be_meant
):
    trainings = Trainings()
    for step in begun:
        trainings.begin(step)

    assert trainings.keep(apart_steps, since=15) is may_be_meant
