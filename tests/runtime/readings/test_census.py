from __future__ import annotations

import gc

import torch

from leakcheck.runtime.readings.census import MOST_MARKS, Census
from leakcheck.runtime.readings.series import GARBAGE
from leakcheck.runtime.readings.watching import Watch


def test_growth_of_the_graph_is_counted_to_the_node():
    census, total = Census(), torch.zeros(1)
    counts = []
    for step in range(1, 31):
        total = total + torch.rand(1).requires_grad_()
        census.boundary(step)
        if step % 10 == 0:
            counts.append(census.take(step).graph_nodes)

    assert [counts[1] - counts[0], counts[2] - counts[1]] == [20, 20]


def test_the_graph_of_the_newest_step_does_not_count_however_long():
    census, counts = Census(), []
    for step in range(1, 31):
        total = torch.zeros(1, requires_grad=True)
        for _ in range(step):
            total = total + 1
        census.boundary(step)
        counts.append(census.take(step).graph_nodes)

    assert counts[2:] == [counts[1]] * 28
    assert total.grad_fn is not None


def test_the_age_of_the_oldest_node_is_told_in_steps():
    census, total = Census(), torch.zeros(1)
    for step in range(1, 21):
        total = total + torch.rand(1).requires_grad_()
        census.boundary(step)

    assert census.take(20).oldest_node_age_steps in (19, 20)


def test_tensors_are_counted_exactly():
    census = Census()
    gc.collect()
    before = census.take(1).tensors
    kept = [torch.zeros(1) for _ in range(17)]

    assert census.take(2).tensors - before == len(kept)


def test_marks_stay_bounded_however_long_the_run():
    census = Census()
    for step in range(10 * MOST_MARKS):
        census.boundary(step)

    assert len(census._steps) <= MOST_MARKS


def test_a_census_leaves_nothing_behind():
    census = Census()
    for step in range(3):
        census.take(step)
    gc.collect()
    before = len(gc.get_objects())

    for step in range(20):
        census.boundary(step)
        census.take(step)

    assert len(gc.get_objects()) - before <= 1


def test_what_a_collection_frees_is_measured():
    class Knot:
        def __init__(self):
            self.block = bytearray(1 << 20)
            self.me = self

    watch = Watch()
    watch.checkpoint(1, collect=True)
    gc.disable()
    try:
        for _ in range(4):
            Knot()
        freed = watch.checkpoint(2, collect=True)[GARBAGE]
    finally:
        gc.enable()
        watch.close()

    assert freed >= 4 << 20


def test_graphs_of_a_device_are_counted_as_they_have_pools_of_their_own(monkeypatch):
    class Graph:
        pass

    kept = [Graph(), Graph()]
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)

    assert Census().take(1).pools == len(kept)
