from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from leakcheck.runtime.judgement.trend import (
    FALSE_ALARM_RATE,
    Floor,
    even_rate,
    fit,
    floor_rise,
    grows,
    jumps_apart,
    level_of_look,
    rank_p,
    settled_after,
    stair_rates,
    stood_as_high,
    usual_gain,
)

STEPS = list(range(10, 1010))
ANY = Floor(per_step=0.0, total=0.0)


def grown(values: list[float], floor: Floor = ANY) -> bool:
    line = fit(range(10, 10 + len(values)), values)
    assert line is not None
    return grows(line, floor, level_of_look(1))


def noise(seed: int, width: float, count: int = 1000) -> list[float]:
    source = random.Random(seed)
    return [source.gauss(0.0, width) for _ in range(count)]


def test_a_straight_climb_grows_at_its_exact_rate():
    line = fit([10, 18, 26, 34, 42], [110, 198, 286, 374, 462])

    assert line is not None
    assert (line.per_step, line.low, line.high, line.total) == (11.0, 11.0, 11.0, 352.0)
    assert grows(line, ANY, level_of_look(1))


def test_a_climb_under_noise_is_found_within_two_percent():
    values = [5.0 * step + error for step, error in zip(STEPS, noise(2, 50.0), strict=True)]

    line = fit(STEPS, values)

    assert line is not None
    assert line.per_step == pytest.approx(5.0, rel=0.02)
    assert line.low <= 5.0 <= line.high
    assert grows(line, ANY, level_of_look(1))


def test_a_spike_is_not_a_leak():
    assert not grown([100.0] * 500 + [900.0] * 20 + [100.0] * 480)


def test_one_jump_is_not_a_leak():
    assert not grown([100.0] * 500 + [900.0] * 500)


def test_a_staircase_of_two_steps_is_not_a_leak():
    assert not grown([100.0] * 330 + [900.0] * 330 + [1700.0] * 340)


def test_a_staircase_that_goes_on_is_a_leak():
    assert grown([float(step // 50 * 800) for step in range(1000)])


def test_a_buffer_that_filled_up_is_not_a_leak():
    assert not grown([float(min(step, 600)) for step in range(1000)])


def test_a_sawtooth_is_not_a_leak():
    assert not grown([float(step % 250) for step in range(1000)])


def test_a_sawtooth_on_a_climb_is_a_leak():
    assert grown([step % 50 + 3.0 * step for step in range(1000)])


def test_the_lowest_values_rise_beside_what_each_epoch_gives_back():
    assert floor_rise(range(1000), [step % 100 * 3.0 + step for step in range(1000)]) == 800.0


@pytest.mark.parametrize(
    "values",
    [
        [float(step % 250) for step in range(1000)],  # all is given back
        [float(step) for step in range(1000)],  # nothing is: that is judged by its line
        [step % 100 * 30.0 + step for step in range(1000)],  # more than the floor rose
        [step % 100 * 3.0 + min(step, 400) for step in range(1000)],  # it was full
        [step % 100 * 3.0 + (step > 400) * 900 for step in range(1000)],  # one jump
    ],
)
def test_they_do_not_where_nothing_stays_or_it_may_be_of_what_goes(values):
    assert floor_rise(range(1000), values) == 0.0


@pytest.mark.parametrize(
    ("before", "level", "stood"),
    [
        ([step % 100 for step in range(250)], 90, True),
        ([step % 100 for step in range(250)], 105, True),  # peaks differ
        ([step % 100 for step in range(250)], 120, False),  # it was never so high
        ([step % 100 for step in range(150)], 90, False),  # it came down once
        ([*range(250)], 90, False),  # never
        ([], 90, False),
    ],
)
def test_what_came_down_again_and_again_stood_as_high(before, level, stood):
    assert stood_as_high(before, level) is stood


def test_they_do_not_where_nothing_was_read():
    assert floor_rise([], []) == floor_rise([10], [3.0]) == 0.0


def test_growth_below_the_floor_is_not_reported():
    values = [2.0 * step for step in range(1000)]

    assert grown(values)
    assert not grown(values, Floor(per_step=3.0, total=0.0))
    assert not grown(values, Floor(per_step=0.0, total=5000.0))


def test_shrinking_is_not_a_leak():
    assert not grown([1000.0 - step for step in range(1000)])


@given(st.integers(min_value=5, max_value=300), st.integers(min_value=-1000, max_value=1000))
def test_a_constant_never_grows(count, level):
    assert not grown([float(level)] * count)


@settings(max_examples=50)
@given(
    st.integers(min_value=1, max_value=10**6),
    st.integers(min_value=5, max_value=400),
    st.integers(min_value=1, max_value=50),
)
def test_an_exact_counter_that_gains_on_every_step_grows(per_step, count, every):
    steps = [10 + every * number for number in range(count)]

    line = fit(steps, [per_step * step for step in steps])

    assert line is not None
    assert line.per_step == pytest.approx(per_step)
    assert grows(line, ANY, level_of_look(20))


def test_noise_alone_raises_fewer_alarms_than_the_rate_allows():
    alarms = sum(grown(noise(seed, 100.0, count=120)) for seed in range(1000))

    assert alarms <= 1000 * level_of_look(1)


def test_all_looks_together_spend_the_false_alarm_rate():
    spent = sum(level_of_look(look) for look in range(1, 10_000))

    assert spent <= FALSE_ALARM_RATE
    assert spent == pytest.approx(FALSE_ALARM_RATE, rel=1e-3)


def test_the_rank_test_is_exact_for_few_points():
    assert rank_p([1, 2, 3, 4, 5]) == pytest.approx(1 / 120)
    assert rank_p([5, 4, 3, 2, 1]) == 1.0


def test_the_first_quarter_and_at_least_the_fewest_steps_are_warm_up():
    assert settled_after([1, 2, 30], fewest=10) == 10
    assert settled_after(list(range(1000)), fewest=10) == 249


def test_the_slope_agrees_with_scipy():
    values = [4.8 * step + error for step, error in zip(STEPS, noise(7, 200.0), strict=True)]

    line = fit(STEPS, values)

    assert line is not None
    assert line.per_step == pytest.approx(stats.theilslopes(values, STEPS).slope, rel=0.01)


def test_what_is_gained_on_every_step_alike_is_told_whatever_comes_at_once():
    values = [576 * step + 1100 * (step >= 37) - 90_000 * (step >= 43) for step in range(60)]

    assert even_rate(range(60), values) == 576


def test_the_usual_gain_is_that_between_two_readings_whatever_a_collection_takes():
    assert usual_gain([10, 20, 20, 30, 50], [100, 130, -900, -870, -810]) == 3
    assert usual_gain([10, 10], [1, 5]) == usual_gain([], []) == 0


def test_steps_that_differ_have_no_even_rate():
    assert even_rate(range(60), [5760 * (step // 10) for step in range(60)]) is None
    assert even_rate(range(60), [0] * 60) is None
    assert even_rate(range(3), [0, 5, 10]) is None
    epochs = [180 * (step // 20) + 19 * (step % 20) for step in range(100)]  # half of it is kept
    assert even_rate(range(100), epochs) is None


@given(st.integers(3, 90), st.integers(0, 89), st.integers(1, 100))
def test_readings_leave_little_room_for_the_rate_of_equal_stairs(apart, shift, rise):
    steps = [10, 15, 20, 25, 30, 36, 42, 50, 67, 89, 118, 150, 180, 240, 320, 427, 477, 527]
    values = [7 + rise * ((step + shift) // apart) for step in steps]

    least, greatest = stair_rates(steps, values, rise) or (0, 0)

    assert least <= rise / apart <= greatest < 1.3 * least


def test_stairs_at_unequal_distances_have_none():
    steps = list(range(0, 200, 10))

    assert stair_rates(steps, [0] * 10 + list(range(10)), 1) is None
    assert stair_rates(steps, [10 * (step > 50) for step in steps], 10) is None
    assert stair_rates(steps, [-step for step in steps], 10) is None


def test_what_comes_at_the_end_of_each_epoch_rises_in_jumps():
    steps = list(range(0, 250, 10))
    epochs = [800 * (step // 50) + step % 3 for step in steps]

    assert jumps_apart(steps, epochs) == 60.0  # of 240 steps, four


@given(st.lists(st.integers(-1000, 1000), min_size=8, max_size=60))
def test_jumps_make_all_of_a_rise_or_are_none(changes):
    values = [sum(changes[:end]) for end in range(len(changes) + 1)]

    apart = jumps_apart(range(len(values)), values)

    assert apart == 0 or (apart >= 2 and values[-1] > values[0])


def test_what_rises_at_each_reading_or_not_at_all_has_no_jumps():
    steps = list(range(0, 200, 10))

    assert jumps_apart(steps, [3 * step for step in steps]) == 0
    assert jumps_apart(steps, [7] * len(steps)) == 0
    assert jumps_apart([], []) == 0
