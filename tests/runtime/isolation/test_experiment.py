from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.experiments import StageRun
from leakcheck.model import Place, Report, Run, Suspect, Trend
from leakcheck.report.reasons import said
from leakcheck.runtime.isolation.experiment import NOT_APPLICABLE, STAGES, conclude, judged
from tests.holders import held_by

CHANGED = [stage for stage in STAGES if stage != "as-it-is"]


def trend(resource: str, per_step: float) -> Trend:
    return Trend(resource, "B", per_step, per_step, per_step, 0.0, 100, "growing")


def growing(stage: str, steps: int = 100, **rates: float) -> StageRun:
    trends = tuple(trend(name.replace("_", "."), rate) for name, rate in rates.items())
    suspect = Suspect(
        "tensor", "tensors", holder=held_by("global `kept`"), locations=(Place("a.py", 7, ""),)
    )
    run = Run("a.py", steps, 1.0)
    report = Report(verdict="growing", trends=trends, suspects=(suspect,), run=run)
    return StageRun(stage, "growing", report=report)


def steady(stage: str, steps: int = 1000) -> StageRun:
    return StageRun(stage, "steady", report=Report(verdict="steady", run=Run("a.py", steps, 1.0)))


def stages(**verdicts: str) -> list[StageRun]:
    """The unchanged run grows; the others as told, e.g. data_only="steady"."""
    runs = [growing("as-it-is", tensors=1.0)]
    for name, verdict in verdicts.items():
        stage = name.replace("_", "-")
        if verdict == "growing":
            runs.append(growing(stage, tensors=1.0))
        else:
            runs.append(steady(stage) if verdict == "steady" else StageRun(stage, verdict))  # type: ignore[arg-type]
    return runs


G, S, U, N = "growing", "steady", "unclear", NOT_APPLICABLE


@pytest.mark.parametrize(
    ("data", "fixed", "backward", "logging", "told"),
    [
        (G, S, G, G, "leaks with data only: the loader, the dataset or its transforms keep what "
                     "they make"),
        (G, G, G, N, "leaks with data only: the loader, the dataset or its transforms keep what "
                     "they make; and the step leaks too, with a fixed batch"),
        (G, S, S, G, "unclear: the stages contradict each other (grows with data only, stops "
                     "without backward); run it again with more --steps"),
        (S, S, G, G, "stops with a fixed batch: it grows with the data seen, as a cache keyed by "
                     "data or a list of batches does"),
        (U, S, G, G, "stops with a fixed batch: it comes with the data, in the loader or in what "
                     "is kept"),
        (S, G, S, N, "leaks only with backward or the optimizer: gradients, hooks or their state "
                     "are kept"),
        (S, G, G, S, "stops without logging and callbacks: one of them keeps what it is given"),
        (S, G, G, N, "stops with data only, grows with a fixed batch and without backward: the "
                     "forward pass or the loop keeps something of every step"),
        (N, N, G, N, "grows without backward: the forward pass or the loop keeps something of "
                     "every step"),
        (U, U, G, N, "unclear: grows without backward too; whether the loader leaks was not seen"),
        (N, N, N, N, "unclear where: no stage told more than the unchanged run"),
    ],
)  # fmt: skip
def test_what_stops_the_growth_is_what_leaks(data, fixed, backward, logging, told):
    runs = stages(data_only=data, fixed_batch=fixed, no_backward=backward, no_logging=logging)

    assert said(conclude(runs)) == f"{told}; held by global `kept` (a.py:7)"


def test_a_leak_of_the_loader_that_explains_a_part_says_which():
    runs = [growing("as-it-is", tensors=4.0, graph_nodes=3.0), growing("data-only", tensors=4.0)]

    assert "that is a part of the growth only (graph.nodes 0 of 3 a step)" in said(conclude(runs))


@pytest.mark.parametrize(
    ("blocks_per_step", "told"),
    [(5.6, ""), (0.1, "that is a part of the growth only (python.blocks 0.1 of 5.7 a step)")],
)
def test_what_grew_in_a_stage_as_in_the_run_is_no_missing_part_though_it_was_not_confirmed(
    blocks_per_step, told
):
    plain, data = (
        growing("as-it-is", tensors=1.0, python_blocks=5.7),
        growing("data-only", tensors=1.0),
    )
    blocks = replace(trend("python.blocks", blocks_per_step), verdict="steady")
    data = replace(data, report=replace(data.report, trends=(*data.report.trends, blocks)))

    said_of_all = said(conclude([plain, data, *stages(no_backward=G, no_logging=G)[1:]]))

    assert "leaks with data only" in said_of_all
    assert told in said_of_all
    assert ("part of the growth" in said_of_all) == bool(told)


def test_a_steady_program_has_nothing_to_isolate():
    assert said(conclude([steady("as-it-is", 1014)])) == (
        "no leak in 1,014 steps: there is nothing to isolate"
    )


def test_a_stage_that_stops_too_early_holds_steady_for_nothing():
    run = judged(steady("fixed-batch", 60), growing("as-it-is", steps=150, tensors=1.0))

    assert (run.verdict, said(run.reason)) == (
        "unclear",
        "steady, but for 60 steps only; the growth took 150 to show",
    )


def test_another_leak_than_the_one_sought_says_nothing_about_it():
    plain = growing("as-it-is", tensors=1.0)

    slower = judged(growing("no-backward", tensors=0.1), plain)
    other = judged(growing("no-backward", threads=1.0), plain)

    assert (slower.verdict, said(slower.reason)) == (
        "unclear",
        "grows at 10% of the unchanged run's rate",
    )
    assert (other.verdict, said(other.reason)) == (
        "unclear",
        "something else grows than in the unchanged run",
    )


@given(st.fixed_dictionaries({stage: st.sampled_from([G, S, U, N, "absent"]) for stage in CHANGED}))
def test_every_outcome_of_the_stages_has_one_conclusion(verdicts):
    told = {s.replace("-", "_"): v for s, v in verdicts.items() if v != "absent"}

    conclusion = said(conclude(stages(**told)))

    assert conclusion.endswith("; held by global `kept` (a.py:7)")
    assert ("data only: the loader" in conclusion) <= (verdicts["data-only"] == G)
    assert ("only with backward" in conclusion) <= (verdicts["no-backward"] == S)
    assert ("stops without logging" in conclusion) <= (verdicts["no-logging"] == S)
    assert ("data seen" in conclusion) <= (verdicts["fixed-batch"] == S)
