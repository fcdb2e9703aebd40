"""Functions that put what they are given into a list or a total around them."""

from __future__ import annotations

import pytest

from leakcheck.static import registry
from leakcheck.static.engine import check_source

LOCAL = """
import torch

def train(model, loader, opt):
    history = []
    def log(value):
        history.append(value)
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        log(loss)
    print(len(history))
"""
GLOBAL = """
from collections import defaultdict
import torch

SEEN = defaultdict(list)

def note(key, value):
    SEEN[key].append(value)

def train(model, loader):
    for x in loader:
        loss = model(x).sum()
        loss.backward()
        note("loss", loss)
"""
MADE = """
import torch

def make_log():
    seen = []
    def log(value):
        seen.append(value)
    def show():
        print(seen)
    return log, show

def train(model, loader):
    log, show = make_log()
    for x in loader:
        loss = model(x).sum()
        loss.backward()
        log(loss)
"""
TOTAL = """
import torch

def train(model, loader):
    total = 0.0
    def add(value):
        nonlocal total
        total += value
    for x in loader:
        loss = model(x).sum()
        loss.backward()
        add(loss)
    print(total)
"""


def lines(source: str) -> list[str]:
    rules = [rule for rule in registry.default_rules() if rule.code.startswith("LK1")]
    return [f.context.strip() for f in check_source(source, "a.py", rules)]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (LOCAL, "history.append(value)"),
        (GLOBAL, "SEEN[key].append(value)"),
        (MADE, "seen.append(value)"),
        (TOTAL, "total += value"),
    ],
)
def test_a_function_that_keeps_the_losses_it_is_given_is_a_meter(source, line):
    assert lines(source) == [line]


@pytest.mark.parametrize("source", [LOCAL, GLOBAL, MADE, TOTAL])
@pytest.mark.parametrize("cut", ["item", "detach"])
def test_it_keeps_no_graph_of_values_that_have_none(source, cut):
    for name in ("log(loss)", '"loss", loss)', "add(loss)"):
        source = source.replace(name, name.replace("loss)", f"loss.{cut}())"))
    assert lines(source) == []


@pytest.mark.parametrize("source", [LOCAL, GLOBAL, MADE, TOTAL])
def test_it_keeps_no_graph_when_it_cuts_it_itself(source):
    for name in (".append(value)", "+= value"):
        source = source.replace(name, name.replace("value", "float(value)"))
    assert lines(source) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("print(len(history))", "torch.stack(history).sum().backward()"),
        ("        log(loss)", "        log(loss)\n        history.clear()"),
        ("        log(loss)", "        log(loss)\n        del history[:-100]"),
        ("        log(loss)", "        log(loss)\n        history[:] = history[-100:]"),
        ("        log(loss)", "        log(loss)\n        history = []"),
        ("    print(len(history))", "    del history"),
        ("        loss.backward()\n", ""),
        ("history.append(value)", "history.append(str(value))"),
        ("log(value):\n", "log(value):\n        history = []\n"),
        ("    for x, y in loader:", "    log = print\n    for x, y in loader:"),
        ("log(loss)", "log(len(x))"),
        ("history = []\n", "history = deque(maxlen=100)\n"),
    ],
)
def test_a_list_that_is_emptied_used_or_not_filled_with_graphs_is_no_leak(old, new):
    assert old in LOCAL
    assert lines(LOCAL.replace(old, new)) == []


def test_log_probabilities_kept_for_the_end_of_an_episode_are_no_leak():
    source = """
import torch
from torch.distributions import Categorical

SAVED = []

def act(policy, state):
    chosen = Categorical(policy(state))
    action = chosen.sample()
    keep(chosen.log_prob(action))
    return action

def keep(value):
    SAVED.append(value)

def finish(opt):
    loss = torch.stack(SAVED).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    del SAVED[:]

def train(policy, env, opt):
    for episode in range(1000):
        for step in range(100):
            env.step(act(policy, env.state))
        finish(opt)
"""
    assert lines(source) == []


def test_the_callers_own_list_of_that_name_is_another_one():
    source = MADE.replace("(model, loader)", "(model, loader, seen)")
    assert lines(source + "    torch.stack(seen).sum().backward()\n") == ["seen.append(value)"]
