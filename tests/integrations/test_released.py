"""Whether frameworks let go of what they trained, as their own tests ask by weak references."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

pytest.importorskip("torch")

import torch
from torch.utils.data import DataLoader

import leakcheck


@pytest.fixture
def registry(monkeypatch):
    """A module that the heap knows, off which everything collected is taken."""
    module = ModuleType("registry")
    module.KEPT = []
    monkeypatch.setitem(sys.modules, "registry", module)
    yield module
    module.KEPT.clear()


def lightning_parts(folder):
    """Return a module and a trainer that has fitted it."""
    lightning = pytest.importorskip("lightning.pytorch")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch):
            return self.layer(batch).pow(2).mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = lightning.Trainer(
        max_steps=3, accelerator="cpu", default_root_dir=folder, enable_model_summary=False, **quiet
    )
    module = Module()
    trainer.fit(module, DataLoader(torch.randn(8, 4), batch_size=2))
    return module, trainer


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_lightning_lets_go_of_trainer_and_module(tmp_path):
    module, trainer = lightning_parts(tmp_path)

    with leakcheck.expect_released(module, trainer):
        del module, trainer


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_module_that_keeps_the_trainer_is_told(tmp_path, registry):
    module, trainer = lightning_parts(tmp_path)
    registry.KEPT.append(module)
    expectation = leakcheck.expect_released(trainer)
    del module, trainer

    with pytest.raises(leakcheck.NotReleasedError) as told:
        expectation.check()
    (retained,) = told.value.retained
    assert retained.what == "Trainer"
    assert str(retained.holder.start) == "global `registry.KEPT`"


def prepared():
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return accelerator, *accelerator.prepare(model, optimizer)


@pytest.mark.slow
def test_an_accelerator_keeps_what_it_prepared():
    accelerator, model, optimizer = prepared()
    expectation = leakcheck.expect_released(model, optimizer)
    del model, optimizer

    with pytest.raises(leakcheck.NotReleasedError, match=r"attribute `Accelerator\._models`"):
        expectation.check()
    accelerator.free_memory()


@pytest.mark.slow
def test_an_accelerator_that_frees_its_memory_keeps_nothing():
    accelerator, model, optimizer = prepared()

    with leakcheck.expect_released(model, optimizer):
        del model, optimizer
        accelerator.free_memory()
