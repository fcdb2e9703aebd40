"""Whether the shapes of tensors vary: libraries keep something for each new one."""

from __future__ import annotations

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
