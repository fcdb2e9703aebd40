"""A loop that was steady is watched on: a leak may begin late."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.runtime.judgement.judge import Reading, Recurring
from leakcheck.runtime.judgement.trend import fit
from leakcheck.runtime.judgement.vigil import LEAST_BYTES, Vigil
from leakcheck.runtime.readings.series import Series


def steady(**levels: int) -> Vigil:
    series = Series(16)
    for step in range(10):
        series.append(step, 0.0, {name.replace("_", "."): level for name, level in levels.items()})
    vigil = Vigil()
    vigil.begin([series])
    return vigil


def test_a_level_within_the_margin_of_the_highest_is_nothing_new():
    vigil = steady(host_heap=5 << 20, graph_nodes=40)

    assert not vigil.rose({"host.heap": (5 << 20) + LEAST_BYTES, "graph.nodes": 45})


def test_nodes_beyond_the_highest_count_so_far_begin_the_watch_again():
    assert steady(graph_nodes=40).rose({"graph.nodes": 46})


def test_what_stood_high_at_first_alone_is_no_level_of_a_steady_loop():
    series = Series(16)
    for step in range(12):
        series.append(step, 0.0, {"host.heap": (20 if step < 4 else 5) << 20})
    vigil = Vigil()

    vigil.begin([series])

    assert vigil.rose({"host.heap": 7 << 20})


def test_what_stood_high_now_and_then_is_a_level_of_a_steady_loop():
    series = Series(16)
    for step in range(12):
        series.append(step, 0.0, {"host.heap": (20 if step % 4 == 0 else 5) << 20})
    vigil = Vigil()

    vigil.begin([series])

    assert not vigil.rose({"host.heap": 20 << 20})


def test_a_level_that_is_not_come_to_any_more_is_lowered():
    vigil = steady(host_heap=20 << 20)
    for _ in range(3):
        assert not vigil.rose({"host.heap": 5 << 20})

    vigil.lower()

    assert vigil.rose({"host.heap": 7 << 20})


def test_a_level_that_is_come_to_now_and_then_stays():
    vigil = steady(host_heap=20 << 20)
    for level in (5, 20, 5):
        vigil.rose({"host.heap": level << 20})

    vigil.lower()

    assert not vigil.rose({"host.heap": 20 << 20})


def test_what_is_not_judged_may_rise():
    assert not steady(host_rss=1).rose({"host.rss": 1 << 40, "unheard.of": 1 << 40})


def test_garbage_that_was_looked_into_is_usual_from_then_on():
    vigil = steady(python_blocks=50_000)
    assert vigil.rose({"python.blocks": 60_000})

    vigil.allow({"python.blocks": 60_000})

    assert not vigil.rose({"python.blocks": 61_000})
    assert vigil.rose({"python.blocks": 66_000})


@given(st.integers(LEAST_BYTES, 1 << 50))
def test_however_far_the_heap_climbs_the_watch_begins_again_a_few_times_only(most: int):
    vigil, level, series, times = steady(host_heap=0), 0, Series(8), 0
    while level <= most:
        level = max(level + 1, round(level * 1.01), LEAST_BYTES // 2)
        if vigil.rose({"host.heap": level}):
            times += 1
            series.append(times, 0.0, {"host.heap": level})
            vigil.begin([series])
    assert times <= (most // LEAST_BYTES).bit_length() + 1


def test_growth_is_recurring_once_it_was_suspected_at_all_of_the_last_looks():
    line = fit(range(10), range(10))
    assert line is not None
    nodes, heap = (Reading(name, [], [], line) for name in ("graph.nodes", "host.heap"))
    recurring = Recurring(3)

    answers = [recurring.note(found) for found in ([nodes], [nodes, heap], [heap, nodes], [nodes])]

    assert answers == [[], [], [nodes], []]


LATE_LEAK = """
import sys
from leakcheck.runtime.sentinel import Sentinel

def main(let_go):
    kept = []
    with Sentinel(steps=300) as sentinel:
        for step in range(1800):
            if step == 150:
                beside = [bytearray(8000) for _ in range(let_go)]
            if step == 320:  # as garbage is that waited for the collector
                del beside
            if step > 700:
                kept.append(bytearray(8000))
            if step == 700:
                assert sentinel.report().verdict == "steady"
            sentinel.step()
    report = sentinel.report()

    told = [(each.resource, each.steps, round(each.total)) for each in report.trends]
    assert report.verdict == "growing", (report.reason, sentinel.state, told)
    assert str(report.suspects[0].holder).startswith("local `kept`")

main(int(sys.argv[1]))
"""


@pytest.mark.parametrize("let_go", [0, 250, 2500])
def test_a_leak_that_begins_after_the_loop_was_found_steady_is_found(let_go: int, forked):
    # in a process of its own: of what other tests left some goes meanwhile, as much as it gains
    command = [forked.python, "-c", LATE_LEAK, str(let_go)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
