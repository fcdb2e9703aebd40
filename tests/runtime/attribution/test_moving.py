"""What one container gains another loses: such growth ends when the other is empty."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
import torch

from leakcheck.runtime.attribution.growth import HeapGrowth
from leakcheck.runtime.introspection.objects import Heap

LOOKS = (0, 5, 13, 24)


class Sample:
    """One of a pool."""


def taken(step: Callable[[], Any], *containers: Any) -> dict[int, Any]:
    """Return which container each that grew takes from, looked at as a window does."""
    growth = HeapGrowth()
    for at in range(LOOKS[-1] + 1):
        if at in LOOKS:
            with closing(Heap().add_untracked(containers)) as heap:
                growth.look(at, heap)
                if at == LOOKS[-1]:
                    return growth.moving.takers(
                        [one.container for one in growth.growers(heap)], heap
                    )
        step()
    raise AssertionError


def test_keys_that_move_from_one_dictionary_to_another():
    pool = {index: torch.zeros(8) for index in range(1000, 1500)}
    labelled: dict[int, Any] = {}

    def step() -> None:
        for index in list(pool)[:3]:
            labelled[index] = {"x": pool.pop(index), "soft": torch.ones(4)}

    assert taken(step, pool, labelled) == {id(labelled): pool}


@pytest.mark.parametrize(
    "element",
    [
        lambda i: Sample(),
        lambda i: (torch.zeros(4), i),
        lambda i: {"x": torch.zeros(4)},
        lambda i: 1000 + i,
        lambda i: f"text {i}",
    ],
    ids=["object", "tuple", "dictionary", "number", "text"],
)
def test_elements_that_move_from_one_list_to_another(element):
    pool, seen = [element(i) for i in range(300)], []

    found = taken(lambda: seen.append(pool.pop()), pool, seen)

    assert [key for key in found if key == id(seen)] == [id(seen)]
    assert found[id(seen)] is pool


def test_indices_that_move_from_one_set_to_another():
    unlabelled, labelled = set(range(1000, 1400)), set()

    found = taken(lambda: labelled.add(unlabelled.pop()), unlabelled, labelled)

    assert found == {id(labelled): unlabelled}


def test_what_is_made_of_each_that_is_taken_out_is_another():
    order, kept = list(range(1000, 1400)), []

    assert taken(lambda: kept.append(torch.full((4,), order.pop())), order, kept) == {}


def test_a_pool_beside_has_nothing_to_do_with_it():
    pool, seen, kept = [Sample() for _ in range(300)], [], []

    def step() -> None:
        seen.append(id(pool.pop()))
        kept.append(Sample())

    assert taken(step, pool, seen, kept) == {}


def test_nothing_is_kept_alive_meanwhile():
    pool = [Sample() for _ in range(300)]
    alive: list[int] = []

    def step() -> None:
        pool.pop()
        with closing(Heap()) as heap:
            alive.append(len(heap.pick({id(Sample)})))

    taken(step, pool)

    assert alive == list(range(299, 299 - LOOKS[-1], -1))


def test_the_longest_of_many_that_shrink_are_looked_at():
    many = [list(range(20)) for _ in range(40)]
    pool, seen = list(range(1000, 1300)), []

    def step() -> None:
        for each in many:
            del each[-5:]
        seen.append(pool.pop())

    assert taken(step, pool, seen, *many) == {id(seen): pool}
