"""An average of a model's parameters, updated in place: with its graph, or without?"""

from __future__ import annotations

import copy

import pytest
import torch

from leakcheck.static import registry
from leakcheck.static.engine import check_source

LOOP = """
import copy
import torch

def train(model, loader, opt, crit):
    ema = copy.deepcopy(model)
    for p in ema.parameters():
        p.requires_grad_(False)
    for x, y in loader:
        loss = crit(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        for s, p in zip(ema.parameters(), model.parameters()):
            UPDATE
"""
OBJECT = """
import copy
import torch

class Average:
    def __init__(self, model):
        self.copy = copy.deepcopy(model).requires_grad_(False)

    def update(self, model):
        for (_, s), (_, p) in zip(self.copy.named_parameters(), model.named_parameters()):
            s.mul_(0.9).add_(p, alpha=0.1)

def train(model, loader, opt, meter):
    average = Average(model)
    for x in loader:
        loss = model(x).sum()
        loss.backward()
        opt.step()
        average.update(model)
"""


def lines(source: str) -> list[str]:
    rule = [rule for rule in registry.default_rules() if rule.slug == "in-place-on-grad"]
    return [f.context.strip() for f in check_source(source, "a.py", rule)]


@pytest.mark.parametrize(
    "update",
    [
        "s.mul_(0.9).add_(p, alpha=0.1)",
        "s.mul_(0.9).add_(0.1 * p)",
        "s.lerp_(p, 0.1)",
        "s.copy_(0.9 * s + 0.1 * p)",
    ],
)
def test_a_copy_that_takes_in_the_model_with_its_graph_grows(update):
    assert lines(LOOP.replace("UPDATE", update)) == [update]


@pytest.mark.parametrize(
    "update",
    [
        "s.data.mul_(0.9).add_(p.data, alpha=0.1)",
        "s.mul_(0.9).add_(p.data, alpha=0.1)",
        "s.mul_(0.9).add_(p.detach(), alpha=0.1)",
        "s.lerp_(p.detach().clone(), 0.1)",
        "s.copy_(p)",
        "s.copy_(0.9 * s.data + 0.1 * p)",
        "s.data = 0.9 * s + 0.1 * p",
        "s.mul_(0.9)",
        "with torch.no_grad(): s.mul_(0.9).add_(p, alpha=0.1)",
    ],
)
def test_a_copy_that_takes_in_numbers_does_not(update):
    assert lines(LOOP.replace("UPDATE", update)) == []


def test_an_object_that_keeps_the_copy_is_followed_to_the_training_loop():
    assert lines(OBJECT) == ["s.mul_(0.9).add_(p, alpha=0.1)"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    def update", "    @torch.no_grad()\n    def update"),
        (
            "        average.update(model)",
            "        with torch.no_grad():\n            average.update(model)",
        ),
        ("        average.update(model)", "        meter.update(model)"),  # may be another's
        ("zip(self.copy.named", "zip(model.named"),
        ("        loss.backward()\n", ""),
    ],
)  # fmt: skip
def test_an_update_that_may_run_without_gradients_is_passed_over(old, new):
    assert old in OBJECT
    assert lines(OBJECT.replace(old, new)) == []


def test_the_copys_graph_does_grow_and_torch_refuses_if_it_requires_grad():
    model = torch.nn.Linear(2, 2, bias=False)
    ema = copy.deepcopy(model).requires_grad_(False)
    for _ in range(3):
        ema.weight.mul_(0.9).add_(model.weight, alpha=0.1)

    depth, node = 0, ema.weight.grad_fn
    while node is not None:
        depth, node = depth + 1, next((f for f, _ in node.next_functions if f), None)
    assert depth >= 5

    with pytest.raises(RuntimeError, match="in-place"):
        copy.deepcopy(model).weight.mul_(0.9)
