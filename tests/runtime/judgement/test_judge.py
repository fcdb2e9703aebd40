"""A heap that gains the same on every step need not be watched for as long as others."""

from __future__ import annotations

import random

import pytest

from leakcheck.runtime.judgement.judge import (
    counters_that_rise,
    evenly,
    grown_children,
    read,
    read_known,
    rose_all_along,
    still_climbing,
    suspicious,
)
from leakcheck.runtime.readings.series import Series

TOLERANCE_BYTES = 1024


def heap_of(level, steps: int = 50, resource: str = "host.heap", every: int = 1) -> Series:
    series = Series()
    for step in range(1, steps + 1):
        readings = {resource: round(level(step))} if step % every == 0 else {}
        series.append(step, step / 100, {"host.rss": 10**8} | readings)
    return series


@pytest.mark.parametrize(
    ("level", "found"),
    [
        (lambda step: 10**8 + 6000 * step, True),
        (lambda step: 10**8 + 6000 * step + step % 3 * 400, True),
        (lambda step: 10**8 + 2000 * step, False),  # near the tolerance: the usual way
        (lambda step: 10**8 + 6000 * step + (step > 30) * 90_000, False),
        (lambda step: 10**8 + 6000 * min(step, 40), False),
        (lambda step: 10**8 + random.Random(step).uniform(0, 10**6), False),
        (lambda step: 10**8, False),
    ],
    ids=["even", "nearly even", "small", "jump", "plateau", "noise", "flat"],
)
def test_only_a_large_and_even_climb_is_looked_at_sooner(level, found):
    readings = evenly(heap_of(level), TOLERANCE_BYTES)

    assert [reading.resource for reading in readings] == ["host.heap"] * found


def test_too_few_steps_are_not_looked_at():
    assert evenly(heap_of(lambda step: 10**8 + 6000 * step, steps=35), TOLERANCE_BYTES) == []


def outside(jump_bytes: int, wobble_bytes: int = 0) -> Series:
    def level(step: int) -> float:
        noise = random.Random(step).uniform(-wobble_bytes, wobble_bytes)
        return 10**8 + 32_768 * step - (step > 150) * jump_bytes + noise

    return heap_of(level, steps=180, resource="host.rss-heap", every=8)


def test_memory_mapped_evenly_is_suspected_in_spite_of_what_malloc_gave_back_once():
    assert [one.resource for one in suspicious([outside(409_600)], 1)] == ["host.rss-heap"]


def test_memory_that_comes_unevenly_must_be_more():
    assert suspicious([outside(0, wobble_bytes=200_000)], 1) == []


def test_a_line_with_one_jump_is_even_for_all_other_steps():
    reading = read(outside(409_600), "host.rss-heap")

    assert reading is not None
    assert reading.even
    assert not reading.line.straight


@pytest.mark.parametrize(
    ("begins", "found"), [(700, True), (850, True), (980, False), (1001, False)]
)
def test_growth_that_begins_late_is_suspected_before_a_loop_is_called_steady(begins, found):
    late = heap_of(lambda step: 10**8 + 2000 * max(0, step - begins), steps=1010)

    assert [one.resource for one in suspicious([late], 20)] == ["host.heap"] * found


def test_noise_is_not_suspected_of_late_growth():
    def noise(step: int) -> float:
        return 10**8 + random.Random(step).uniform(0, 50_000)

    assert [suspicious([heap_of(noise, steps=steps)], 10) for steps in (400, 700, 1010)] == [[]] * 3


def counted(counts: dict[int, int], resource: str = "tensors") -> Series:
    series = Series()
    for step, count in counts.items():
        series.append(step, step / 100, {resource: count})
    return series


RARE = {10: 5, 42: 6, 118: 8, 240: 9, 320: 12, 427: 15, 569: 19, 759: 27, 1010: 36}


def test_tensors_that_come_at_random_are_in_the_way_of_a_steady_verdict():
    assert [one.resource for one in still_climbing([counted(RARE)], 1024.0)] == ["tensors"]


@pytest.mark.parametrize(
    "change", [{1010: 27}, {1010: 26}, {1010: 400}, {569: 27, 759: 28, 1010: 29}]
)
def test_those_that_stopped_fell_or_jumped_are_not(change):
    assert still_climbing([counted(RARE | change)], 1024.0) == []


EVERY_20_STEPS = {step: 8 + step // 20 for step in range(10, 231, 20)}


@pytest.mark.parametrize("resource", ["descriptors", "threads", "processes", "hooks"])
@pytest.mark.parametrize(
    ("counts", "climbs"),
    [
        (EVERY_20_STEPS, True),
        (EVERY_20_STEPS | {210: 8}, False),  # they came and went
        ({step: min(count, 12) for step, count in EVERY_20_STEPS.items()}, False),  # a pool
        (dict.fromkeys(EVERY_20_STEPS, 8), False),
        ({step: 8 + step // 60 for step in EVERY_20_STEPS}, False),  # too few to say
    ],
)
def test_what_an_evaluation_leaves_open_each_time_is_in_the_way_of_it_too(resource, counts, climbs):
    found = still_climbing([counted(counts, resource)], 1024.0)

    assert [one.resource for one in found] == [resource] * climbs


def test_those_that_stay_beside_what_each_epoch_gives_back_are():
    beside = counted({step: step + 2 * (step % 100) for step in range(0, 1000, 30)})
    alone = counted({step: 2 * (step % 100) for step in range(0, 1000, 30)})

    assert [one.resource for one in still_climbing([beside], 1024.0)] == ["tensors"]
    assert still_climbing([alone], 1024.0) == []


def test_a_count_that_stopped_before_the_last_looks_climbs_no_more():
    climbed = {step: step for step in range(0, 1650, 50)}

    assert [one.resource for one in still_climbing([counted(climbed)], 1024.0)] == ["tensors"]
    assert still_climbing([counted(climbed | {1790: 1706, 1950: 1707})], 1024.0) == []


def test_what_is_counted_too_seldom_to_have_settled_is_told_by_its_last_points():
    seldom = counted({10: 5, 15: 5, 20: 5, 30: 5, 42: 5, 2000: 5, 8000: 5})
    assert read(seldom, "tensors") is None

    reading = read_known(seldom, "tensors")

    assert reading is not None
    assert (reading.steps, reading.line.per_step) == ([20, 30, 42, 2000, 8000], 0.0)


@pytest.mark.parametrize(
    ("values", "short", "rises"),
    [
        ([2, 2, 2, 600, 4600, 9000, 15000], False, True),  # torch was imported first
        ([2, 10, 12, 40, 41], True, True),
        ([2, 10, 12, 40, 41], False, False),  # not evenly
        ([90, 20, 50, 80], False, False),  # of an epoch, no higher than before
        ([2, 2, 9, 15, 15], True, False),
        ([5, 6, 7, 8], False, False),  # too little
    ],
)
def test_counts_that_rise_evenly_to_the_end_are_no_steady_loop(values, short, rises):
    series = counted({10 * (index + 1): value for index, value in enumerate(values)})

    assert counters_that_rise(series, short=short) == ["tensors"] * rises


@pytest.mark.parametrize(
    ("level", "doubted"),
    [
        (lambda step: 10**8 + 130_000 * step, True),
        (lambda step: 10**8 + 130_000 * min(step, 300), False),
        (lambda step: 10**8 + 9_000 * step, False),  # 9 MB of 1,000 steps
        (lambda step: 10**8 + 130_000 * (step % 350), False),  # workers that begin anew
    ],
    ids=["evenly", "filled", "little", "anew"],
)
def test_workers_that_grow_all_along_are_a_doubt(level, doubted):
    series = heap_of(level, steps=1000, resource="host.children", every=50)

    assert (grown_children(series, TOLERANCE_BYTES) is not None) is doubted


@pytest.mark.parametrize(
    ("level", "rose"),
    [
        (lambda step: 3 * step, ["tensors"]),
        (lambda step: step % 200, []),  # emptied now and then
        (lambda step: min(step, 600), []),  # full
        (lambda step: 40, []),
    ],
    ids=["all along", "emptied", "full", "level"],
)
def test_a_count_that_rose_at_every_look_was_never_emptied(level, rose):
    slow = Series(256)
    for step in range(10, 900, 55):
        slow.append(step, float(step), {"tensors": level(step)})

    assert rose_all_along(slow, after=10) == rose


def test_a_few_looks_are_not_enough_to_say_that_it_rose_all_along():
    slow = Series(256)
    for step in range(10, 300, 55):
        slow.append(step, float(step), {"tensors": step})

    assert rose_all_along(slow, after=10) == []
