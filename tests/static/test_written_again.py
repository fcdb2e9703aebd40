"""State that comes back to its attribute by a local name, or by a name that is a string."""

import pytest

from leakcheck.static import registry
from leakcheck.static.engine import check_source

MODULE = """
import torch
from torch import nn


class Normalized(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(size, size)
        self.cell = nn.GRUCell(size, size)
        self.register_buffer("average", torch.zeros(size))
        self.state = torch.zeros(1, size)

    def forward(self, x):
        y = self.layer(x)
        mean = y.mean(0)
"""


def told(*lines):
    """The rules that flag the forward of these lines, each with its line."""
    body = "".join(f"        {line}\n" for line in lines)
    source = f"{MODULE}{body}        return y\n"
    rules = [rule for rule in registry.builtin_rules() if rule.code.startswith("LK1")]
    return [(f.rule, f.context.strip()) for f in check_source(source, "a.py", rules)]


MIXED = "0.9 * self.average + 0.1 * mean"


@pytest.mark.parametrize(
    "written",
    [
        ["kept = " + MIXED, "self.average = kept"],
        ["kept = " + MIXED, "self.average = kept.clone()"],
        [f'setattr(self, "average", {MIXED})'],
        [f'self.register_buffer("average", {MIXED})'],
        ["old = self.average", "self.average = 0.9 * old + 0.1 * mean"],
    ],
)
def test_statistics_that_come_back_by_another_name_are_told_and_without_their_graph_are_not(
    written,
):
    assert told(*written) == [("undetached-statistics", written[-1])]
    assert told(*(line.replace("mean", "mean.detach()") for line in written)) == []
    assert told("with torch.no_grad():", *(f"    {line}" for line in written)) == []


def test_an_attribute_that_is_named_by_a_variable_is_one_place():
    helper = """
    def follow(self, name, new):
        old = getattr(self, name)
        setattr(self, name, old * 0.9 + NEW * 0.1)
"""
    source = MODULE + '        self.follow("average", mean)\n        return y\n' + helper
    rules = [rule for rule in registry.builtin_rules() if rule.code == "LK106"]

    def flagged(text):
        return [f.context.strip() for f in check_source(text, "a.py", rules)]

    kept = "setattr(self, name, old * 0.9 + new * 0.1)"
    assert flagged(source.replace("NEW", "new")) == [kept]
    assert flagged(source.replace("NEW", "new.detach()")) == []


def test_a_state_that_comes_back_by_a_local_name_is_carried():
    assert told("new = self.cell(y, self.state)", "self.state = new") == [
        ("carried-state", "self.state = new")
    ]
    assert told("new = self.cell(y, self.state.detach())", "self.state = new") == []
    assert told("new = self.cell(y, self.state)", "self.state = new.detach()") == []


def test_the_average_of_a_models_parameters_in_a_dict_is_told_unless_it_reads_their_data():
    source = """
class Average:
    def __init__(self, model, decay):
        self.model, self.decay = model, decay
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

    def update(self):
        for name, p in self.model.named_parameters():
            new = (1 - self.decay) * PARAMETER + self.decay * self.shadow[name]
            self.shadow[name] = new.clone()
"""
    rules = [rule for rule in registry.builtin_rules() if rule.code == "LK106"]

    def flagged(text):
        return [f.context.strip() for f in check_source("import torch\n" + text, "a.py", rules)]

    assert flagged(source.replace("PARAMETER", "p")) == ["self.shadow[name] = new.clone()"]
    assert flagged(source.replace("PARAMETER", "p.data")) == []


def test_a_set_takes_in_each_tensor():
    source = """
import torch

def train(model, loader, optimizer, criterion):
    seen = set()
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.add(KEPT)
"""
    rules = [rule for rule in registry.builtin_rules() if rule.code == "LK102"]

    def flagged(kept):
        found = check_source(source.replace("KEPT", kept), "a.py", rules)
        return [f.context.strip() for f in found]

    assert flagged("loss") == ["seen.add(loss)"]
    assert flagged("loss.item()") == []
