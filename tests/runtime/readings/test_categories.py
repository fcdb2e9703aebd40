from __future__ import annotations

import gc
import warnings

import torch

from leakcheck.runtime.introspection.objects import Heap, is_tensor
from leakcheck.runtime.readings.categories import (
    is_module,
    is_optimizer,
    read_categories,
)
from leakcheck.runtime.readings.census import Census

TOTAL = 1 << 32


def read(*, only: list[torch.Tensor] | None = None) -> dict[str, int]:
    gc.collect()  # what other tests left
    heap = Heap()
    tensors, modules, optimizers = heap.sort(is_tensor, is_module, is_optimizer)
    heap.close()  # it is one of its own objects
    return read_categories(
        only if only is not None else tensors, modules, optimizers, {"host": TOTAL}
    )


def test_every_storage_is_counted_once_in_the_category_that_owns_it():
    before = read()
    model = torch.nn.Sequential(torch.nn.Linear(100, 50), torch.nn.BatchNorm1d(50))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.randn(8, 100)).sum().backward()
    optimizer.step()
    view = model[0].weight[:10]
    kept = torch.zeros(1000)

    after = read()

    weights = 4 * (100 * 50 + 50 + 50 + 50)
    grown = {name.rpartition(".")[2]: size - before.get(name, 0) for name, size in after.items()}
    assert {name: size for name, size in grown.items() if name != "unexplained"} == {
        "parameters": weights,
        "gradients": weights,
        "optimizer state": weights,
        "buffers": 4 * (50 + 50) + 8,
        "temporaries": 4 * 1000,
    }
    assert sum(after.values()) == TOTAL
    del view, kept


def test_reading_leaves_no_wrapper_of_a_storage_behind():
    import sys

    kept = [torch.zeros(10) for _ in range(500)]
    read()
    before = sys.getallocatedblocks()

    read()

    assert sys.getallocatedblocks() - before < len(kept) / 2


def test_tensors_without_storage_are_passed_over_without_a_warning():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.zeros(100)
    odd = [fake, torch.zeros(100, device="meta"), torch.eye(10).to_sparse(), torch.zeros(0)]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(only=odd) == {}


def test_attributes_of_the_program_are_never_run():
    class Touchy(torch.nn.Module):
        def __getattribute__(self, name: str) -> object:
            if name in ("__dict__", "parameters", "_buffers", "buffers"):
                asked.append(name)
            return super().__getattribute__(name)

    touchy, asked = None, []
    touchy = Touchy()
    asked.clear()
    read()
    assert asked == []
    del touchy


def test_a_census_told_no_totals_reads_no_categories():
    assert Census().take(1).categories == {}
