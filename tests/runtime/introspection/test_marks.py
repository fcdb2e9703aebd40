"""Containers are known again by their elements where they have no weak reference."""

from __future__ import annotations

import sys
import weakref
from collections import deque

import pytest

from leakcheck.runtime.introspection.marks import mark_of, may_be_same


class Sample:
    """One that is equal to no other."""


MADE = (lambda i: Sample(), lambda i: f"text {i}", lambda i: 1000.0 + i, lambda i: (i, [i]))


@pytest.mark.parametrize("make", MADE, ids=["object", "text", "number", "tuple"])
def test_a_list_is_known_again_by_one_of_its_ends(make):
    kept = [make(i) for i in range(20)]
    mark = mark_of(kept)

    assert may_be_same(mark, kept)
    assert may_be_same(mark, [*kept, *map(make, range(20, 60))])
    assert may_be_same(mark, [*map(make, range(20, 60)), *kept[:10]])
    assert may_be_same(mark, kept[15:])
    assert not may_be_same(mark, [make(i) for i in range(100, 130)])


def test_a_dictionary_is_known_again_by_its_keys():
    mark = mark_of({f"layer.{i}": i for i in range(8)})

    assert may_be_same(mark, {f"layer.{i}": -i for i in range(12)})
    assert not may_be_same(mark, {f"epoch.{i}": i for i in range(12)})


def test_what_has_weak_references_is_known_by_itself():
    backlog = deque(range(10))
    mark = mark_of(backlog)

    assert not may_be_same(mark, deque(range(10)))
    backlog.clear()
    assert may_be_same(mark, backlog)


def test_a_mark_of_nothing_says_nothing_and_keeps_nothing_alive():
    assert may_be_same(mark_of([]), [Sample()])

    kept = [Sample()]
    sample = weakref.ref(kept[0])
    text = "a text of some length " * 100
    mark, of_text = mark_of(kept), sys.getrefcount(text)
    marked = mark_of([text])
    del kept[:]
    assert sample() is None
    assert sys.getrefcount(text) == of_text
    assert may_be_same(marked, [text])
    assert not may_be_same(mark, kept)
