from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.runtime.readings.series import GARBAGE, Series


def filled(count: int, capacity: int = 64) -> Series:
    series = Series(capacity)
    for step in range(1, count + 1):
        if step % series.stride == 0:
            series.append(step, step / 10, {"host.rss": 1000 + step})
    return series


def test_a_reading_comes_back_as_it_went_in():
    series = Series()

    series.append(3, 0.25, {"host.rss": 5, "tensors": 7})

    assert list(series.rows()) == [(3, 0.25, {"host.rss": 5, "tensors": 7})]
    assert series.newest() == {"host.rss": 5, "tensors": 7}


def test_a_resource_that_appears_late_has_a_gap_before():
    series = Series()

    series.append(1, 0.1, {"host.rss": 5})
    series.append(2, 0.2, {"cuda:0.allocated": 512})

    assert series.column("host.rss") == ([1], [5])
    assert series.column("cuda:0.allocated") == ([2], [512])


def test_readings_after_a_collection_compare_only_with_each_other():
    series = Series()
    series.append(1, 0.1, {"python.blocks": 105})
    series.append(2, 0.2, {"python.blocks": 101, GARBAGE: 400})
    series.append(3, 0.3, {"python.blocks": 107})
    collected = Series()
    collected.append(2, 0.2, {"python.blocks": 101, GARBAGE: 400})

    assert series.comparable("python.blocks") == ([1, 3], [105, 107])
    assert collected.comparable("python.blocks") == ([2], [101])


def test_an_unknown_resource_has_no_points():
    assert Series().column("host.rss") == ([], [])


@given(st.integers(min_value=1, max_value=5000))
def test_any_number_of_steps_fits_and_stays_in_order(count):
    series = filled(count)

    steps, values = series.column("host.rss")

    assert len(series) <= 64
    assert steps == sorted(set(steps))
    assert values == [1000 + step for step in steps]
    assert count - steps[-1] < series.stride


def test_a_million_steps_take_no_more_storage_than_a_hundred():
    short, long = filled(100), filled(1_000_000)

    sizes = [len(series._columns["host.rss"]) for series in (short, long)]

    assert sizes == [64, 64]


def test_seconds_per_step_is_the_mean_over_all_readings():
    assert filled(1).seconds_per_step() is None
    assert filled(50).seconds_per_step() == pytest.approx(0.1)


def test_a_cleared_series_is_empty_and_usable():
    series = filled(1000)

    series.clear()
    series.append(1, 0.0, {"host.rss": 1})

    assert (len(series), series.stride, series.last_step) == (1, 1, 1)
