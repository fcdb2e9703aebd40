"""Lists that are handed to a function which fills them, and lists that are made anew longer."""

from __future__ import annotations

import pytest

from leakcheck.static import registry
from leakcheck.static.engine import check_source
from leakcheck.static.project import Project

STEP = """
import torch

def step(model, batch, opt, history):
    loss = model(batch).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    history.append(loss)

def fit(model, loader, opt):
    history = []
    for batch in loader:
        step(model, batch, opt, history)
    print(len(history))
"""
LOG = """
import torch
from collections import defaultdict

def log(history, key, value):
    history[key].append(value)

def fit(model, loader, opt):
    history = defaultdict(list)
    for batch in loader:
        loss = model(batch).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        log(history, "loss", value=loss)
"""
LONGER = """
import torch

def fit(model, loader, opt):
    history = []
    for batch in loader:
        loss = model(batch).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        LINE
"""
CLOSURE = """
import torch

def fit(model, x):
    opt = torch.optim.LBFGS(model.parameters())
    history = []
    def closure():
        opt.zero_grad()
        loss = model(x).sum()
        loss.backward()
        return loss
    for step in range(100):
        history.append(opt.step(closure))
"""
CARRIED = """
import torch

def fit(rnn, loader, opt, crit):
    state = torch.zeros(1, 8, 16)
    for x, y in loader:
        out, state = rnn(x, state)
        loss = crit(out, y)
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()
"""


def lines(source: str) -> list[str]:
    rules = [rule for rule in registry.default_rules() if rule.code.startswith("LK1")]
    return [f.context.strip() for f in check_source(source, "a.py", rules)]


def test_a_list_handed_to_the_function_that_fills_it_grows_for_the_caller():
    assert lines(STEP) == ["step(model, batch, opt, history)"]
    assert lines(LOG) == ['log(history, "loss", value=loss)']


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("append(loss)", "append(loss.item())"),
        ("append(loss)", "append(len(batch))"),
        ("    history.append", "    history.clear()\n    history.append"),
        ("    history.append", "    history = []\n    history.append"),
        ("opt, history)\n    print", "opt, history)\n        history.clear()\n    print"),
        ("opt, history)\n    print", "opt, [])\n    print"),
        ("    history = []\n    for", "    for"),
        ("        step(", "        history = []\n        step("),
    ],
)
def test_a_list_handed_over_is_no_leak_if_it_is_new_emptied_or_without_graphs(old, new):
    assert old in STEP
    assert lines(STEP.replace(old, new)) == []


@pytest.mark.parametrize(
    "line",
    ["history = history + [loss]", "history = [*history, loss]", "history = [loss] + history"],
)
def test_a_list_made_anew_with_one_more_grows_as_well(line):
    assert lines(LONGER.replace("LINE", line)) == [line]


@pytest.mark.parametrize(
    "line",
    [
        "history = history + [loss.item()]",
        "history = [loss, loss]",
        "history = (history + [loss])[-10:]",
        "history = [*history, loss][-10:]",
        "history = history[-9:] + [loss]",
    ],
)
def test_a_list_made_anew_without_graphs_or_cut_back_does_not(line):
    assert lines(LONGER.replace("LINE", line)) == []


def test_an_optimizer_gives_back_the_loss_of_its_closure():
    assert lines(CLOSURE) == ["history.append(opt.step(closure))"]
    assert lines(CLOSURE.replace("return loss", "return loss.item()")) == []
    assert lines(CLOSURE.replace("(closure))", "(closure).item())")) == []


def test_a_state_is_carried_through_a_criterion_that_is_handed_in():
    assert lines(CARRIED) == ["out, state = rnn(x, state)"]
    assert lines(CARRIED.replace("rnn(x, state)", "rnn(x, state.detach())")) == []


CALLBACKS = """
import torch

class History:
    def __init__(self):
        self.losses = []

    def on_batch_end(self, loss):
        self.losses.append(KEPT)

class Trainer:
    def __init__(self, model, opt):
        self.model, self.opt = model, opt
        self.callbacks = [History()]

    def fit(self, loader):
        for batch in loader:
            loss = self.model(batch).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            for callback in self.callbacks:
                callback.on_batch_end(loss)
"""


@pytest.mark.parametrize(
    ("kept", "lines"), [("loss", ["self.losses.append(loss)"]), ("loss.item()", [])]
)
def test_callbacks_in_a_list_of_self_keep_what_they_are_handed(kept, lines):
    rules = [rule for rule in registry.builtin_rules() if rule.slug == "undetached-meter"]

    found = check_source(CALLBACKS.replace("KEPT", kept), "a.py", rules)

    assert [finding.context.strip() for finding in found] == lines


INJECTED = """
import torch

def fit(model, loader, opt, callbacks):
    for batch in loader:
        loss = model(batch).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        for callback in callbacks:
            callback.on_batch_end(GIVEN)
"""
HISTORY = """
class History:
    def __init__(self):
        self.losses = []

    def on_batch_end(self, loss):
        self.losses.append(loss)
"""
SILENT = """
class Silent:
    def on_batch_end(self, loss):
        pass
"""


@pytest.mark.parametrize(
    ("given", "files", "confidences"),
    [
        ("loss", {"history.py": HISTORY}, ["medium"]),
        ("loss.detach()", {"history.py": HISTORY}, []),
        ("loss", {"history.py": HISTORY, "test_history.py": SILENT}, ["medium"]),
        ("loss", {"history.py": HISTORY, "silent.py": SILENT}, []),
        ("loss", {"history.py": HISTORY.replace("append(loss)", "append(loss.item())")}, []),
        (
            "loss",
            {"history.py": HISTORY + "    def dump(self):\n        self.losses.clear()\n"},
            [],
        ),
    ],
)
def test_an_object_unknown_is_of_the_one_class_that_has_the_method(given, files, confidences):
    rules = [rule for rule in registry.builtin_rules() if rule.slug == "undetached-meter"]
    source = INJECTED.replace("GIVEN", given)

    found = check_source(source, "a.py", rules, Project({"a.py": source, **files}))

    assert [finding.confidence for finding in found] == confidences
