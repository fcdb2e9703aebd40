from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("ignite.engine")

import torch
from ignite import engine as ignite_engine

from leakcheck.integrations.ignite import LeakcheckHandler


def train(leaky):
    told = []
    kept = []
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def update(engine, inputs):
        optimizer.zero_grad()
        loss = model(inputs).pow(2).mean()
        loss.backward()
        optimizer.step()
        if leaky:
            kept.append(loss)
        return loss.item()

    trainer = ignite_engine.Engine(update)
    handler = LeakcheckHandler(on_report=told.append).attach(trainer)
    trainer.run([torch.randn(4, 8) for _ in range(20)], max_epochs=10)
    return handler.report(), told


def test_a_loss_kept_by_the_update_is_named(leaking_lines):
    report, told = train(leaky=True)

    assert report.verdict == "growing"
    assert leaking_lines(report) == ["kept.append(loss)"]
    assert report.suspects[0].rules == ("undetached-collection",)
    assert [one.rule for one in report.findings if one.proved] == ["undetached-collection"]
    assert [one.verdict for one in told] == ["growing"]


def test_the_clean_twin_is_steady_and_says_nothing():
    report, told = train(leaky=False)

    assert (report.verdict, told) == ("steady", [])
    assert report.run.steps == 200
