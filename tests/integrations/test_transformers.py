from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("accelerate")  # the Trainer asks for it
pytest.importorskip("transformers")

import torch
import transformers

from leakcheck.integrations.transformers import LeakcheckCallback

pytestmark = pytest.mark.usefixtures("forked_python")

SCRIPT = """\
import torch
import transformers

class Regression(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
        self.losses = []

    def forward(self, inputs):
        loss = self.layer(inputs).pow(2).mean()
        {keep}
        return {"loss": loss}

torch.set_num_threads(1)
arguments = transformers.TrainingArguments(
    "out", max_steps=600, per_device_train_batch_size=2, use_cpu=True, report_to=[],
    save_strategy="no", disable_tqdm=True, logging_steps=50)
data = [{"inputs": torch.randn(8)} for _ in range(64)]
transformers.Trainer(Regression(), arguments, train_dataset=data).train()
"""


class Regression(torch.nn.Module):
    def __init__(self, leaky: bool):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
        self.leaky = leaky
        self.total = 0.0

    def forward(self, inputs):
        loss = self.layer(inputs).pow(2).mean()
        if self.leaky:
            self.total += loss
        return {"loss": loss}


def train(leaky, folder):
    told = []
    callback = LeakcheckCallback(on_report=told.append)
    arguments = transformers.TrainingArguments(
        str(folder),
        max_steps=200,
        per_device_train_batch_size=2,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        logging_steps=50,
    )
    data = [{"inputs": torch.randn(8)} for _ in range(64)]
    model = Regression(leaky)
    trainer = transformers.Trainer(model, arguments, train_dataset=data, callbacks=[callback])
    trainer.train()
    return callback.report(), told


def test_a_loss_kept_by_the_model_is_named(tmp_path, leaking_lines):
    report, told = train(True, tmp_path)

    assert report.verdict == "growing"
    assert leaking_lines(report) == ["self.total += loss"]
    assert report.suspects[0].rules == ("undetached-statistics",)
    assert [one.rule for one in report.findings if one.proved] == ["undetached-statistics"]
    assert [one.verdict for one in told] == ["growing"]


def test_the_clean_twin_is_steady_and_says_nothing(tmp_path):
    report, told = train(False, tmp_path)

    assert (report.verdict, told) == ("steady", [])
    assert report.run.steps == 200


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
