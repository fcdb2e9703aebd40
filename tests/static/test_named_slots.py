"""Losses that travel in named slots: namedtuples, dataclasses, attributes of other objects."""

import pytest

from leakcheck.static import registry
from leakcheck.static.engine import check_source

IMPORTS = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from collections import namedtuple
from dataclasses import dataclass
from typing import NamedTuple
"""
TRAIN = """
def step(model, opt, x, y):
    loss = F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return Out(LOSS, len(x))

def fit(model, opt, loader):
    total = count = 0
    for x, y in loader:
        out = step(model, opt, x, y)
        total += out.loss
        count += out.size
    print(total / count)
"""
KINDS = {
    "namedtuple": 'Out = namedtuple("Out", ["loss", "size"])',
    "namedtuple spelled in one string": 'Out = namedtuple("Out", "loss, size")',
    "NamedTuple": "class Out(NamedTuple):\n    loss: torch.Tensor\n    size: int",
    "dataclass": "@dataclass(frozen=True)\nclass Out:\n    loss: torch.Tensor\n    size: int",
}


def lines(source: str) -> list[str]:
    """The text of each line flagged by the rules on graphs."""
    rules = [rule for rule in registry.builtin_rules() if rule.code.startswith("LK1")]
    return [f.context.strip() for f in check_source(IMPORTS + source, "a.py", rules)]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_loss_keeps_its_graph_in_a_named_slot_and_its_neighbours_have_none(kind):
    assert lines(kind + TRAIN.replace("LOSS", "loss")) == ["total += out.loss"]
    assert lines(kind + TRAIN.replace("LOSS", "loss.item()")) == []


def test_a_namedtuple_of_unknown_length_is_unpacked_with_its_graph():
    program = """
Losses = namedtuple("Losses", ["first", "second", "total"])

class Trainer:
    def __init__(self, net: nn.Module, opt):
        self.net, self.opt = net, opt

    def train_step(self, x, y):
        parts = [F.l1_loss(self.net(x), y), F.mse_loss(self.net(x), y)]
        losses = Losses(*parts, sum(parts))
        losses.total.backward()
        self.opt.step()
        return losses

def fit(net, opt, loader):
    trainer = Trainer(net, opt)
    seen = 0
    for x, y in loader:
        first, second, total = trainer.train_step(x, y)
        seen += ADDED
    print(seen)
"""
    assert lines(program.replace("ADDED", "second")) == ["seen += second"]
    assert lines(program.replace("ADDED", "second.item()")) == []


def test_an_attribute_named_data_is_a_place_like_any_other():
    program = """
class Buffer:
    def __init__(self):
        self.data = []

    def push(self, *transition):
        self.data.append(transition)

def run(env, actor: nn.Module, opt):
    buffer = Buffer()
    while True:
        loss = -actor(env.state()).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        buffer.push(env.state(), KEPT)
"""
    assert lines(program.replace("KEPT", "loss")) == ["self.data.append(transition)"]
    assert lines(program.replace("KEPT", "loss.data")) == []


def test_a_module_that_appends_what_it_computes_keeps_every_graph():
    program = """
class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(8, 8)
        self.queue = []

    def forward(self, query, key):
        key = self.encode(key)
        self.queue.append(KEPT)
        return (self.encode(query) * key).sum()
"""
    assert lines(program.replace("KEPT", "key")) == ["self.queue.append(key)"]
    assert lines(program.replace("KEPT", "key.detach()")) == []


def test_a_function_called_at_the_top_level_knows_the_objects_made_before_the_call():
    program = """
class Trainer:
    def __init__(self, model: nn.Module):
        self.model = model

    def train_step(self, x, y):
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        return RETURNED

def fit(loader):
    total = 0
    for x, y in loader:
        total += trainer.train_step(x, y)
    print(total)

if __name__ == "__main__":
    trainer = Trainer(nn.Linear(3, 3))
    fit(load())
"""
    found = ["total += trainer.train_step(x, y)"]
    assert lines(program.replace("RETURNED", "loss")) == found
    assert lines(program.replace("RETURNED", "loss.item()")) == []


def test_what_others_hang_on_a_parameter_is_unknown():
    program = """
def jacobian(model, loss):
    loss.backward()
    return tuple(KEPT for p in model.parameters())

def collect(model, batches):
    kept = []
    for x in batches:
        kept.append(jacobian(model, model(x).sum()))
    return kept
"""
    assert lines(program.replace("KEPT", "p.grad_sample")) == []
    assert lines(program.replace("KEPT", "p * 2")) != []
