"""The heap, sorted: the quick way finds what the plain way finds, also when kinds come and go."""

from __future__ import annotations

import gc
import logging.handlers
import queue
import weakref
from collections import deque
from typing import Any

import torch

from leakcheck.runtime.introspection.objects import Heap, Sieve, capacity_of, first_held


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
        heap.close()


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


class Owner:
    def __init__(self) -> None:
        self.numbers = {1: 2.0}
        self.closure = {3: b"bytes"}


def test_dictionaries_that_no_collector_tracks_are_added():
    owner, in_a_list, local = Owner(), [{4: "text"}], {5: 6}
    gc.collect()

    heap = Heap().add_untracked([local])

    wanted = ids([owner.numbers, owner.closure, in_a_list[0], local])
    assert ids(heap.containers(wanted)) == wanted
    assert wanted <= heap.lengths().keys()
    heap.close()


def test_text_in_a_dictionary_that_no_collector_tracks_is_found_with_the_dictionary():
    state, small = {"log": "line\n" * 1000}, {"log": "line\n"}
    gc.collect()

    heap = Heap().add_untracked([state, small])

    assert heap.around_buffers[id(state["log"])] == [state]
    assert id(small["log"]) not in heap.buffers
    heap.close()
    assert not heap.around_buffers


def test_a_dictionary_is_added_once():
    shared = {1: 2}
    holders = [Owner(), Owner()]
    for holder in holders:
        holder.numbers = shared
    gc.collect()

    heap = Heap().add_untracked([shared])

    assert len(heap.containers({id(shared)})) == 1
    heap.close()


class Samples(torch.utils.data.TensorDataset):
    def __init__(self) -> None:
        super().__init__(torch.zeros(4800))


class Unready(torch.utils.data.TensorDataset):
    def __init__(self) -> None:
        pass


class Asked(torch.utils.data.Dataset):
    def __len__(self) -> int:  # the program's code is not run
        raise AssertionError


def test_only_what_knows_its_size_has_a_capacity():
    owners = [Samples(), Unready(), Asked(), torch.utils.data.Dataset(), Owner(), [1, 2]]

    assert [capacity_of(owner, {0: "a"}) for owner in owners] == [4800, *5 * [None]]
    assert capacity_of(Samples(), []) is None  # a log of what was read
    assert capacity_of(queue.Queue(180), deque()) == 180
    assert capacity_of(queue.Queue(), deque()) is None
    assert capacity_of(logging.handlers.MemoryHandler(300), []) == 300
    history = torch.optim.LBFGS([torch.zeros(3, requires_grad=True)], history_size=40)
    assert capacity_of(history, []) == 40
    assert capacity_of(torch.optim.Adam([torch.zeros(3, requires_grad=True)]), []) is None


def test_a_dictionary_of_a_dataset_is_limited_if_its_keys_are_indices_of_samples():
    kept = [{0: "a", 4799: "b"}, {4800: "a"}, {(0, 17): "a"}, {"name": "a"}, {-1: "a"}]

    assert [capacity_of(Samples(), each) for each in kept] == [4800, None, None, None, None]


def test_the_newest_of_functions_that_are_wrapped_again_and_again_holds_the_others():
    def timed(function):
        return lambda value: function(value)

    newest = abs
    wrappers = []
    for _ in range(20):
        newest = timed(newest)
        wrappers.append(newest)
    plain = [lambda value: value for _ in range(3)]

    assert first_held([*wrappers[::-1], *plain]) is newest
