"""The batches of a DataLoader are the steps where a library has loop and optimizer to itself."""

from __future__ import annotations

import re
import textwrap

import pytest

pytest.importorskip("torch")

import torch
from torch.utils.data import DataLoader, TensorDataset

from leakcheck.runtime.clock import loaders, ticks
from leakcheck.runtime.clock.batches import Feeding
from leakcheck.runtime.clock.steps import StepClock
from leakcheck.runtime.sentinel import Sentinel

BATCHES = "batches of a DataLoader"


def rows(batches: int) -> DataLoader[tuple[torch.Tensor, ...]]:
    return DataLoader(TensorDataset(torch.randn(4 * batches, 3)), batch_size=4)


class Library:
    """Trains with an optimizer of its own, in loops that do not tick."""

    def __init__(self) -> None:
        self.weight = torch.zeros(3, requires_grad=True)
        self.after_step = lambda optimizer: None
        self.optimizer = None

    def steps_with(self, after_step, optimizer):
        self.after_step, self.optimizer = after_step, optimizer

    def fit(self, training, validation=(), epochs=1):
        for _ in range(epochs):
            for (x,) in training:
                (gradient,) = torch.autograd.grad(
                    ((x @ self.weight) - 1).square().mean(), self.weight
                )
                self.weight.data -= 0.1 * gradient
                self.after_step(self.optimizer)
            self.predict(validation)

    def predict(self, loader):
        with torch.no_grad():
            return [x @ self.weight for (x,) in loader]


def run(source: str, sentinel: Sentinel | None = None, **names: object) -> tuple[str, int]:
    """Run a user's program; returns its clock and the number of steps."""
    sentinel = sentinel or Sentinel()
    listener = StepClock(sentinel, lambda: None)
    namespace = {"library": Library(), "rows": rows, "stepped": listener.optimizer_stepped, **names}
    ticks.give_names(namespace)
    code = ticks.compile_with_ticks(textwrap.dedent(source), f"{len(ticks.loops)}/program.py")
    ticks.listen(listener.ticked)
    loaders.listen(listener)
    try:
        exec(code, namespace)
    finally:
        listener.stop()
        sentinel.stop()
    return re.sub(r"\d+/", "", sentinel.clock), sentinel.state[0]


def test_a_library_that_trains_with_an_optimizer_of_its_own():
    clock, steps = run("library.fit(rows(50), epochs=4)")

    assert (clock, steps) == (BATCHES, 200 - 16)


def test_the_batches_of_its_validation_are_none_from_the_second_epoch_on():
    clock, steps = run("library.fit(rows(50), rows(20), epochs=6)")

    assert (clock, steps) == (BATCHES, 300 + 20 - 16)


def test_what_only_predicts():
    clock, steps = run("library.predict(rows(100))")

    assert (clock, steps) == (BATCHES, 100 - 16)


def test_a_loop_of_the_user_s_over_the_loader_comes_first():
    clock, _ = run("""
        for x in rows(100):
            x[0].sum()
    """)

    assert clock == "iterations of the loop at program.py:2"


def test_an_optimizer_that_steps_comes_first():
    class Optimizer:
        """Stands for one of torch's."""

    clock, _ = run(
        """
        library.steps_with(stepped, optimizer)
        library.fit(rows(100))
        """,
        optimizer=Optimizer(),
    )

    assert clock == "optimizer step"


def test_loops_inside_the_library_s_are_no_steps():
    clock, _ = run(
        """
        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 400
            def __getitem__(self, index):
                total = 0
                for part in range(10):
                    total += part
                return (torch.full((3,), float(total)),)
        library.predict(torch.utils.data.DataLoader(Data(), batch_size=4))
    """,
        torch=torch,
    )

    assert clock == BATCHES


def test_a_loop_around_the_library_s_turns_where_it_trains_anew():
    phases: list[int] = []

    class Heard(Sentinel):
        def phase(self, depth: int = 1) -> None:
            phases.append(depth)

    source = "for trial in range(5):\n    library.fit(loader)\n"

    clock, _ = run(source, Heard(), loader=rows(20))

    assert clock == BATCHES
    assert phases.count(2) == 4  # of the loop; a loader that begins anew tells of depth 1


def test_of_two_loaders_that_take_turns_one_counts():
    feeding, training, validation = Feeding(), [1], [2]
    epoch = [training] * 3 + [validation] * 2

    counted = [feeding.is_step(data) for data in epoch * 4]

    assert counted == [True] * 5 + [True, True, True, False, False] * 3


def test_what_was_forgotten_of_many_loaders_is_seen_anew():
    feeding = Feeding()
    kept = [[index] for index in range(1500)]

    assert all(feeding.is_step(data) for data in kept)
