"""Jumps that are alike and equally far apart are growth that comes rarely."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.runtime.judgement.stairs import Stairs, stairs

MIB = 1 << 20


def levels(jumps: dict[int, int], until: int) -> tuple[list[int], list[int]]:
    """Return what is read at each step, `jumps` being gained at some."""
    steps, values, level = list(range(1, until + 1)), [], 100 * MIB
    for step in steps:
        level += jumps.get(step, 0)
        values.append(level)
    return steps, values


def test_what_each_epoch_keeps_is_known_with_its_height_and_distance():
    found = stairs(*levels(dict.fromkeys(range(400, 2000, 400), MIB), 1700))

    assert found == Stairs(MIB, 400, first=400, last=1600, count=4, spread=0)
    assert found.per_step == pytest.approx(MIB / 400)
    assert found.is_regular


def test_of_two_jumps_nobody_knows_when_the_next_one_comes():
    found = stairs(*levels({300: MIB, 600: MIB}, 700))

    assert found == Stairs(MIB, 300, first=300, last=600, count=2, spread=0)
    assert not found.is_regular


@pytest.mark.parametrize(
    "jumps",
    [
        {},
        {300: MIB},  # a first evaluation
        {300: MIB, 600: 2 * MIB, 900: 4 * MIB},  # a table that doubles
        {300: MIB, 600: -MIB, 900: MIB},  # a saw
        {300: MIB, 310: MIB, 900: MIB, 905: MIB},  # no distance
        dict.fromkeys(range(1, 1000), 1000),  # on each step
        {300: MIB, 600: MIB} | dict.fromkeys(range(601, 1000), 10_000),  # more beside
        {300: -MIB, 600: -MIB},
    ],
)
def test_what_comes_once_or_otherwise_is_none(jumps):
    assert stairs(*levels(jumps, 1000)) is None


def test_a_larger_jump_before_is_passed_over():
    found = stairs(*levels({20: 50 * MIB, 300: MIB, 600: MIB, 900: MIB}, 1000))

    assert found == Stairs(MIB, 300, first=300, last=900, count=3, spread=0)


def test_the_first_jump_may_be_somewhat_larger():
    found = stairs(*levels({300: 3 * MIB // 2, 600: MIB, 900: MIB}, 1000))

    assert found == Stairs(MIB, 300, first=300, last=900, count=3, spread=0)


def test_noise_is_no_stairs():
    source = random.Random(0)
    for _ in range(50):
        values = [round(source.gauss(0, 100_000)) for _ in range(600)]
        assert stairs(range(600), values) is None


@given(
    apart=st.integers(73, 2000),
    rise=st.integers(1 << 16, 1 << 30),
    count=st.integers(2, 8),
    stride=st.integers(1, 8),
    later=st.floats(0, 0.9),
)
def test_stairs_are_found_whatever_their_size_and_one_is_ready_before_the_next(
    apart, rise, count, stride, later
):
    steps = range(1, round(apart * (count + later)) + 2, stride)
    values = [rise * (step // apart) for step in steps]
    seen = values[-1] // rise
    if seen < 2:
        return

    found = stairs(steps, values)

    assert found is not None
    assert (found.rise, found.count) == (rise, seen)
    assert abs(found.apart - apart) <= stride
    ready = found.ready_after(steps[-1])
    jumps_between = sum(steps[-1] < found.last + n * found.apart <= ready for n in range(9))
    due = found.last + found.apart
    assert jumps_between == 1 or due <= steps[-1] + found.early
    assert (ready + found.early - found.last) % found.apart == 0
    assert found.ready_after(steps[-1], least=5 * apart) >= steps[-1] + 5 * apart
