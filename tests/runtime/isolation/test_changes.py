from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("forked_python")

BEFORE = """\
from collections import Counter
from leakcheck.runtime.isolation.changes import Loaders, without_backward
changed, loaders, stepped = Counter(), Loaders(), []
{change}
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

class Own(DataLoader):
    def __iter__(self):
        for batch in super().__iter__():
            yield batch + 100
"""


def outcome(change: str, program: str) -> str:
    """Change torch in a process of its own; returns what the program prints."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import warnings; warnings.simplefilter('error')\n"
            + BEFORE.format(change=change)
            + program,
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_loader_repeats_its_first_batch_as_many_times_as_it_is_long():
    program = (
        "plain, own = DataLoader(range(6), batch_size=2), Own(range(6), batch_size=3)\n"
        "for epoch in range(2):\n"
        "    print([batch.tolist() for batch in plain], [batch.tolist() for batch in own])\n"
    )

    told = outcome("loaders.fix(changed)", program)

    assert told == "[[0, 1], [0, 1], [0, 1]] [[100, 101, 102], [100, 101, 102]]\n" * 2


def test_a_program_may_take_the_fixed_batch_apart():
    program = (
        "rows = [{'x': 1.0, 'y': [2.0]}] * 3\n"
        "for batch in DataLoader(rows):\n"
        "    print(batch.pop('x').item(), batch['y'].pop().item())\n"
    )

    assert outcome("loaders.fix(changed)", program) == "1.0 2.0\n" * 3


def test_an_empty_loader_stays_empty_and_an_endless_one_endless():
    program = (
        "class Stream(IterableDataset):\n"
        "    def __iter__(self): return iter([7, 8])\n"
        "print(list(DataLoader([])))\n"
        "reading = iter(DataLoader(Stream(), batch_size=None))\n"
        "print([next(reading) for _ in range(5)])\n"
    )

    assert outcome("loaders.fix(changed)", program) == "[]\n[7, 7, 7, 7, 7]\n"


def test_the_loader_to_drain_is_handed_over_with_its_own_way_of_reading():
    program = "list(DataLoader(range(3)))\nprint([batch.tolist() for batch in Own(range(2))])\n"
    change = "loaders.drain(1, lambda loader, read: print(type(loader).__name__, *read(loader)))"

    assert outcome(change, program) == ("Own tensor([100]) tensor([101])\n[[100], [101]]\n")


def test_the_loader_read_before_most_steps_feeds_them():
    program = (
        "for epoch in range(5):\n"
        "    for _ in DataLoader(range(100)): pass\n"
        "    if not epoch: own = Own(range(20))\n"
        "    for _ in own: loaders.step()\n"
        "print(loaders.feeding())\n"
    )

    assert outcome("loaders.observe()", program) == "1\n"


def test_a_loader_read_now_and_then_feeds_nothing():
    program = (
        "reading = iter(DataLoader(range(100)))\n"
        "for step in range(1000):\n"
        "    if step % 50 == 0: next(reading)\n"
        "    loaders.step()\n"
        "print(loaders.feeding())\n"
    )

    assert outcome("loaders.observe()", program) == "None\n"


def test_without_backward_steps_are_counted_and_nothing_moves():
    program = (
        "model = torch.nn.Linear(2, 1)\n"
        "before = model.weight.clone()\n"
        "optimizer = torch.optim.Adam(model.parameters())\n"
        "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)\n"
        "scaler = torch.amp.GradScaler('cpu')\n"
        "for _ in range(2):\n"
        "    loss = model(torch.ones(1, 2)).sum()\n"
        "    scaler.scale(loss).backward()\n"
        "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
        "    scaler.step(optimizer)\n"
        "    scaler.update()\n"
        "    schedule.step()\n"
        "print(model.weight.grad, bool((model.weight == before).all()), len(stepped))\n"
        "print(torch.optim.LBFGS(model.parameters()).step(lambda: 5), changed)\n"
    )

    told = outcome("without_backward(changed, stepped.append)", program)

    assert told == "None True 2\n5 Counter({'optimizer.step': 3, 'backward': 2})\n"
