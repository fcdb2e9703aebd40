"""Which turns of the loops around the steps are worth a look."""

from __future__ import annotations

from leakcheck.runtime.judgement.patience import SHORT_PHASE_STEPS
from leakcheck.runtime.judgement.rounds import Rounds


def test_a_turn_is_told_once():
    rounds = Rounds()
    rounds.note(1)

    assert [rounds.take(100), rounds.take(101)] == [1, 0]


def test_of_loops_that_turn_together_the_outermost_counts():
    rounds = Rounds()
    for depth in (2, 1):
        rounds.note(depth)

    assert rounds.take(100) == 2


def test_turns_soon_after_one_of_that_loop_or_one_around_it_are_passed_over():
    rounds, taken = Rounds(), []
    for step, depth in ((100, 1), (105, 1), (110, 2), (115, 1), (120, 2), (150, 1)):
        rounds.note(depth)
        taken.append(rounds.take(step))

    assert SHORT_PHASE_STEPS == 30
    assert taken == [1, 0, 2, 0, 0, 1]
