"""Numbers that a program prints differently each time are not its results; all others are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leakcheck.cure.varying import logged, renamed_alike, says_other, varying, without

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


def test_of_a_log_what_two_runs_have_in_common_is_compared():
    one = "10%|#  | 3.1it/s\repoch 1: mean 0.5\nepoch 2: mean 0.7\n"
    other = "12%|#  | 2.9it/s\repoch 1: mean 0.5\nepoch 2: mean 0.7\n"

    assert not says_other(one, other, "40%|## | 9it/s\repoch 1: mean 0.5\nepoch 2: mean 0.7\n")
    assert says_other(one, other, "10%|#  | 3.1it/s\repoch 1: mean 0.5\nepoch 2: mean 0.6\n")


BAR = "\r {percent}%|{bar}| {at}/400 [00:01<00:0{left}, {rate}it/s]"


def test_a_bar_may_be_drawn_at_other_steps():
    first = BAR.format(percent=22, bar="██▏", at=88, left=3, rate="87.96")
    bars = [
        first + BAR.format(percent=44, bar="████▍", at=177, left=2, rate="88.01"),
        first + BAR.format(percent=45, bar="████▌", at=180, left=2, rate="89.3"),
        BAR.format(percent=21, bar="██", at=84, left=3, rate="84.1"),
    ]

    assert not says_other(*bars)
    assert says_other(*(f"{bar}\nmean {mean}\n" for bar, mean in zip(bars, "112", strict=True)))


def test_a_warning_beside_a_bar_leaves_the_bar():
    warned = "\r  0%|   | 0/400 [00:00<?, ?it/s]train.py:21: UserWarning: odd\n  total += loss\n"

    assert logged(warned) == ["  0%|   | 0/400 [#<?, ?it/s]"]


def test_a_warning_is_no_line_of_a_log():
    quoted = "a.py:3: UserWarning: a tensor is converted.\nConsider detach().\n  total += loss\n"

    assert logged(f"first\n{quoted}second\n") == ["first", "second"]
    assert logged("first\na.py:3: UserWarning: old\nsecond\n") == ["first", "second"]


LOG = "epoch 1: {} s, mean 0.5\nepoch 2: {} s, mean {mean}\n"


def test_of_a_log_a_number_beside_a_time_is_compared():
    one, other = LOG.format(0.1, 0.2, mean=0.7), LOG.format(0.2, 0.2, mean=0.7)

    assert not says_other(one, other, LOG.format(0.3, 0.4, mean=0.7))
    assert says_other(one, other, LOG.format(0.3, 0.4, mean=0.6))
    assert says_other(one, other, LOG.format(0.3, 0.4, mean=0.7) + "the mean is odd\n")


def test_of_numbers_without_words_the_one_that_varies_is_left_out():
    one, other = "0.5\n0.7\n1.31\n", "0.5\n0.7\n1.29\n"

    assert without(one, varying(one, other)) == "0.5\n0.7\n#"
    assert says_other(one, other, "0.5\n0.6\n1.30\n")
    assert not says_other(one, other, "0.5\n0.7\n1.30\n")


@given(st.text(), st.text())
def test_a_log_says_nothing_other_than_itself(one, other):
    assert not says_other(one, other, one)


def test_files_of_other_names_in_each_run_are_the_same_by_what_is_in_them():
    one, other = (("log", 1), ("/tmp/a/x", 7)), (("/tmp/b/x", 7), ("log", 1))

    assert renamed_alike(one, other, (("/tmp/c/x", 7), ("log", 1)))
    assert not renamed_alike(one, other, (("/tmp/c/x", 8), ("log", 1)))
    assert not renamed_alike(one, other, (("/tmp/c/x", 7), ("log", 2)))
    assert not renamed_alike(one, other, (("log", 1),))
    assert not renamed_alike(one, one, (("/tmp/c/x", 7), ("log", 1)))
