from __future__ import annotations

import gc
import subprocess
import sys

import pytest

pytest.importorskip("lightning.pytorch")
pytest.importorskip("torch")

import lightning.pytorch as L
import torch
from torch.utils.data import DataLoader, TensorDataset

from leakcheck.integrations.lightning import LeakcheckCallback

pytestmark = pytest.mark.usefixtures("forked_python")


@pytest.fixture(autouse=True)
def _without_garbage_of_other_tests():
    """Collect trainers of tests before: of 40 steps one that a collection falls in tells little."""
    gc.collect()


QUIET = {
    "accelerator": "cpu",
    "devices": 1,
    "enable_checkpointing": False,
    "enable_model_summary": False,
    "enable_progress_bar": False,
}
SCRIPT = """\
import lightning.pytorch as L
import torch
import lightning.pytorch as L  # noqa: E402
import torch  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset

class Regression(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
        self.losses = []

    def training_step(self, batch, index):
        loss = self.layer(batch[0]).pow(2).mean()
        {keep}
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

torch.set_num_threads(1)
trainer = L.Trainer(max_epochs=30, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_model_summary=False, enable_progress_bar=False)
trainer.fit(Regression(), DataLoader(TensorDataset(torch.randn(40, 8)), batch_size=2))
print("trained", trainer.global_step, "steps")
"""

GATHERING = """\
import lightning.pytorch as L
import torch
from torch.utils.data import DataLoader, TensorDataset
from leakcheck.integrations.lightning import LeakcheckCallback

class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 3)
        self.outputs = []

    def training_step(self, batch, index):
        output = self.layer(batch[0])
        loss = output.pow(2).mean()
        self.outputs.append({"loss": loss.detach(), "output": output.detach()})
        return loss

    def on_train_epoch_end(self):
        torch.cat([each["output"] for each in self.outputs])
        self.outputs.clear()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

torch.set_num_threads(1)
watching = LeakcheckCallback()
trainer = L.Trainer(max_epochs=6, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_model_summary=False, enable_progress_bar=False, callbacks=[])
trainer.fit(Classifier(), DataLoader(TensorDataset(torch.randn(1200, 8)), batch_size=4))
print(watching.report().verdict)
"""


class Regression(L.LightningModule):
    def __init__(self, leaky: bool):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
        self.leaky = leaky
        self.total = 0.0

    def training_step(self, batch, index):
        loss = self.layer(batch[0]).pow(2).mean()
        if self.leaky:
            self.total += loss
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


class Numbers(L.loggers.Logger):
    """A logger that keeps the names of what it is given."""

    def __init__(self):
        super().__init__()
        self.names = set()

    name = version = "numbers"

    def log_metrics(self, metrics, step=None):
        self.names |= set(metrics)

    def log_hyperparams(self, params, *args, **kwargs):
        pass


def fit(leaky, logger=False, **options):
    told = []
    callback = LeakcheckCallback(on_report=told.append, **options)
    trainer = L.Trainer(max_epochs=10, callbacks=[callback], logger=logger, **QUIET)
    loader = DataLoader(TensorDataset(torch.randn(40, 8)), batch_size=2)
    trainer.fit(Regression(leaky), loader)
    return callback.report(), told


def test_a_loss_kept_by_the_module_is_named(leaking_lines):
    report, told = fit(leaky=True)

    assert report.verdict == "growing"
    assert leaking_lines(report) == ["self.total += loss"]
    assert report.suspects[0].rules == ("undetached-step-output",)
    assert [one.rule for one in report.findings if one.proved] == ["undetached-step-output"]
    assert not report.suspects[0].library
    assert [one.verdict for one in told] == ["growing"]


def test_the_clean_twin_is_steady_and_says_nothing():
    report, told = fit(leaky=False)

    assert (report.verdict, told) == ("steady", [])
    assert report.run.steps == 200


def test_rates_go_to_the_loggers_of_the_trainer():
    logger = Numbers()

    fit(leaky=False, logger=logger, log_every=50)

    assert {"leakcheck/graph.nodes_per_step", "leakcheck/growing"} <= logger.names


def test_training_that_fails_is_judged_by_what_was_seen():
    class Failing(Regression):
        def training_step(self, batch, index):
            if self.global_step == 40:
                raise MemoryError("exhausted")
            return super().training_step(batch, index)

    told = []
    callback = LeakcheckCallback(on_report=told.append)
    trainer = L.Trainer(max_epochs=10, callbacks=[callback], logger=False, **QUIET)
    loader = DataLoader(TensorDataset(torch.randn(40, 8)), batch_size=2)

    with pytest.raises(MemoryError, match="exhausted"):
        trainer.fit(Failing(leaky=True), loader)

    assert [report.run.steps for report in told] == [40]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keep", "status", "told"),
    [
        ("self.losses.append(loss)", 1, "self.losses.append(loss)"),
        ("self.losses = [loss.item()]", 0, "leakcheck: steady in "),
    ],
    ids=["leaky", "clean"],
)
def test_an_unmodified_script_is_judged(run, keep, status, told):
    done = run(SCRIPT.replace("{keep}", keep))

    assert told in done.stderr
    assert done.returncode == status


@pytest.mark.slow
@pytest.mark.parametrize("by_run", [True, False])
def test_what_a_module_gathers_for_the_end_of_an_epoch_is_no_leak(by_run, tmp_path):
    script = GATHERING if by_run else GATHERING.replace("callbacks=[]", "callbacks=[watching]")
    program = tmp_path / "program.py"
    program.write_text(script)
    run = ["-m", "leakcheck", "run"] if by_run else []

    done = subprocess.run(
        [sys.executable, *run, str(program)], cwd=tmp_path, capture_output=True, text=True
    )

    verdict = "leakcheck: steady" if by_run else "steady"
    assert verdict in (done.stderr if by_run else done.stdout), done.stderr
    assert "growing" not in done.stderr
