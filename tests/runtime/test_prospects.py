"""What is to come of the suspects of a window: of each, and of all of them together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leakcheck.model import Holder, Place, Reason, Suspect
from leakcheck.report.reasons import told
from leakcheck.runtime.attribution.inquest import Grown
from leakcheck.runtime.attribution.sources import Sources
from leakcheck.runtime.attribution.window import Findings
from leakcheck.runtime.judgement.judge import Reading
from leakcheck.runtime.judgement.release import Removal
from leakcheck.runtime.judgement.trend import fit
from leakcheck.runtime.outlook import Case
from leakcheck.runtime.prospects import Prospects, prospects_of
from leakcheck.source.guards import NONE, Guard
from leakcheck.source.uses import Use

LIST, TIMERS = Holder("global", "states"), Holder("attribute", "timers", "Loop")
ADDS = Use("add", NONE, "each step", "serve.py", 9, "states[key] = x", ran=40)
POPS = Use("take", NONE, "each step", "loop.py", 5, "timers.pop()", sure=True, ran=30)
CLEARS = Use("take", NONE, "when a loop turns", "serve.py", 7, "states.clear()", sure=True)
EVERY = Guard("every", 90, "90", "step % 90 == 0", "serve.py", 6)


def prospects(
    uses: dict[Holder, tuple[Use, ...]], grown: dict[Holder, Grown] | None = None, **ran: int
) -> Prospects:
    suspects = [
        Suspect("object", "dict", 1.0, holder=holder, locations=(Place("serve.py", 3, "{}"),))
        for holder in uses
    ]
    visits = {("serve.py", int(line.removeprefix("line_"))): n for line, n in ran.items()}
    return prospects_of(suspects, Findings(grown=grown or {}, uses=uses, sources=Sources(visits)))


STEPS = range(100, 200, 10)
LATER = Use("read", NONE, "once", "serve.py", 30, "plot(states)", after=True)


@pytest.mark.parametrize(("heap_per_step", "explain"), [(2000, True), (4000, False)])
def test_what_is_gathered_explains_a_heap_that_grows_little_faster(heap_per_step, explain):
    values = [heap_per_step * step for step in STEPS]
    heap = Reading("host.heap", STEPS, values, fit(STEPS, values))
    suspect = Suspect("tensor", "Tensor", 1.0, 100.0, holder=LIST)
    uses = {LIST: (ADDS, LATER)}
    found = prospects_of([suspect], Findings(uses=uses), Case(trains=False))

    assert found.explain([heap]) is explain
    assert [told(notice) for notice in found.gathered.told_of_gathered(1000)] == [
        "global `states` gathered 97.7 KiB in 1,000 steps, and `plot(states)` (serve.py:30) uses "
        "it after the loop: no leak"
    ]


READS = Use("read", NONE, "each step", "serve.py", 10, "states[key]", ran=40)


@pytest.mark.parametrize(
    ("uses", "unread"),
    [
        ((ADDS,), True),
        ((ADDS, READS), True),
        ((ADDS, replace(READS, reach="elsewhere")), True),
        ((ADDS, replace(READS, reach="elsewhere", ran=0)), False),
        ((ADDS, LATER), False),
        ((ADDS, CLEARS), False),
        ((), False),
    ],
)
def test_what_only_the_loop_that_adds_reads_is_no_data_for_later(uses, unread):
    assert prospects({LIST: uses}).is_unread is unread


def test_what_took_in_vain_is_told_from_what_nothing_takes_from():
    found = prospects({TIMERS: (ADDS, POPS), LIST: (ADDS,)})

    assert [one.holder for one in found.suspects] == [LIST, TIMERS]
    assert found.in_vain == (TIMERS,)
    assert found.leaks
    assert [one.holder for one in found.without([TIMERS]).suspects] == [LIST]
    assert not found.without([LIST]).leaks


def test_what_an_event_loop_lets_go_of_in_time_is_left_out_beside_a_leak():
    grown = {TIMERS: Grown(None, 400, 20, due=True)}
    both, alone = (
        prospects({TIMERS: (ADDS, POPS), LIST: (ADDS,)}, grown),
        prospects({TIMERS: (ADDS, POPS)}, grown),
    )

    assert both.beyond.suspects == both.without([TIMERS]).suspects
    assert (alone.beyond.leaks, alone.waits_for_end) == (False, True)
    assert alone.removal == Removal(Reason("due-in-time", (("length", 400),)), reached=False)


@pytest.mark.parametrize(
    ("use", "steps"),
    [(CLEARS, 50_000), (Use("take", EVERY, "each step", "serve.py", 7, ""), 1000), (ADDS, 0)],
)
def test_the_table_says_for_how_many_steps_is_waited(use, steps):
    assert prospects({LIST: (ADDS, use)}).wait_steps == steps


def test_what_is_taken_at_each_nth_step_is_looked_at_again():
    recurring = Use("take", EVERY, "each step", "serve.py", 7, "states.clear()")

    assert prospects({LIST: (ADDS, recurring)}).looks_again
    assert not prospects({LIST: (ADDS, CLEARS)}).looks_again


@pytest.mark.parametrize(
    ("ran", "lines"), [({"line_9": 40}, [9, 3]), ({"line_3": 2, "line_9": 40}, [3]), ({}, [9, 3])]
)
def test_where_no_line_was_seen_to_add_the_one_is_told_that_does_by_the_source(ran, lines):
    (suspect,) = prospects({LIST: (ADDS,)}, **ran).suspects

    assert [place.line for place in suspect.locations] == lines


def test_the_line_that_adds_is_told_once_and_first():
    (suspect,) = (
        prospects_of(
            [
                Suspect(
                    "object",
                    "dict",
                    1.0,
                    holder=LIST,
                    locations=(Place("serve.py", 3, "{}"), Place("serve.py", 9, ADDS.code, 1.0)),
                )
            ],
            Findings(uses={LIST: (ADDS,)}),
        )
    ).suspects

    assert [place.line for place in suspect.locations] == [9, 3]
