"""Numbers that a program prints differently each time are not its results; all others are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leakcheck.cure.varying import varying, without

ONE = "step 10 loss 0.53 in 1.2 s\nstep 20 loss 0.50 in 1.4 s\n"
OTHER = "step 10 loss 0.53 in 1.3 s\nstep 20 loss 0.50 in 1.4 s\n"


def test_a_time_is_left_out_in_every_line_of_the_same_words():
    left = "step 10 loss 0.53 in # s\nstep 20 loss 0.50 in # s"

    assert without(ONE, varying(ONE, OTHER)) == left
    assert without(OTHER, varying(ONE, OTHER)) == left


def test_a_loss_beside_it_is_compared():
    changed = ONE.replace("0.50", "0.51")

    assert without(changed, varying(ONE, OTHER)) != without(ONE, varying(ONE, OTHER))


def test_outputs_of_other_words_or_more_lines_tell_nothing_about_numbers():
    assert not varying(ONE, ONE + "done\n")
    assert not varying("took 2 s", "took 2 min")


@given(st.text(), st.text())
def test_without_what_varies_two_outputs_of_the_same_words_are_the_same(one, other):
    numbers = varying(one, other)

    assert not numbers or without(one, numbers) == without(other, numbers)
    assert not varying(one, one)
