"""The programs the project began with: the leaking ones named to the Node, the detached one not."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("forked_python")

VAL = """\
import torch
val = torch.rand(1)
while True:
    val += torch.rand(1).requires_grad_()
"""

FAR_AWAY = """\
import torch
val = torch.rand(1)
val.requires_grad_()
val = val * 1

def work():
    global val
    while True:
        val += 1

work()
"""

TWIN = """\
import torch
val = torch.rand(1)
while True:
    val += torch.rand(1).requires_grad_().detach()
"""

EPOCH = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.randn(4096, 16)), batch_size=8)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
for epoch in range(3):
    total_loss = 0
    for (data,) in loader:
        total_loss += model(data).mean()
    total_loss.backward()
"""

METER = """\
import torch
from torch import nn

class Meter:
    def __init__(self):
        self.sum = 0.0

    def update(self, value):
        self.sum += value

def train():
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    meter = Meter()
    for step in range(5000):
        loss = model(torch.randn(8, 16)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss)

train()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "line", "holder", "nodes"),
    [
        (VAL, 4, "`val`", 2.0),
        (FAR_AWAY, 9, "`val`", 1.0),
        (EPOCH, 9, "`total_loss`", 7.0),
        (METER, 9, "`Meter.sum`", 5.0),
    ],
    ids=["val", "far-away", "epoch", "meter"],
)
def test_a_graph_that_outlives_its_step_is_named_with_line_holder_and_rate(
    judged, tmp_path, source, line, holder, nodes
):
    done = judged(source, "--json", "report.json")

    report = json.loads((tmp_path / "report.json").read_text())
    suspect = report["suspects"][0]
    assert done.returncode == 1, done.stderr
    assert (report["format"], report["verdict"]) == (1, "growing")
    assert (suspect["kind"], suspect["objects_per_step"]) == ("graph", nodes)
    assert suspect["locations"][0]["line"] == line
    assert holder in suspect["holder"]
    assert report["run"]["steps"] < 300


def test_the_detached_twin_is_steady(judged):
    done = judged(TWIN)

    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("leakcheck: steady in ")


BYTES_OFF_BY = 0.1
# the same loop without leakcheck: the heap in use read after 200 steps and again after 3,000 more
MEASURED = """\
import itertools, psutil, sys
def measured(items=itertools.repeat(None)):
    for step, item in enumerate(itertools.chain.from_iterable(itertools.repeat(items))):
        if step == 200:
            before_bytes = sum(psutil.heap_info()[:2])
        if step == 3200:
            print((sum(psutil.heap_info()[:2]) - before_bytes) / 3000)
            return
        yield item
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "loop", "twin"),
    [
        (VAL, "while True:", "for _ in measured():"),
        (FAR_AWAY, "while True:", "for _ in measured():"),
        (EPOCH, "in loader:", "in measured(loader):"),
        (METER, "in range(5000):", "in measured(range(5000)):"),
    ],
    ids=["val", "far-away", "epoch", "meter"],
)
def test_bytes_a_step_agree_with_a_measurement_without_leakcheck(
    judged, tmp_path, source, loop, twin
):
    psutil = pytest.importorskip("psutil")
    if not hasattr(psutil, "heap_info"):
        pytest.skip("this platform does not tell the heap in use")
    (tmp_path / "twin.py").write_text(MEASURED + source.replace(loop, twin))

    judged(source, "--json", "report.json")
    alone = subprocess.run(
        [sys.executable, "twin.py"], cwd=tmp_path, capture_output=True, text=True, timeout=180
    )

    report = json.loads((tmp_path / "report.json").read_text())
    measured_bytes = float(alone.stdout.split()[0])
    found_bytes = report["suspects"][0]["bytes_per_step"]
    assert abs(found_bytes / measured_bytes - 1) < BYTES_OFF_BY, (found_bytes, measured_bytes)


def test_bisect_answers_with_its_three_statuses(judged):
    assert judged(VAL, "--bisect").returncode == 1
    assert judged(TWIN, "--bisect").returncode == 0
    assert judged("raise SystemExit(1)\n", "--bisect").returncode == 125
