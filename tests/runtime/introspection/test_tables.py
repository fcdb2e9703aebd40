"""Tables that are made before they are filled."""

from __future__ import annotations

import numpy as np
import pytest

from leakcheck.runtime.introspection.tables import Tables


def filled(table, fill, steps: int = 10):
    """Return what is found of a table that is looked at, filled, and looked at again."""
    tables = Tables()
    tables.look([table])
    fill()
    return [(found.held, found.places, found.per_step) for found in tables.filling([table], steps)]


@pytest.mark.parametrize(
    "table",
    [[None] * 40, [0] * 40, [""] * 40, np.zeros(40, dtype=object), np.full(40, None)],
    ids=["None", "0", "text", "array of zeros", "array of None"],
)
def test_places_that_are_taken_one_after_another_are_counted(table):
    table[0] = first = (1, 2)
    second = (3, 4)

    def fill():
        table[1] = second

    assert filled(table, fill) == [([first, second], 40, 0.1)]


def test_a_table_filled_from_its_end_is_one_too():
    table = [None] * 40
    table[-1] = last = object()

    def fill():
        table[-2] = last

    assert filled(table, fill) == [([last, last], 40, 0.1)]


def test_a_full_ring_that_renews_what_it_holds_is_not_filled():
    ring = [object() for _ in range(40)]

    def renew():
        ring[3] = object()

    assert filled(ring, renew) == []


def test_a_table_of_numbers_or_flags_keeps_nothing():
    flags = [False] * 40

    def visit():
        flags[3] = True

    assert filled(flags, visit) == []


def test_what_is_longer_than_before_is_no_table():
    rows = [None] * 40

    assert filled(rows, lambda: rows.append(object())) == []


def test_what_is_emptied_is_not_filled():
    table = [object()] + [None] * 40

    def empty():
        table[0] = None

    assert filled(table, empty) == []


def test_short_lists_and_arrays_of_numbers_are_no_tables():
    short, numbers = [None] * 8, np.zeros(100)
    tables = Tables()
    tables.look([short, numbers])
    short[0], numbers[0] = object(), 1.0

    assert list(tables.filling([short, numbers], 10)) == []


class Unequal:
    def __eq__(self, other):
        raise AssertionError("the program's code was called")

    __hash__ = None


def test_nothing_is_compared():
    table = [None] * 40
    table[0] = Unequal()

    def fill():
        table[1] = Unequal()

    assert len(filled(table, fill)) == 1
