"""One leak has one id, whoever watches the loop and wherever in a step it is looked at."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("forked_python")

PROGRAM = """\
import sys

import torch

import leakcheck

torch.set_num_threads(1)
gathered = []


class Meter:
    def __init__(self):
        self.values = []


def train_step(model, optimizer, log, meter):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 8)).pow(2).mean()
    loss.backward()
    values = meter.values
    {leak}
    optimizer.step()


def train(watched):
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses, meter = [], Meter()
    for _ in range(300):
        train_step(model, optimizer, losses, meter)
        watched()


def told(report):
    print("told", *(suspect.fingerprint for suspect in report.suspects))


if __name__ == "__main__" and "--callback" in sys.argv:
    with leakcheck.Sentinel(steps=200, on_leak=told) as sentinel:
        train(sentinel.step)
    told(sentinel.report())
elif __name__ == "__main__":
    train(lambda: None)
"""
TESTS = """\
import loop
import pytest

def test_by_the_fixture(leak_sentinel):
    loop.train(leak_sentinel.step)

@pytest.mark.leakcheck
def test_by_the_marker():
    loop.train(lambda: None)
"""


def done(folder: Path, *command: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    finished = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True
    )
    return finished.stdout


@pytest.mark.parametrize(
    ("leak", "holder"),
    [
        ("log.append(loss)", "local `losses` in train()"),
        pytest.param(
            "values.append(loss.detach())",
            "attribute `Meter.values`, from local `meter` in train()",
            marks=pytest.mark.slow,
        ),
        pytest.param("gathered.append(loss)", "global `gathered`", marks=pytest.mark.slow),
    ],
    ids=["argument", "attribute", "global"],
)
def test_the_same_loop_has_the_same_leak_however_it_is_watched(tmp_path, leak, holder):
    (tmp_path / "loop.py").write_text(PROGRAM.format(leak=leak))
    (tmp_path / "test_loop.py").write_text(TESTS)

    done(tmp_path, "-m", "leakcheck", "run", "--json", "run.json", "loop.py")
    by_callback = done(tmp_path, "loop.py", "--callback")
    by_pytest = done(tmp_path, "-m", "pytest", "-p", "no:cacheprovider", "test_loop.py")

    (suspect,) = json.loads((tmp_path / "run.json").read_text())["suspects"]
    assert suspect["holder"] == holder
    assert {*re.findall(r"told (\w+)", by_callback)} == {suspect["fingerprint"]}
    # a test's message is printed again in pytest's summary, whole where CI is set
    assert {*re.findall(r", id (\w+)", by_pytest)} == {suspect["fingerprint"]}
    assert re.search(r"\b1 failed, 1 passed|\b2 failed|\b1 passed, 2 errors", by_pytest)


def test_two_leaks_of_one_function_have_two_ids(tmp_path):
    leaks = "log.append(loss); gathered.append(bytearray(5000))"
    (tmp_path / "loop.py").write_text(PROGRAM.format(leak=leaks))

    done(tmp_path, "-m", "leakcheck", "run", "--json", "run.json", "loop.py")

    suspects = json.loads((tmp_path / "run.json").read_text())["suspects"]
    assert {each["holder"] for each in suspects} == {
        "local `losses` in train()",
        "global `gathered`",
    }
    assert len({each["fingerprint"] for each in suspects}) == 2
