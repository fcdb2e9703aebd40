"""What a change did to a leak: a pure function of the rates that runs before and after showed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.comparison import compare, observed
from leakcheck.experiments import Leak, Observation
from leakcheck.model import Holder, LeakTrace, Link, Reason, Report, Run, Suspect, Trend
from leakcheck.report.comparison import OUTCOMES, render, render_json
from leakcheck.report.reasons import said

NAMES = ("before.py", "after.py")
LEAK = Leak("0123456789ab", "Tensor (scalar) float32, held by global `losses`")
OTHER = Leak("ba9876543210", "Tensor (4) float32, held by global `outputs`")


def run(per_step: float = 0.0, spread: float = 0.0, leak: Leak | None = LEAK) -> Observation:
    """A run of which the graph grows so much a step, or is steady."""
    verdict = "growing" if per_step else "steady"
    interval = (per_step - spread, per_step + spread)
    trend = Trend("graph.nodes", "", per_step, *interval, 10 * per_step, 60, verdict)
    rss = Trend("host.rss", "B", 512.0, 0.0, 1024.0, 5120.0, 60, "steady")
    return Observation(verdict, None, 60, (rss, trend), (leak,) if per_step and leak else ())


UNCLEAR = Observation("unclear", Reason.of("too-few-steps", steps=3, needed=30), 3)
CASES = {
    "cures": ([run(7)], [run()], 0),
    "starts": ([run()], [run(7)], 1),
    "worsens": ([run(7)], [run(8)], 1),
    "lessens": ([run(7)], [run(2)], 0),
    "same": ([run(7)], [run(7)], 0),
    "steady": ([run()], [run()], 0),
    "another": ([run(7)], [run(7, leak=OTHER)], 1),
    "unclear": ([run(7)], [UNCLEAR], 2),
}


@pytest.mark.parametrize("outcome", CASES)
def test_each_outcome_and_its_exit_status(outcome):
    before, after, status = CASES[outcome]
    found = compare(NAMES, before, after)

    assert (found.outcome, found.exit_code) == (outcome, status)
    assert OUTCOMES[outcome] in " ".join(render(found).split())


def test_every_outcome_has_its_words():
    assert set(CASES) == set(OUTCOMES)


def test_a_rate_has_changed_only_if_it_has_in_every_pair():
    assert compare(NAMES, [run(7), run(7)], [run(9), run(7)]).outcome == "same"
    assert compare(NAMES, [run(7), run(7)], [run(9), run(9)]).outcome == "worsens"


def test_intervals_that_overlap_decide_nothing():
    assert compare(NAMES, [run(7, spread=1)], [run(8, spread=1)]).outcome == "same"


def test_a_twentieth_of_a_rate_is_what_an_allocator_rounds():
    assert compare(NAMES, [run(100)], [run(104)]).outcome == "same"
    assert compare(NAMES, [run(100)], [run(106)]).outcome == "worsens"


def test_runs_of_one_program_that_disagree_are_unclear():
    found = compare(NAMES, [run(7), run()], [run(), run()])

    assert found.outcome == "unclear"
    assert said(found.reason) == "before the change, one run grows and another does not"


def test_a_program_that_ends_before_the_leak_begins_is_not_cured():
    grows, ended = replace(run(7), steps=679), replace(run(), steps=150, finished=True)

    assert compare(NAMES, [grows], [replace(ended, finished=False)]).outcome == "cures"
    for sides, which in (([grows], [ended]), "after"), (([ended], [grows]), "before"):
        found = compare(NAMES, *sides)
        told = (
            f"{which} the change the program ended after 150 steps, and to tell the leak takes 679"
        )
        assert (found.outcome, said(found.reason)) == ("unclear", told)


def test_what_a_run_that_did_not_tell_has_not_shown_is_not_gone():
    unclear = replace(UNCLEAR, leaks=())

    assert compare(NAMES, [run(7)], [unclear]).gone == ()
    assert compare(NAMES, [unclear], [run(7)]).new == ()


def test_a_rate_starts_where_it_was_steady_and_its_interval_is_above_it():
    def moved(verdict: str, rate: float, spread: float = 0.0) -> str:
        before = replace(run(7, leak=None), verdict="growing")
        graph = replace(before.trends[1], verdict=verdict, per_step=rate, low=rate, high=rate)
        before = replace(before, trends=(before.trends[0], graph))
        return compare(NAMES, [before], [run(7, spread)]).changes[1].outcome

    assert moved("steady", 0) == "starts"
    assert moved("steady", 5, spread=4) == "same"
    assert moved("unclear", 5) == "rises"
    assert moved("unclear", 6.9) == "same"


def test_one_recording_stands_in_each_pair():
    found = compare(NAMES, [run(7)], [run(), run()])

    assert found.outcome == "cures"
    assert [change.outcome for change in found.changes] == ["reported", "ends"]


def test_the_text_shows_rates_difference_and_what_is_gone():
    found = compare(NAMES, [run(7), run(7)], [run(), run()])

    assert render(found) == (
        "leakcheck: the change cures the leak\n"
        "\n"
        "before  before.py: growing in 60 steps, growing in 60 steps\n"
        "after   after.py: steady in 60 steps, steady in 60 steps\n"
        "\n"
        "resource     before   after  difference a step (95 %)\n"
        "host.rss     +512 B  +512 B      -1.0 KiB to +1.0 KiB\n"
        "graph.nodes      +7       0                  -7 to -7  ends\n"
        "\n"
        "gone  Tensor (scalar) float32, held by global `losses` (id 0123456789ab)"
    )
    assert '"exit_status": 0' in render_json(found)


def test_a_leak_has_one_id_whatever_its_script_is_called():
    def report(script: str) -> Report:
        trace = LeakTrace("global `losses`", (Link("[x]", "list"),), f"global `{script}.losses`")
        suspect = Suspect("graph", "Tensor", holder=Holder("global", "losses"), trace=trace)
        return Report(verdict="growing", suspects=(suspect,), run=Run("", 60, 1.0, 10, ""))

    assert observed(report("before")).leaks == observed(report("after")).leaks
    assert observed(None).verdict == "unclear"


@given(st.lists(st.floats(0.5, 50), min_size=1, max_size=3), st.floats(0.5, 50))
def test_a_program_beside_itself_never_starts_or_cures_a_leak(rates, spread):
    runs = [run(rate, spread) for rate in rates]

    assert compare(NAMES, runs, runs).outcome == "same"
