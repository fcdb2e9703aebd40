"""The heap, sorted: the quick way finds what the plain way finds, also when kinds come and go."""

from __future__ import annotations

import gc
import weakref
from collections import deque
from typing import Any

import torch  # noqa: F401 - a kind is remembered as unwanted only once torch is whole

from leakcheck.runtime.objects import Heap, Sieve


class Wanted:
    pass


def is_wanted(kind: type) -> bool:
    return kind.__name__ == "Wanted" or kind.__name__ == "WantedToo"


def is_deque(kind: type) -> bool:
    return kind is deque


def ids(things: list[Any]) -> set[int]:
    return {id(thing) for thing in things}


def test_a_sieve_finds_again_and_again_what_sorting_the_whole_heap_finds():
    sieve, kept = Sieve(is_wanted, is_deque), [Wanted()]
    for _ in range(3):
        kept.append(Wanted())
        mine, deques = map(ids, sieve.sort())
        heap = Heap()
        assert [mine, deques] == [ids(found) for found in heap.sort(is_wanted, is_deque)]
        assert mine == ids(kept)
        heap.drop()


def test_an_object_of_a_kind_that_is_made_later_is_found():
    sieve = Sieve(is_wanted)
    sieve.sort()
    late = type("WantedToo", (), {})()
    assert ids(sieve.sort()[0]) == {id(late)}


def test_a_kind_that_dies_is_forgotten_because_its_id_may_be_given_to_another():
    sieve = Sieve(is_wanted)
    passing = type("Passing", (), {})
    kept = passing()
    sieve.sort()
    key = id(passing)
    assert key in sieve._unwanted
    del passing, kept
    gc.collect()
    sieve.sort()
    assert key not in sieve._unwanted
    assert key not in sieve._known


def test_a_sieve_keeps_nothing_that_it_found():
    sieve, kept = Sieve(is_wanted), Wanted()
    gone = weakref.ref(kept)
    sieve.sort()
    sieve.sort()
    del kept
    assert gone() is None


def test_no_code_of_a_metaclass_runs_while_the_heap_is_searched():
    class Loud(type):
        def __hash__(cls) -> int:
            raise AssertionError("the program's code ran")

        def __eq__(cls, other: object) -> bool:
            raise AssertionError("the program's code ran")

    quiet = Loud("Quiet", (), {})()
    sieve = Sieve(is_wanted)
    sieve.sort()
    sieve.sort()
    assert type(quiet).__name__ == "Quiet"
