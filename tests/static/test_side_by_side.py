"""Containers that are made side by side, `told, kept = [], []`, are seen like any others."""

from __future__ import annotations

import libcst as cst
import pytest

from leakcheck.static import syntax
from leakcheck.static.engine import check_source

TRAINING = """
import torch

def train(model, loader, criterion):
    {made}
    def step(x, y):
        loss = criterion(model(x), y)
        loss.backward()
        kept.append(loss)
    for x, y in loader:
        step(x, y)
"""
EVALUATION = """
import torch

def evaluate(model, loader, device):
    {made}
    with torch.no_grad():
        for x, y in loader:
            kept.append(model(x.to(device)))
            told.append(y)
    return torch.cat(kept)
"""
HOOKED = """
import torch

def train(model, loader, criterion):
    {made}
    def keep(module, inputs, output):
        kept.append(output)
    handle = model.register_forward_hook(keep)
    for x, y in loader:
        criterion(model(x), y).backward()
    handle.remove()
"""
REMEMBERED = """
import torch
{made}

def features(text, compute):
    if text not in kept:
        kept[text] = compute(text)
    return kept[text]
"""
LIMITED = """
import torch
from collections import deque

class Recorder:
    def __init__(self, model):
        {made}
        self.handle = model.register_forward_hook(self.record)

    def record(self, module, inputs, output):
        self.kept.append(output.detach())

    def close(self):
        self.handle.remove()
"""
LISTS = ("told, kept = [], []", "kept = []; told = []")
DICTS = ("told, kept = {}, {}", "kept = {}; told = {}")
DEQUES = ("self.told, self.kept = [], deque(maxlen=8)", "self.kept = deque(maxlen=8)")


@pytest.mark.parametrize(
    ("program", "made", "rules"),
    [
        (TRAINING, LISTS, ["undetached-collection"]),
        (EVALUATION, LISTS, ["outputs-kept-on-device"]),
        (HOOKED, LISTS, ["hook-keeps-graph", "unguarded-hook-removal"]),
        (REMEMBERED, DICTS, ["growing-cache"]),
        (LIMITED, DEQUES, []),
    ],
)
def test_containers_made_side_by_side_are_seen_as_those_made_one_by_one(program, made, rules):
    found = [[finding.rule for finding in check_source(program.format(made=each))] for each in made]

    assert found == [rules, rules]


@pytest.mark.parametrize(
    ("statement", "pairs"),
    [
        ("a = 1", [("a", "1")]),
        ("a = b = 1", [("a", "1"), ("b", "1")]),
        ("a: list = []", [("a", "[]")]),
        ("a, b = [], {}", [("a", "[]"), ("b", "{}")]),
        ("a, (b, c) = 1, (2, 3)", [("a", "1"), ("b", "2"), ("c", "3")]),
        ("a, b = f()", [("a, b", "f()")]),
        ("a, *b = 1, 2", [("a, *b", "1, 2")]),
        ("a: list", []),
        ("a += 1", []),
    ],
)
def test_a_binding_pairs_each_target_with_what_it_is_given(statement, pairs):
    tree = cst.parse_module(statement)
    line = cst.ensure_type(tree.body[0], cst.SimpleStatementLine)

    found = syntax.bindings(line.body[0])

    assert [tuple(map(tree.code_for_node, pair)) for pair in found] == pairs
