"""What looks at the heap tell of tensors: whether their shapes vary, and which one is extended."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

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
