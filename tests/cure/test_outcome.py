from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.cure.outcome import best, compared, goes_on, outcome
from leakcheck.experiments import Attempt, Difference, Results, Trial
from leakcheck.model import Holder, Reason, Report, Run, Suspect, Trend

SUSPECT = Suspect("graph", "a loss", holder=Holder("global", "total"))
OTHER = Suspect("tensor", "an input", holder=Holder("global", "inputs"))
SOME = Results("1.0\n", losses=((7, 1.0),), weights=((3, (0.5,)),))
results = st.builds(
    Results,
    st.text(),
    losses=st.lists(st.tuples(st.integers(0, 9), st.floats(allow_nan=False))).map(tuple),
    weights=st.lists(st.tuples(st.integers(0, 9), st.just((0.5,)))).map(tuple),
    files=st.dictionaries(st.text(), st.integers(0, 9)).map(lambda one: tuple(sorted(one.items()))),
)


def trial(verdict, *suspects, rate=0.0, steps=400, made=SOME, **others):
    grows = "growing" if rate else "steady"
    trends = (Trend("graph.nodes", "Nodes", rate, rate, rate, 9.0, 99, grows),)
    run = Run("train.py", steps, 1.0, ended="finished")
    report = Report(verdict=verdict, trends=trends, suspects=suspects, run=run)
    return Trial(report, made, **others)


LEAKING = trial("growing", SUSPECT, rate=5.0)


def told(after, *differences):
    return outcome(LEAKING, after, SUSPECT, differences)[0]


@given(results)
def test_a_run_does_not_differ_from_itself(made):
    assert compared(made, made) == ()


@given(results, results)
def test_two_runs_differ_in_the_same_things_whichever_is_first(one, other):
    found = [each.what for each in compared(one, other)]

    assert found == [each.what for each in compared(other, one)]
    assert bool(found) == (one != other) or one.stdout.splitlines() == other.stdout.splitlines()


def test_a_number_where_a_tensor_was_printed_is_the_same_number():
    before = Results("1 tensor(61.6508, grad_fn=<AddBackward0>)\n")

    assert compared(before, Results("1 61.65076330117881\n"))[0].written
    assert not compared(before, Results("1 61.66\n"))[0].written
    assert not compared(before, Results("2 61.6508\n"))[0].written
    assert not compared(Results("61.6508\n"), Results("61.65080001\n"))[0].written


def test_weights_that_differ_are_told_by_how_much():
    before = Results(weights=((1, (0.5, 2.0)), (2, (1.0, 1.0)), (3, (0.0, 0.0))))
    after = Results(weights=((1, (0.5, 2.0)), (8, (1.0, 1.25)), (9, (0.0, float("nan")))))

    assert compared(before, after) == (Difference("weights", 2, "3", "3", 2, most=0.25),)


def test_the_first_loss_that_differs_is_named_with_both_values():
    before = Results(losses=((1, 0.5), (2, 0.25)))
    after = Results(losses=((1, 0.5), (9, 0.75)))

    assert compared(before, after) == (Difference("losses", 2, "0.25", "0.75", 1, most=0.5),)


def test_a_file_that_differs_or_is_not_written_is_named():
    before = Results(files=(("a.pt", 1), ("b.pt", 2)))

    assert compared(before, Results(files=(("a.pt", 1), ("b.pt", 3)))) == (
        Difference("files", 0, "b.pt", "b.pt", 1),
    )
    assert compared(before, Results(files=(("b.pt", 2),))) == (
        Difference("files", 0, "a.pt", "none", 1),
    )


@pytest.mark.parametrize("what", ["modules", "gradients"])
def test_what_only_the_leak_kept_alive_may_be_gone_and_nothing_may_be_new(what):
    assert compared(Results(**{what: (1, 2, 3)}), Results(**{what: (1, 3)})) == ()
    assert compared(Results(**{what: (1, 2)}), Results(**{what: (1, 4)})) == (
        Difference(what, 0, "2", "", 1),
    )


def test_a_log_is_compared_without_its_times_and_warnings():
    before = "10:02:03,120 INFO loss 0.5\ntrain.py:7: UserWarning: slow\n  total += loss\nend\n"

    assert compared(Results(stderr=before), Results(stderr="9:11:12,7 INFO loss 0.5\nend\n")) == ()
    assert compared(Results(stderr=before), Results(stderr="# INFO loss 0.4\nend\n")) == (
        Difference("stderr", 1, "# INFO loss 0.5", "# INFO loss 0.4", 1),
    )


def test_a_log_alone_shows_nothing_of_the_results():
    made = Results(stderr="slow\n")

    before = trial("growing", SUSPECT, rate=5.0, made=made)
    assert outcome(before, trial("steady", made=made), SUSPECT, ())[0] == "unclear"


def test_proved_is_steady_with_the_same_results():
    assert told(trial("steady")) == "proved"
    assert told(trial("steady"), Difference("stdout", 1, "a", "b", written=True)) == "proved"


def test_a_leak_that_is_gone_with_other_results_is_not_proved():
    for what in ("stdout", "stderr", "losses", "weights", "modules", "gradients", "files"):
        assert told(trial("steady"), Difference(what, 1, "a", "b")) == "changes"


def test_another_leak_that_is_left_is_said():
    assert told(trial("growing", OTHER, rate=2.0)) == "helps"
    assert told(trial("growing", OTHER, rate=5.0)) == "stays"
    assert told(trial("growing", SUSPECT, rate=2.0)) == "stays"
    assert told(trial("growing", rate=2.0)) == "stays"


def test_a_leak_that_its_counter_shows_no_more_is_gone_though_something_else_is_unclear():
    unsure = Reason.of("unconfirmed", resources=("tensors",), held=None)
    left = trial("unclear")
    report = replace(left.report, reason=unsure)

    assert outcome(LEAKING, replace(left, report=report), SUSPECT, ()) == ("helps", unsure)
    assert outcome(LEAKING, replace(left, report=report), OTHER, ())[0] == "unclear"
    assert told(trial("unclear", rate=2.0)) == "unclear"
    assert told(left, Difference("stdout", 1, "a", "b")) == "changes"


def test_an_edit_with_which_the_program_fails_or_does_less_is_not_proved():
    assert told(trial("steady", status=1)) == "fails"
    assert told(trial("steady", steps=399)) == "fails"
    assert told(Trial(None)) == "fails"


@pytest.mark.parametrize(("turns", "shown"), [(410, "proved"), (409, "fails")])
def test_a_loop_that_was_recognised_later_has_turned_as_often(turns, shown):
    before, after = replace(LEAKING, turns=410), trial("steady", steps=399, turns=turns)

    assert outcome(before, after, SUSPECT, ())[0] == shown


def test_without_anything_to_compare_nothing_is_proved():
    before = trial("growing", SUSPECT, rate=5.0, made=Results())
    after = trial("steady", made=Results())

    assert outcome(before, after, SUSPECT, ())[0] == "unclear"


def test_same_results_come_first_then_memory_then_time():
    odd = Difference("stdout", 1, "tensor(1.)", "1.0", written=True)
    named = {
        "writes otherwise": Attempt("a", "", (), trial("steady"), LEAKING, "proved", (odd,)),
        "large": Attempt("b", "", (), trial("steady", peak_bytes=1 << 30), LEAKING, "proved"),
        "slow": Attempt("c", "", (), trial("steady", step_s=2.0), LEAKING, "proved"),
        "fast": Attempt("d", "", (), trial("steady", step_s=1.0), LEAKING, "proved"),
        "changes": Attempt("e", "", (), trial("steady"), LEAKING, "changes"),
    }

    assert best([*named.values()]) is named["fast"]
    assert best([named["large"], named["writes otherwise"]]) is named["large"]
    assert best([named["changes"]]) is None


def test_what_grows_as_fast_as_before_goes_on_and_what_slows_down_does_not():
    before, slower = LEAKING.report, trial("growing", SUSPECT, rate=4.0).report
    unclear = trial("unclear", rate=5.0).report

    assert goes_on(before, unclear)
    assert not goes_on(before, slower)
    assert not goes_on(before, trial("steady").report)
    assert outcome(LEAKING, Trial(unclear, goes_on=True), SUSPECT, ()) == ("stays", None)


def test_a_difference_in_how_much_is_kept_alone_is_no_other_result():
    assert told(trial("steady"), Difference("stdout", 1, "9", "3", sizes=True)) == "proved"


def test_another_exit_status_is_another_program_unless_the_leak_brought_it_down():
    ended = trial("growing", SUSPECT, rate=5.0, status=3)
    raised = replace(ended, failure=Reason.of("raised", error="OSError: too many open files"))

    assert outcome(ended, trial("steady"), SUSPECT, ())[0] == "fails"
    assert outcome(ended, trial("steady", status=3), SUSPECT, ())[0] == "proved"
    assert outcome(raised, trial("steady"), SUSPECT, ())[0] == "proved"
