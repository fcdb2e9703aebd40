from __future__ import annotations

from dataclasses import replace

import pytest

from leakcheck.model import Holder, LeakTrace, Link, Reason, Report, Run, Suspect
from leakcheck.report.reasons import told as in_words
from leakcheck.runtime.merge import with_children
from leakcheck.runtime.recording import Recording

LEAK = Suspect(
    "graph",
    "Tensor",
    4.0,
    100.0,
    Holder("global", "losses"),
    LeakTrace("global `losses`", (Link("[x]", "Tensor"),)),
)
OWN = Report(
    verdict="unclear",
    reason=Reason.of("too-few-steps", steps=3, needed=30),
    run=Run("train.py", 3, 1.0, clock="iterations of the loop", exit_status=0, ended="finished"),
)


def child(number: int, verdict: str = "steady", steps: int = 200, **known: object) -> Recording:
    run = Run(
        "train.py",
        steps,
        1.0,
        clock="optimizer step",
        process=f"Process-{number}",
        ended="finished",
    )
    run = replace(run, **known)
    suspects = (LEAK,) if verdict == "growing" else ()
    reason = Reason("no-steps") if verdict == "unclear" else None
    return Recording(run, (), Report(verdict=verdict, reason=reason, suspects=suspects, run=run))


def told(own: Report, *children: Recording) -> tuple[str | None, Reason | None, list[str]]:
    report = with_children(own, children)
    return report.verdict, report.reason, [in_words(notice) for notice in report.notices]


def test_a_program_without_children_keeps_its_report():
    assert with_children(OWN, []) is OWN


def test_one_child_that_grows_makes_the_program_grow():
    assert told(OWN, child(1), child(2, "growing"))[0] == "growing"


def test_the_same_leak_in_several_children_is_told_once_with_all_of_them():
    report = with_children(OWN, [child(n, "growing") for n in (10, 9, 1)])

    assert [each.processes for each in report.suspects] == [
        ("Process-1", "Process-9", "Process-10")
    ]


def test_a_parent_that_waits_and_a_worker_with_few_steps_do_not_count():
    assert told(OWN, child(1), child(2, "unclear", steps=12)) == (
        "steady",
        None,
        ["the main process, Process-2 unclear; Process-1 steady"],
    )


def test_few_steps_count_where_no_process_had_more():
    assert told(OWN, child(1, "unclear", steps=12))[:2] == ("unclear", OWN.reason)


def test_a_worker_without_an_optimizer_counts_only_if_it_grows():
    loop = {"clock": "iterations of the loop at data.py:3"}

    assert told(OWN, child(1), child(2, "unclear", **loop))[0] == "steady"
    assert told(OWN, child(1), child(2, "growing", **loop))[0] == "growing"
    assert told(OWN, child(1, "unclear", **loop))[0] == "unclear"


def test_ranks_name_the_processes_as_long_as_they_tell_them_apart():
    ranks = [child(n, rank=n, world_size=2) for n in (0, 1)]
    waits = replace(OWN, run=replace(OWN.run, steps=0))

    assert told(waits, *ranks)[2] == ["ranks 0, 1 steady"]
    assert told(waits, *ranks, child(3, rank=0, world_size=2))[2] == [
        "Process-0, Process-1, Process-3 steady"
    ]


@pytest.mark.parametrize(
    ("how", "one", "two"),
    [
        (
            "killed",
            "Process-1 was killed, and is judged by its recording",
            "Process-1, Process-2 were killed, and are judged by their recordings",
        ),
        (
            "still runs",
            "Process-1 still runs, and is judged by its recording",
            "Process-1, Process-2 still run, and are judged by their recordings",
        ),
    ],
)
def test_children_that_wrote_no_report_are_named(how, one, two):
    first, second = (child(n, ended="cut off", stopped_by=how) for n in (1, 2))
    waits = replace(OWN, run=replace(OWN.run, steps=0))

    assert told(waits, first)[2] == [f"Process-1 steady; {one}"]
    assert told(waits, first, second)[2] == [f"Process-1, Process-2 steady; {two}"]


def test_of_many_processes_only_the_number_is_told():
    waits = replace(OWN, run=replace(OWN.run, steps=0))

    assert told(waits, *map(child, range(64)))[2] == ["64 processes steady"]


def test_how_the_program_ended_is_its_own_and_not_a_childs():
    failed = replace(
        OWN, run=replace(OWN.run, exit_status=1, ended="failed", stopped_by="an error")
    )

    run = with_children(failed, [child(1)]).run

    assert (run.exit_status, run.ended, run.stopped_by) == (1, "failed", "an error")
    assert (run.process, run.steps) == ("Process-1", 200)
