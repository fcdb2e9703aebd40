"""Graphs that are kept through a loop and thrown away after it."""

from __future__ import annotations

import pytest

from leakcheck.static import registry
from leakcheck.static.engine import check_source

EMBED = """
import torch
import torch.nn as nn

def embed(net: nn.Module, loader):
    outs = []
    for x, _ in loader:
        outs.append(net(x))
    return torch.cat(outs).detach()
"""
TOTAL = """
import torch
import torch.nn as nn

def average(net: nn.Module, xs, n):
    total = 0
    for i in range(n):
        total = total + net(xs[i]).sum()
    mean = total / n
    print(mean.data)
"""
ANNEALED = """
import torch
from torch.autograd import grad

def anneal(model, x, schedule, move, log_normal):
    def energy(z, t):
        return -log_normal(model.decode(z), x, t)

    def force(z, t):
        return grad(energy(z, t).sum(), z)[0]

    z = torch.randn(len(x), 8).requires_grad_()
    weight = torch.zeros(len(x))
    while schedule:
        weight += energy(z, schedule.pop())
        z = move(z, force)
    return weight.data
"""


def lines(source: str) -> list[str]:
    rules = [rule for rule in registry.default_rules() if rule.code.startswith("LK1")]
    return [f.context.strip() for f in check_source(source, "a.py", rules)]


def test_outputs_that_are_detached_after_the_loop_kept_their_graphs_through_it():
    assert lines(EMBED) == ["outs.append(net(x))"]


def test_a_total_that_is_read_without_its_graph_kept_it_for_nothing():
    assert lines(TOTAL) == ["total = total + net(xs[i]).sum()"]


def test_autograd_grad_of_one_callers_result_shows_the_graph_of_anothers():
    assert lines(ANNEALED) == ["weight += energy(z, schedule.pop())"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("net(x))", "net(x).detach())"),
        ("cat(outs).detach()", "cat(outs)"),
        ("cat(outs).detach()", "cat(outs).cpu().numpy()"),  # fails where there is a graph
        ("    outs = []", "    torch.set_grad_enabled(False)\n    outs = []"),
        ("def embed", "@torch.no_grad()\ndef embed"),
        ("    return", "    print(torch.cat(outs).sum())\n    net.fit(outs)\n    return"),
        ("    return", "    net.kept = torch.cat(outs)\n    return"),
        ("    return", "    if net.training:\n        return outs\n    return"),
        ("    return", "    torch.cat(outs).sum().backward()\n    return"),
        ("    return", "    (g,) = torch.autograd.grad(torch.cat(outs).sum(), net.w)\n    return"),
        ("loader:", "range(3):\n        x = net.inputs"),
        ("loader:", "net.heads:"),
        ("_ in loader:", "_ in loader:\n        torch.cat([net(x)]).detach()\n        outs = []"),
    ],
)
def test_graphs_that_are_cut_in_time_or_needed_are_no_leak(old, new):
    source = EMBED.replace(old, new)
    if new in ("range(3):\n        x = net.inputs", "net.heads:"):
        source = source.replace("for x, _ in", "for x in")
    assert source != EMBED
    assert lines(source) == []


@pytest.mark.parametrize(
    "last",
    [
        "print(mean.item())",  # works without a graph, too
        "print(float(mean))",
        "return mean",
        "return {'mean': mean, 'value': mean.detach()}",
        "net.optimize(mean)\n    print(mean.data)",
        "net.losses.append(mean)\n    print(mean.data)",
        "mean.backward()\n    print(mean.data)",
    ],
)
def test_a_total_whose_graph_may_be_wanted_is_no_leak(last):
    assert lines(TOTAL.replace("print(mean.data)", last)) == []


@pytest.mark.parametrize(
    "rest",
    [
        "@torch.no_grad()\ndef main(net, loader):\n    return embed(net, loader)",
        "def main(net, loader):\n    with torch.no_grad():\n        return embed(net, loader)",
        "def main(net, loader):\n    net.requires_grad_(False)\n    return embed(net, loader)",
    ],
)
def test_a_loop_that_the_file_runs_without_gradients_keeps_none(rest):
    assert lines(f"{EMBED}\n{rest}\n") == []


def test_the_heads_of_one_forward_are_not_a_long_loop():
    source = """
    import torch
    import torch.nn as nn

    class Heads(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.n = n
            self.layer = nn.Linear(8, 8)

        def forward(self, x):
            outs = []
            for i in range(self.n):
                outs.append(self.layer(x))
            return torch.cat(outs).detach()
    """
    assert lines("\n".join(line[4:] for line in source.splitlines())) == []
