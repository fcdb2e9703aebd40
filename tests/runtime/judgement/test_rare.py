"""What rises once in hundreds of steps is suspected, waited for, and called growth or not."""

from __future__ import annotations

from dataclasses import replace

from leakcheck.runtime.judgement import rare
from leakcheck.runtime.judgement.stairs import Stairs
from leakcheck.runtime.readings.series import Series

MIB = 1 << 20


def quick(jumps: dict[int, int], until: int, name: str = "host.heap", gap: range = range(0)):
    """Return a series with a reading at each step that is not in the gap."""
    series, level = Series(4096), 100 * MIB
    for step in range(1, until + 1):
        level += jumps.get(step, 0)
        if step not in gap:
            series.append(step, step / 100, {name: level})
    return series


def every(apart: int, count: int, rise: int = MIB) -> dict[int, int]:
    return {apart * n: rise for n in range(1, count + 1)}


def test_two_jumps_above_the_tolerance_are_suspected_at_their_rate():
    (found,) = rare.climbing(quick(every(400, 2), 850), after=10, tolerance_bytes=1024)

    assert found.stairs == Stairs(MIB, 400, first=400, last=800, count=2, spread=0)
    assert (found.line.per_step, found.line.low, found.line.high) == (MIB / 400,) * 3


def test_what_is_little_or_near_or_not_in_use_is_not():
    assert rare.climbing(quick(every(400, 2, 100_000), 850), 10, 1024) == []
    assert rare.climbing(quick(every(40, 20), 850), 10, 1024) == []
    assert rare.climbing(quick(every(400, 2), 850, "host.rss-heap"), 10, 1024) == []
    assert rare.climbing(quick(every(400, 2), 850, "host.rss"), 10, 1024) == []
    assert rare.climbing(quick(every(400, 2), 850), after=410, tolerance_bytes=1024) == []


def test_memory_of_a_device_is_seen_too():
    (found,) = rare.climbing(quick(every(400, 3), 1300, "cuda:0.allocated"), 10, 1024)

    assert found.resource == "cuda:0.allocated"


def test_a_second_jump_is_waited_for_as_long_as_the_first_one_took():
    jumps = {500: MIB}

    assert rare.is_due(quick(jumps, 1000), origin=0, after=10, tolerance_bytes=1024)
    assert not rare.is_due(quick(jumps, 1200), origin=0, after=10, tolerance_bytes=1024)
    assert not rare.is_due(quick({500: 100_000}, 1000), 0, 10, 1024)
    assert not rare.is_due(quick({500: MIB, 520: -MIB}, 1000), 0, 10, 1024)
    assert not rare.is_due(quick({}, 1000), 0, 10, 1024)


def test_a_run_that_ends_is_in_doubt_after_five_jumps():
    few = rare.climbing(quick(every(300, 4), 1250), 10, 1024)
    more = rare.climbing(quick(every(300, 5), 1550), 10, 1024)

    assert rare.in_doubt(few, few) == []
    assert rare.in_doubt(few, more) == more
    assert rare.in_doubt([replace(few[0], stairs=None)], []) == [replace(few[0], stairs=None)]


def test_eight_jumps_are_certain_and_one_that_does_not_come_ends_it():
    readings = quick(every(300, 12), 3700)
    established = rare.climbing(quick(every(300, 3), 1000), 10, 1024)

    def outcome(jumps: int, step: int) -> str:
        return rare.outcome(established, quick(every(300, jumps), step), 1000, step)

    assert outcome(7, 2200) == "rises"
    assert outcome(8, 2450) == ""
    assert outcome(5, 2100) == "rises"
    assert outcome(5, 2200) == "stopped"
    assert rare.outcome([replace(established[0], stairs=None)], readings, 0, 3700) == ""


def test_jumps_in_a_window_which_takes_no_readings_count():
    established = rare.climbing(quick(every(300, 3), 1000), 10, 1024)
    readings = quick(every(300, 8), 2450, gap=range(1100, 1710))

    assert rare.outcome(established, readings, 1710, 2450) == ""
    assert rare.outcome(established, readings, 1710, 2000) == ""
