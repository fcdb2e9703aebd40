"""Whether what was found twice was emptied in between, as its two lengths tell."""

from __future__ import annotations

import pytest

from leakcheck.model import LeakTrace, Link, Suspect
from leakcheck.runtime.attribution import turnover
from tests.holders import held_by


def suspect(length, holder="global `rows`", objects=2.0, key='["p"]'):
    """Return a suspect whose container holds so many elements of 100 bytes."""
    links = (Link(key, "list"), Link("[x]", "Tensor", 100 * length, suspect=True))
    return Suspect(
        "tensor", "list of Tensor", objects, 100 * objects, held_by(holder), LeakTrace("", links)
    )


@pytest.mark.parametrize(
    ("length", "later", "emptied"),
    [
        (200, 600, False),  # after 100 and 300 steps: it gains as the steps do
        (200, 500, False),
        (20, 60, False),  # began late, or one of ten that grow by turns
        (200, 150, True),  # an epoch's, in the next one
        (200, 390, True),
        (200, 200, True),  # grows no more
    ],
)
def test_what_holds_hardly_more_long_after_was_emptied(length, later, emptied):
    now = (suspect(later),)

    assert turnover.kept((suspect(length),), now, 100, 300) == (() if emptied else now)


def test_what_was_not_found_before_is_kept():
    now = (suspect(90, "global `others`"),)

    assert turnover.kept((suspect(200),), now, 100, 300) == now
    assert turnover.kept((), now, 100, 300) == now


def test_of_two_lists_in_one_dictionary_the_one_that_was_emptied_is_left_out():
    before = (suspect(200, key='["p"]'), suspect(200, key='["v"]'))
    now = (suspect(90, key='["v"]'), suspect(600, key='["p"]'))

    assert turnover.kept(before, now, 100, 300) == (now[1],)


def test_of_what_length_is_not_known_nothing_is_said():
    before, now = (suspect(200),), (suspect(90, objects=0.0),)

    assert turnover.kept(before, now, 100, 300) == now
    assert turnover.kept(now, before, 100, 300) == before


def test_one_window_alone_tells_nothing():
    now = (suspect(90),)

    assert turnover.kept((suspect(200),), now, 0, 300) == now
    assert turnover.kept((suspect(200),), now, 300, 300) == now
