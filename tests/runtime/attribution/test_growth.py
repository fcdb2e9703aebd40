"""What looks at the heap tell of tensors: whether their shapes vary, and which one is extended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any

import pytest
import torch

from leakcheck.runtime.attribution.growth import HeapGrowth
from leakcheck.runtime.introspection.objects import Heap


@pytest.mark.parametrize(
    ("lengths", "vary"),
    [
        ((701, 702, 703), True),
        ((711, 711, 712, 713), True),  # a curriculum: the first looks are near each other
        ((721, 721, 722, 722), False),  # one evaluation
        ((731, 731, 731), False),
    ],
)
def test_shapes_vary_if_looks_found_new_ones(lengths, vary):
    growth = HeapGrowth()
    for step, length in enumerate(lengths):
        batch = torch.zeros(length, 3)
        with closing(Heap()) as heap:
            growth.look(step, heap)
        del batch

    assert growth.shapes_vary == vary


LOOKS = (0, 90, 178, 179, 182)  # two are one step apart


def extended_by(size_at: Callable[[int], int], *, same: bool) -> list[float]:
    """Look at a tensor that is made anew, of some size at each step, with the same values or other.

    Returns what is told to grow, in bytes a step.
    """
    growth = HeapGrowth()
    for step in LOOKS:
        torch.manual_seed(0 if same else step)
        held = torch.arange(size_at(step)) * torch.randint(1 << 40, (1,))
        held = held.reshape(-1, 1, 1, 1, 1)  # of five dimensions, as no other tensor here
        with closing(Heap()) as heap:
            growth.look(step, heap)
    with closing(Heap()) as heap:
        return [longer.bytes_per_step for longer in growth.extended(heap) if longer.thing is held]


def test_a_tensor_that_is_extended_at_each_second_step_is_told_with_its_rate():
    assert extended_by(lambda step: 4000 + 100 * (step // 2), same=True) == [50 * 8]


def test_a_larger_tensor_of_other_values_and_one_that_shrinks_are_not():
    shrunk = dict(zip(LOOKS, (400, 900, 1800, 1700, 1900), strict=True))

    assert extended_by(lambda step: 4000 + 100 * step, same=False) == []
    assert extended_by(shrunk.__getitem__, same=True) == []


def known_again(containers: Iterable[Any]) -> list[bool]:
    """Look at a container in each of five steps; say of each grower if it is known again."""
    growth = HeapGrowth()
    for at, kept in enumerate(containers):
        with closing(Heap().add_untracked([kept])) as heap:
            growth.look(at, heap)
            if at == 4:
                grown = growth.growers(heap)
                return [one.known_again for one in grown if one.container is kept]
    raise AssertionError


def test_a_list_that_is_extended_is_known_again_wherever_it_loses_elements():
    def appended():
        kept = []
        for step in range(5):
            kept += [[step, row] for row in range(12)]
            del kept[: 2 * step]
            yield kept

    def prepended():
        kept = []
        for step in range(5):
            kept[:0] = [float(step * 100 + row) for row in range(12)]
            yield kept

    assert known_again(appended()) == [True]
    assert known_again(prepended()) == [True]


def test_a_longer_list_of_other_elements_may_be_another_at_the_same_address():
    def made_anew():
        kept = []
        for step in range(5):
            kept[:] = [float(step * 1000 + row) for row in range(4 + 2 * step)]
            yield kept

    assert known_again(made_anew()) == [False]


def test_a_set_is_known_by_itself_though_all_in_it_is_new():
    def emptied_and_filled():
        kept = set()
        for step in range(5):
            kept.clear()
            kept.update(range(1000 * step, 1000 * step + 10 * step + 5))
            yield kept

    assert known_again(emptied_and_filled()) == [True]
