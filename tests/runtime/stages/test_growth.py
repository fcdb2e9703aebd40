"""Of several containers each is judged by its own length, and one that is not read by none."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from leakcheck.model import Suspect
from leakcheck.runtime.stages.episode import NEW_EPISODE, Attributed
from leakcheck.runtime.stages.growth import EstablishedGrowth
from tests.holders import held_by

SCORES, SHARES = held_by("attribute `Scores.values`"), held_by("attribute `Shares.values`")


@dataclass
class Length:
    """A way whose container has a length that the test sets; None where it is not found."""

    now: int | None = 0

    def length(self) -> int | None:
        return self.now


@pytest.fixture
def ways():
    return {SCORES: Length(), SHARES: Length()}


@pytest.fixture
def growth(ways):
    suspects = tuple(Suspect("tensor", "list", 1.0, holder=holder) for holder in ways)
    return EstablishedGrowth(Attributed(suspects, way_by_holder=ways), NEW_EPISODE, 1, waits=True)


def measure(growth, ways, lengths_at):
    for step in range(100, 200, 5):
        for holder, length_at in lengths_at.items():
            ways[holder].now = length_at(step)
        growth.lengths.measure(step, at_end=False)


def test_what_rose_while_another_was_emptied_is_waited_for_alone(growth, ways):
    measure(growth, ways, {SCORES: lambda step: step % 75, SHARES: lambda step: step})

    assert growth.waits_on_without([SCORES])
    assert [one.holder for one in growth.found.suspects] == [SHARES]


def test_where_none_rose_all_the_while_it_is_over(growth, ways):
    measure(growth, ways, {SCORES: lambda step: step % 75, SHARES: lambda step: 100})

    assert not growth.waits_on_without([SCORES])
    assert [one.holder for one in growth.found.suspects] == [SCORES, SHARES]


def test_what_was_never_emptied_or_never_read_is_not_as_before(growth, ways):
    assert growth.as_before({SCORES: 100}) == []  # not read

    measure(growth, ways, {SCORES: lambda step: 90, SHARES: lambda step: 90})

    assert growth.as_before({SCORES: 100}) == [SCORES]
    assert growth.as_before({}) == []


def test_at_the_end_what_is_not_found_any_more_stays_as_it_was_known(growth, ways):
    lengths = {SCORES: lambda step: step, SHARES: lambda step: min(step, 125)}
    measure(growth, ways, lengths)
    for way in ways.values():
        way.now = None

    growth.lengths.measure(200, at_end=True)
    assert growth.full == [SHARES]

    growth.lengths.measure(201, at_end=False)
    assert growth.full == []
