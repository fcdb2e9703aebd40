from __future__ import annotations

from leakcheck.runtime.clock.in_flight import HELD_FOR, LEARNT_FROM, STARVED, QuietMoments


def looked_at(moments: QuietMoments, in_flight: list[int]) -> list[int]:
    """Return the numbers in flight at which was looked, learning as a server's clock does."""
    found = []
    for count in in_flight:
        if moments.is_learnt:
            moments.learn()
        if moments.comes(count):
            found.append(count)
    return found


def test_requests_one_after_the_other_are_each_a_look():
    assert looked_at(QuietMoments(), [0] * 500) == [0] * 500


def test_of_requests_in_bursts_the_last_is_a_look():
    assert looked_at(QuietMoments(), [3, 2, 1, 0] * 100) == [0] * 100


def test_under_a_load_that_never_lets_up_the_same_number_is_looked_at():
    found = looked_at(QuietMoments(), [7, 8, 9] * 200)

    assert set(found) == {7}
    assert len(found) >= 170


def test_what_happens_to_be_idle_now_and_then_does_not_end_that():
    found = looked_at(QuietMoments(), ([7, 8, 9] * 30 + [0]) * 5)

    assert set(found) == {7}


def test_where_the_load_has_changed_another_number_is_learnt():
    found = looked_at(QuietMoments(), [0] * (LEARNT_FROM + HELD_FOR) + [5, 6] * HELD_FOR)

    assert set(found[-100:]) == {5}


def test_where_no_number_comes_again_the_end_of_each_must_do():
    moments = QuietMoments()

    found = [moments.comes(count) for count in range(1, STARVED + 11)]

    assert found == [False] * STARVED + [True] * 10
