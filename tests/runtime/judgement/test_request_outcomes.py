from __future__ import annotations

import random

import pytest

from leakcheck.runtime.judgement.request_outcomes import ABORTED, FINISHED, goes_on, kept_by_outcome
from leakcheck.runtime.readings.series import Series


def series(aborted, finished_leaves=0, aborted_leaves=1, noise=0):
    """Return how many requests ended, and the entries they left, request by request."""
    found, chances = Series(4096), random.Random(1)
    finished = lost = 0
    for step, aborts in enumerate(aborted, 1):
        finished, lost = finished + (not aborts), lost + aborts
        left = finished_leaves * finished + aborted_leaves * lost + chances.randint(0, noise)
        found.append(step, 0.0, {FINISHED: finished, ABORTED: lost, "states": left})
    return found


CHANCES = random.Random(0)
ONE_IN_FIVE = [CHANCES.random() < 0.2 for _ in range(1000)]


def test_what_only_aborted_requests_leave_is_told_apart():
    assert kept_by_outcome(series(ONE_IN_FIVE), "states") == pytest.approx((0, 1), abs=1e-6)


def test_so_is_what_each_leaves_of_its_own():
    left = series(ONE_IN_FIVE, finished_leaves=2, aborted_leaves=5, noise=3)

    assert kept_by_outcome(left, "states") == pytest.approx((2, 5), abs=0.3)


def test_what_both_leave_alike_is_not_told_apart():
    left = series(ONE_IN_FIVE, finished_leaves=1, aborted_leaves=1, noise=3)

    assert kept_by_outcome(left, "states") is None


def test_where_no_request_is_aborted_nothing_can_be_told():
    assert kept_by_outcome(series([False] * 1000, finished_leaves=1), "states") is None


def test_few_requests_tell_nothing():
    assert kept_by_outcome(series(ONE_IN_FIVE[:20]), "states") is None


def test_a_container_that_gains_goes_on():
    assert goes_on(series(ONE_IN_FIVE), "states")


def test_one_that_has_what_is_in_flight_does_not():
    assert not goes_on(series(ONE_IN_FIVE, aborted_leaves=0, noise=5), "states")
