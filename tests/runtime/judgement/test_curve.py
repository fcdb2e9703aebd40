"""The length of a container tells whether it was emptied, or grew evenly all the while."""

from __future__ import annotations

import pytest

from leakcheck.runtime.judgement.curve import LengthCurve


def curve_of(length, steps: int = 3000, every: int = 3) -> LengthCurve:
    curve = LengthCurve()
    for step in range(100, 100 + steps, every):
        curve.read(step, length(step))
    return curve


@pytest.mark.parametrize("rate", [1, 4])
def test_what_gains_the_same_on_every_step_rises_evenly(rate):
    curve = curve_of(lambda step: rate * step)

    assert curve.rose_evenly(2900)
    assert not curve.rose_evenly(5000)  # so many were not seen
    assert not curve.came_down


def test_what_comes_every_hundred_steps_does_too():
    assert curve_of(lambda step: step // 100).rose_evenly(2900)


@pytest.mark.parametrize(
    ("length", "came_down"),
    [
        (lambda step: step % 1500, True),  # emptied again and again
        (lambda step: min(step, 2000), False),  # full
        (lambda step: round(step**0.5), False),  # ever less, as a memo
        (lambda step: None if step > 3000 else step, False),  # not found again
    ],
    ids=["emptied", "full", "memo", "lost"],
)
def test_what_is_emptied_full_slow_or_lost_does_not(length, came_down):
    curve = curve_of(length)

    assert not curve.rose_evenly(1000)
    assert curve.came_down is came_down


@pytest.mark.parametrize(
    ("length", "stands"),
    [
        (lambda step: min(step, 900), True),  # a window that is full
        (lambda step: 300 + step % 400, True),  # halved at its limit
        (lambda step: step - 15 * (step // 100), False),  # some of it is taken now and then
        (lambda step: step // 400, False),  # seldom: the next may be on its way
        (lambda step: min(step, 2900), False),  # full, but for how long?
        (lambda step: None if step > 3000 else min(step, 900), False),  # not found again
    ],
    ids=["window", "halved", "taken from", "seldom", "just now", "lost"],
)
def test_what_was_longest_long_ago_stands(length, stands):
    assert curve_of(length).stands is stands


@pytest.mark.parametrize(("ends", "stands"), [(165, False), (190, True)])
def test_what_an_epoch_adds_at_once_is_due_again_after_as_long(ends, stands):
    curve = curve_of(lambda step: 20 * (min(step, 141) // 20), ends - 100, 1)

    assert curve.stands is stands


def test_nothing_is_said_of_a_container_that_was_never_read():
    assert not LengthCurve().rose_evenly(0)
    assert not LengthCurve().came_down
    assert not LengthCurve().stands


@pytest.mark.parametrize(
    ("length", "rests"),
    [
        (lambda step: step, False),
        (lambda step: min(step, 2990), True),  # it stopped just now
        (lambda step: step // 100, False),  # one is due
        (lambda step: min(step // 100, 20), True),
        (lambda step: step // 400, False),  # too few, to know how far they are apart
        (lambda step: None if step > 3000 else min(step, 900), False),  # not found again
    ],
    ids=["goes on", "stopped", "seldom", "seldom, stopped", "too few", "lost"],
)
def test_what_gained_often_and_does_no_more_rests(length, rests):
    assert curve_of(length).rests is rests


@pytest.mark.parametrize(("apart", "third_addition"), [(1, 202), (3, 207)])
def test_what_was_added_in_one_turn_of_a_loop_must_go_on_in_the_next(apart, third_addition):
    curve = LengthCurve()
    rests = []
    for step in range(300):
        if step == 200:
            curve.turned()
        curve.read(step, step // apart)
        rests += [step] if curve.rests else []

    assert rests == [*range(200, third_addition)]


def test_a_loop_that_turns_all_the_time_puts_it_off_for_a_few_additions_at_most():
    curve = LengthCurve()
    rests = []
    for step in range(300):
        if step % 5 == 0:
            curve.turned()
        curve.read(step, step // 3)
        rests.append(curve.rests)

    assert all(not all(rests[step : step + 10]) for step in range(290))
