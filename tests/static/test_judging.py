"""Each row of the tables that judge what grows decides about a program."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from leakcheck.static.flow import judging
from leakcheck.static.flow.graphs import graph_leaks
from leakcheck.static.module import Module

BEGIN = """
import torch
from torch import nn

model = nn.Linear(4, 1)
"""


@dataclass(frozen=True)
class Program:
    claim: str
    leak: str | None  # what it is; None if it is harmless
    source: str

    def __str__(self) -> str:
        return self.claim


PROGRAMS = [
    Program(
        "a list of parameters carries no graph",
        None,
        """
names = []
for name, p in model.named_parameters():
    names.append([q for q in model.named_parameters() if q[1].requires_grad])
""",
    ),
    Program(
        "a sum that is named for what was counted is of numbers, whatever else the model returns",
        None,
        """
counted_acc = 0
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in loader:
    loss, share = model(x, y)
    loss.backward()
    optimizer.step()
    counted_acc += share
""",
    ),
    Program(
        "a sum of what the model returns beside its loss keeps the graph",
        "accumulator",
        """
total = 0
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in loader:
    loss, share = model(x, y)
    loss.backward()
    optimizer.step()
    total += share
""",
    ),
    Program(
        "an object keeps inputs that nothing made, and no graph with them",
        None,
        """
class Saliency:
    def __init__(self):
        self.maps = []

    def attribute(self, images):
        images = images.detach().requires_grad_()
        model(images).sum().backward()
        self.maps.append({"image": images})
""",
    ),
    Program(
        "a state that only may have a graph is carried",
        None,
        """
class Net(nn.Module):
    def forward(self, xs, h):
        for x in xs:
            h = torch.tanh(x + h)
        return h
""",
    ),
    Program(
        "backward goes through all earlier turns",
        "carried",
        """
h = torch.zeros(1)
for x in loader:
    h = model(x + h)
    loss = h.mean()
    loss.backward(retain_graph=True)
""",
    ),
    Program(
        "an evaluation carries its state with its graph",
        "carried",
        """
cell = nn.GRUCell(4, 4)
def evaluate(loader):
    h = torch.zeros(1, 4)
    for x in loader:
        h = cell(x, h)
        print(h)
""",
    ),
    Program(
        "a state is carried and differentiated after the loop",
        None,
        """
cell = nn.GRUCell(4, 4)
h = torch.zeros(1, 4)
for x in xs:
    h = cell(x, h)
h.sum().backward()
""",
    ),
    Program(
        "a list is differentiated as a whole",
        None,
        """
for epoch in range(3):
    losses = []
    for x in loader:
        losses.append(model(x).mean())
    torch.stack(losses).sum().backward()
""",
    ),
    Program(
        "one backward for all of the data",
        "epoch-long",
        """
total = 0
for x in loader:
    total = total + model(x).mean()
total.backward()
""",
    ),
    Program(
        "one backward for a few terms",
        None,
        """
total = 0
for k in range(3):
    total = total + model(torch.ones(4)).mean()
total.backward()
""",
    ),
    Program(
        "a set takes in what it may hold already",
        None,
        """
def groups(modules):
    chosen = set()
    for each in modules:
        chosen.update(list(each.parameters()))
    return chosen
""",
    ),
    Program(
        "losses in a list beside backward",
        "collection",
        """
losses = []
for x in loader:
    loss = model(x).mean()
    loss.backward()
    losses.append(loss)
""",
    ),
    Program(
        "outputs are joined and only then detached",
        "collection",
        """
outs = []
for x in loader:
    outs.append(model(x))
outs = torch.cat(outs).detach()
""",
    ),
    Program(
        "an evaluation returns outputs with their graphs",
        "evaluation",
        """
def evaluate(loader):
    outs = []
    for x in loader:
        outs.append(model(x))
    return outs
""",
    ),
    Program(
        "a function that does not train returns outputs",
        None,
        """
def collect(xs):
    outs = []
    for x in xs:
        outs.append(model(x))
    return outs
""",
    ),
    Program(
        "a tensor that requires grad is updated and returned",
        None,
        """
def f(layers, x):
    w = torch.zeros(3, requires_grad=True)
    for step in range(9):
        w = w * 0.9
    return w
""",
    ),
    Program(
        "a tensor that requires grad is updated and not used",
        "in-place",
        """
w = torch.zeros(3, requires_grad=True)
for x in loader:
    w = w - 0.1 * x
""",
    ),
    Program(
        "each turn updates another slot",
        None,
        """
w = torch.zeros(3, requires_grad=True)
weights = {"a": w * 2, "b": w * 3}
for name in names:
    weights[name] *= 0.5
""",
    ),
    Program(
        "the same slot is updated in every turn",
        "in-place",
        """
w = torch.zeros(3, requires_grad=True)
weights = {"a": w * 2, "b": w * 3}
for x in loader:
    weights["a"] *= x
""",
    ),
    Program(
        "a tensor that requires grad is chosen from, and a caller has gradients off",
        None,
        """
class Generator(nn.Module):
    @torch.no_grad()
    def generate(self, steps):
        return self.search(steps)

    def search(self, steps):
        scores = torch.zeros(3, requires_grad=True)
        for step in steps:
            scores = scores - 0.1 * step
""",
    ),
    Program(
        "a total of losses beside backward",
        "accumulator",
        """
total = 0
for x in loader:
    loss = model(x).mean()
    loss.backward()
    total = total + loss
""",
    ),
    Program(
        "a total is read without its graph after the loop",
        "accumulator",
        """
def average(net: nn.Module, xs, n):
    total = 0
    for i in range(n):
        total = total + net(xs[i]).sum()
    print((total / n).data)
""",
    ),
    Program(
        "an evaluation returns a total with its graph",
        "evaluation",
        """
def evaluate(loader):
    total = 0
    for x in loader:
        total = total + model(x).mean()
    return total
""",
    ),
    Program(
        "an endless loop adds to a total",
        "accumulator",
        """
total = 0
while True:
    total = total + model(torch.randn(3, 4)).sum()
""",
    ),
    Program(
        "a method that sets the object up",
        None,
        """
class T:
    def __init__(self):
        self.kept = []
    def build_table(self, x):
        self.kept.append(model(x))
""",
    ),
    Program(
        "a metric adds up what it is given",
        "meter",
        """
from ignite.metrics import Metric
class M(Metric):
    def update(self, output):
        self.total = self.total + output
""",
    ),
    Program(
        "a meter adds up what nothing is known of",
        None,
        """
class Meter:
    def __init__(self):
        self.total = 0
    def add(self, value):
        self.total = self.total + value
""",
    ),
    Program(
        "a method detaches its total at its end",
        None,
        """
class T:
    def __init__(self):
        self.total = 0
    def step(self, x):
        loss = model(x).mean()
        loss.backward()
        self.total = self.total + loss
        self.total = self.total.detach()
""",
    ),
    Program(
        "a method calls backward on its total",
        None,
        """
class T:
    def __init__(self):
        self.total = 0
    def step(self, x):
        self.total = self.total + model(x).mean()
        self.total.backward(retain_graph=True)
""",
    ),
    Program(
        "a caller switches autograd off",
        None,
        """
class T:
    def __init__(self):
        self.kept = []
    def step(self, x):
        out = model(x)
        out.mean().backward()
        self.kept.append(out)
def run(t, loader):
    with torch.no_grad():
        for x in loader:
            t.step(x)
""",
    ),
    Program(
        "a training step of Lightning keeps its losses",
        "step-output",
        """
import lightning.pytorch as pl
class L(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 1)
        self.outs = []
    def training_step(self, batch, i):
        loss = self.lin(batch).mean()
        self.outs.append(loss)
        return loss
""",
    ),
    Program(
        "a module carries its state from call to call",
        "carried",
        """
class R(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
        self.h = None
    def forward(self, x):
        self.h = self.cell(x, self.h)
        return self.h
""",
    ),
    Program(
        "a module carries its state until it begins anew",
        None,
        """
class R(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
        self.h = None
    def forward(self, x):
        self.h = self.cell(x, self.h)
        return self.h
    def begin(self):
        self.h = None
""",
    ),
    Program(
        "another method renews the list",
        None,
        """
class T:
    def __init__(self):
        self.losses = []
    def step(self, x):
        loss = model(x).mean()
        loss.backward()
        self.losses.append(loss)
    def on_end(self):
        self.losses = []
""",
    ),
    Program(
        "a trainer keeps its losses",
        "collection",
        """
class T:
    def __init__(self):
        self.losses = []
    def step(self, x):
        loss = model(x).mean()
        loss.backward()
        self.losses.append(loss)
""",
    ),
    Program(
        "a module keeps its outputs",
        "collection",
        """
class N(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 1)
        self.seen = []
    def forward(self, x):
        y = self.lin(x)
        self.seen.append(y)
        return y
""",
    ),
    Program(
        "an object that does not train keeps outputs",
        None,
        """
class T:
    def __init__(self):
        self.lin = nn.Linear(4, 1)
        self.seen = []
    def step(self, x):
        self.seen.append(self.lin(x))
""",
    ),
    Program(
        "another method differentiates the statistics of a forward",
        None,
        """
class T(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.mean = torch.zeros(4)
    def forward(self, x):
        y = self.lin(x)
        self.mean = 0.9 * self.mean + 0.1 * y.mean(0)
        return y
    def penalty(self):
        return self.mean
""",
    ),
    Program(
        "a forward adds outputs to a buffer",
        "statistics",
        """
class N(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.register_buffer("mean", torch.zeros(4))
    def forward(self, x):
        y = self.lin(x)
        self.mean = 0.9 * self.mean + 0.1 * y.mean(0)
        return y
""",
    ),
    Program(
        "a trainer adds up its losses",
        "accumulator",
        """
class T:
    def __init__(self):
        self.total = 0
    def step(self, x):
        loss = model(x).mean()
        loss.backward()
        self.total = self.total + loss
""",
    ),
    Program(
        "an argument decides whether a total has a graph",
        None,
        """
class T:
    def __init__(self):
        self.total = 0
    def add(self, x):
        self.total = self.total + x * model(x)
    def get(self):
        print(self.total)
""",
    ),
    Program(
        "another method returns the total",
        None,
        """
class T:
    def __init__(self):
        self.total = 0
        self.w = nn.Parameter(torch.ones(3))
    def add(self):
        self.total = self.total + (self.w * 2).sum()
    def get(self):
        return self.total
""",
    ),
    Program(
        "another method begins the total anew",
        None,
        """
class T:
    def __init__(self):
        self.total = 0
        self.w = nn.Parameter(torch.ones(3))
    def add(self):
        self.total = self.total + (self.w * 2).sum()
    def clear(self):
        self.total = 0
""",
    ),
    Program(
        "an object adds up a parameter that nothing differentiates",
        "statistics",
        """
class T:
    def __init__(self):
        self.w = nn.Parameter(torch.ones(3))
        self.total = 0
    def add(self):
        self.total = self.total + (self.w * 2).sum()
""",
    ),
    Program(
        "a training step returns outputs beside the loss",
        "step-output",
        """
import lightning.pytorch as pl
class L(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 1)
    def training_step(self, batch, i):
        y = self.lin(batch)
        return {"loss": y.mean(), "y": y}
    def training_epoch_end(self, outputs):
        pass
""",
    ),
    Program(
        "a function logs what nothing is known of",
        None,
        """
history = []
def log(x):
    history.append(x)
""",
    ),
    Program(
        "a function that does not train logs outputs",
        None,
        """
history = []
def log(x):
    history.append(model(x))
""",
    ),
    Program(
        "a function differentiates its global total",
        "epoch-long",
        """
total = 0
def train(loader):
    global total
    for x in loader:
        total = total + model(x).mean()
    total.backward()
""",
    ),
    Program(
        "a function detaches its global total",
        None,
        """
total = 0
def train(x):
    global total
    loss = model(x).mean()
    loss.backward()
    total = total + loss
    total = total.detach()
""",
    ),
    Program(
        "another function clears the list",
        None,
        """
history = []
def train(x):
    loss = model(x).mean()
    loss.backward()
    history.append(loss)
def end():
    history.clear()
""",
    ),
    Program(
        "a training function logs its losses",
        "collection",
        """
history = []
def train(x):
    loss = model(x).mean()
    loss.backward()
    history.append(loss)
""",
    ),
    Program(
        "a training function adds up its losses",
        "accumulator",
        """
total = 0
def train(x):
    global total
    loss = model(x).mean()
    loss.backward()
    total = total + loss
""",
    ),
    Program(
        "a pipeline takes its sample from step to step with the graphs of all of them",
        "carried",
        """
from diffusers import DiffusionPipeline

class Painter(DiffusionPipeline):
    def __call__(self, latents):
        for t in self.scheduler.timesteps:
            noise = self.unet(latents, t).sample
            latents = self.scheduler.step(noise, t, latents).prev_sample
        return latents
""",
    ),
    Program(
        "a stand-in catches the inputs of a model that is run for nothing else",
        "evaluation",
        """
def calibrate(model, layers, batches):
    caught = []

    class Catcher(nn.Module):
        def forward(self, x):
            caught.append(x)
            raise ValueError

    layers[0] = Catcher()
    for batch in batches:
        try:
            model(batch)
        except ValueError:
            pass
    return caught
""",
    ),
]
TABLES = [judging.IN_LOOP, judging.IN_METHOD, judging.AROUND_FUNCTION]


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_a_place_is_what_the_tables_say(program):
    found = {leak.leak for leak in graph_leaks(Module(BEGIN + program.source))}

    assert found == ({program.leak} if program.leak else set())


def test_each_row_decides_about_one_of_these_programs(monkeypatch):
    decided = []

    def deciding_row(table, place):
        row = next((row for row in table if row.holds(place)), None)
        decided.append(row)
        return row

    monkeypatch.setattr(judging, "deciding_row", deciding_row)
    for program in PROGRAMS:
        graph_leaks(Module(BEGIN + program.source))

    assert [row.leak for table in TABLES for row in table if row not in decided] == []
