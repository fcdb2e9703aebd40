from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakcheck.memory.growth import excess_grows, grows, verdict

KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    "series",
    [
        [7 * MIB] * 20,
        [0, 5, 9, *[10 * MIB] * 17],  # warm-up
        [MIB] * 10 + [2 * MIB] * 10,  # a staircase with one step
        [MIB] * 10 + [90 * MIB] + [MIB] * 9,  # a spike
        [MIB, 2 * MIB] * 10,  # two valleys a step
        [20 * MIB - n * MIB for n in range(20)],
        [n * MIB for n in range(8)] + [8 * MIB] * 12,  # a cache that fills
        [1000 + n for n in range(20)],  # below a block a step
        [5, 3, 8, 1, 9, 2, 7, 4, 6, 5, 3, 8],
    ],
)
def test_what_stays_or_stops_is_not_a_leak(series: list[int]):
    assert grows(series).grows is False


@pytest.mark.parametrize(
    ("series", "per_step"),
    [
        ([512 * n for n in range(6)], 512),
        ([0, 40 * MIB, *[50 * MIB + 4 * KIB * n for n in range(20)]], 4 * KIB),
        ([MIB * n + (n % 3) * 100 * KIB for n in range(30)], MIB),
        ([MIB * (n // 2) for n in range(40)], MIB / 2),
    ],
)
def test_what_rises_step_after_step_grows(series: list[int], per_step: float):
    growth = grows(series)

    assert growth.grows is True
    assert growth.per_step == pytest.approx(per_step, rel=0.05)


@pytest.mark.parametrize(
    "series", [[], [1], [1, 2, 3, 4, 5], [0, 0, 1000, 3000, 9000, 11000, 20000]]
)
def test_a_few_steps_are_not_judged(series: list[int]):
    assert grows(series).grows is None


@settings(deadline=None)
@given(st.integers(0, 1 << 40), st.integers(512, 1 << 24), st.integers(6, 60))
def test_an_exact_leak_is_measured_exactly(start: int, per_step: int, steps: int):
    growth = grows([start + per_step * n for n in range(steps)])

    assert (growth.grows, growth.per_step) == (True, per_step)


@settings(deadline=None)
@given(st.lists(st.integers(0, 1 << 30), min_size=6, max_size=40))
def test_a_series_and_its_reverse_do_not_both_grow(series: list[int]):
    settled = series[2:]
    mirrored = [*series[:2], *reversed(settled)]

    assert not (grows(series).grows and grows(mirrored).grows)


def test_a_longer_input_raises_reserved_once_and_is_no_fragmentation():
    reserved = [100 * MIB] * 6 + [300 * MIB] * 6
    peaks = [90 * MIB] * 6 + [290 * MIB] + [90 * MIB] * 5

    assert excess_grows(reserved, peaks).grows is False


def test_one_jump_beyond_the_live_bytes_is_no_fragmentation_and_two_are():
    once = [100 * MIB] * 8 + [300 * MIB] * 4
    twice = [100 * MIB] * 5 + [200 * MIB] * 4 + [300 * MIB] * 3

    found = [excess_grows(each, [90 * MIB] * 12) for each in (once, twice)]

    assert [(each.grows, each.reason) for each in found] == [
        (False, "reserved rose once"),
        (True, "reserved outgrows live"),
    ]


def test_reserved_that_outgrows_flat_live_bytes_is_fragmentation():
    reserved = [1000 * MIB + 60 * MIB * n for n in range(12)]
    live, excess = grows([5 * MIB] * 12), excess_grows(reserved, [900 * MIB] * 12)

    assert verdict(live, excess) == "fragmentation"


def test_a_leak_that_drags_reserved_along_is_a_leak():
    series = [60 * MIB * n for n in range(12)]

    assert verdict(grows(series), excess_grows(series, series)) == "leak"


def test_a_thousand_steps_are_judged_as_twelve_are():
    assert grows([512 * n for n in range(5000)]).per_step == 512
