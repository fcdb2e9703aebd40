from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
accelerate = pytest.importorskip("accelerate")

from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from leakcheck.integrations.accelerate import watch  # noqa: E402

pytestmark = pytest.mark.usefixtures("forked_python")

SCRIPT = """\
import accelerate
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
accelerator = accelerate.Accelerator(cpu=True)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(40, 8)), batch_size=2)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
losses = []
for epoch in range(30):
    for (inputs,) in loader:
        optimizer.zero_grad()
        loss = model(inputs).pow(2).mean()
        accelerator.backward(loss)
        optimizer.step()
        {keep}
"""


class Notes:
    """An accelerator's `log`, which is all that `watch` uses of it."""

    def __init__(self, accelerator):
        self.accelerator = accelerator
        self.logged = []

    def log(self, values, step=None):
        self.logged.append((step, *values))
        self.accelerator.log(values, step=step)


def train(leaky):
    told = []
    accelerator = accelerate.Accelerator(cpu=True)
    notes = Notes(accelerator)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(torch.randn(400, 8)), batch_size=2)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    total = 0.0
    for (inputs,) in watch(notes, loader, on_report=told.append):
        optimizer.zero_grad()
        loss = model(inputs).pow(2).mean()
        accelerator.backward(loss)
        optimizer.step()
        if leaky:
            total += loss
    return told, notes.logged, total


def test_a_loss_kept_in_the_loop_is_named(leaking_lines):
    told, logged, _ = train(leaky=True)

    assert [report.verdict for report in told] == ["growing"]
    assert leaking_lines(told[0]) == ["total += loss"]
    assert told[0].suspects[0].rules == ("undetached-accumulator",)
    assert [one.rule for one in told[0].findings if one.proved] == ["undetached-accumulator"]
    assert (200, "leakcheck/growing") in logged


def test_the_clean_twin_says_nothing():
    told, logged, _ = train(leaky=False)

    assert told == []
    assert (100, "leakcheck/graph.nodes_per_step") in logged


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keep", "status", "told"),
    [
        ("losses.append(loss)", 1, "losses.append(loss)"),
        ("losses = [loss.item()]", 0, "leakcheck: steady in "),
    ],
    ids=["leaky", "clean"],
)
def test_an_unmodified_script_is_judged(run, keep, status, told):
    done = run(SCRIPT.replace("{keep}", keep))

    assert told in done.stderr
    assert done.returncode == status
