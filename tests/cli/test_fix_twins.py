"""Programs in which the obvious edit ends the leak and changes what the program does.

Of none of these edits may `fix` say that it is proved.
"""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")

HEAD = """\
import torch
from torch import nn

torch.manual_seed(0)
model = nn.{layer}(16, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
"""
LEARN = """\
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LOSS = "    loss = model(torch.randn(4, 16)).pow(2).mean()\n"


def looped(before: str, body: str, after: str = "", steps: int = 150, layer: str = "Linear") -> str:
    """Return a program of a loop."""
    return f"{HEAD.format(layer=layer)}{before}\nfor step in range({steps}):\n{body}{after}"


def epochs(told: str, before: str = "") -> str:
    """Return a program that tells, after each epoch, the mean of all that it kept so far."""
    body = f"{LOSS}{LEARN}    history.append(torch.randn(256))\n".replace("    ", "        ")
    told = told.format(mean="float(torch.stack(list(history)).mean())")
    outer = f"{before}history = []\nfor epoch in range(3):"
    inner = looped(outer, body, f"    {told}\n", steps=60)
    return inner.replace("\nfor step", "\n    for step")


TWINS = {
    # the mean is learned from, and so is what it is made of
    "a mean with a graph in the loss": (
        looped(
            "mean = 0",
            f"{LOSS}    mean = 0.9 * mean + 0.1 * loss\n    optimizer.zero_grad()\n"
            "    (loss + mean).backward(retain_graph=True)\n    optimizer.step()\n",
        ),
        {"item": "changes", "no-grad": "changes"},
        ["losses", "weights", "modules", "gradients"],
    ),
    # backpropagation through all of time, on purpose
    "a state that is carried through": (
        looped(
            "state = torch.zeros(4, 8)",
            "    state = model(torch.randn(4, 16), state)\n    loss = state.pow(2).mean()\n"
            "    optimizer.zero_grad()\n    loss.backward(retain_graph=True)\n",
            "print(float(model.weight_hh.grad.sum()))\n",
            layer="RNNCell",
        ),
        {"carried": "changes"},
        ["stdout", "gradients"],
    ),
    # a later backward needs the graph of a statement that no_grad would make none of
    "a penalty on the past": (
        looped(
            "penalty = torch.zeros(())",
            "    penalty = penalty + 1e-3 * model.weight.abs().sum()\n"
            f"{LOSS}    optimizer.zero_grad()\n"
            "    (loss + penalty).backward(retain_graph=True)\n"
            "    print(float(model.weight.grad.sum()))\n",
        ),
        {"item": "changes", "detach": "changes"},
        ["stdout", "losses", "gradients"],
    ),
    # the run is stopped long before the sum is learned from
    "a sum that is learned from after a long loop": (
        looped(
            "total = 0",
            f"{LOSS}    total += loss\n",
            "(total / step + model.weight.pow(2).sum()).backward()\noptimizer.step()\n",
            steps=100_000,
        ),
        {"item": "unclear", "detach": "unclear"},
        [],
    ),
    "a list that is read whole": (
        looped(
            "rows = []",
            f"{LOSS}{LEARN}    rows.append(torch.randn(256))\n"
            "    if step % 50 == 49:\n        print(float(torch.stack(list(rows)).mean()))\n",
        ),
        {"deque": "changes", "window": "changes"},
        ["stdout"],
    ),
    "a count that is not of what is kept": (
        looped(
            "rows = []",
            f"{LOSS}{LEARN}    rows.append(torch.randn(256))\n"
            "    large = [each for each in rows if each.mean() > 0]\n",
            "print(len(large))\n",
        ),
        {"deque": "changes", "window": "changes"},
        ["stdout"],
    ),
    "a bank of features in the loss": (
        looped(
            "bank = []",
            "    out = model(torch.randn(4, 16))\n    bank.append(out.detach().mean(0))\n"
            f"    loss = (out - torch.stack(bank).mean(0)).pow(2).mean()\n{LEARN}",
        ),
        {"window": "changes"},
        ["losses", "weights", "modules", "gradients"],
    ),
    "hooks that all count": (
        looped(
            "def louder(module, args, output):\n    return output * 1.001\n",
            f"    model.register_forward_hook(louder)\n{LOSS}{LEARN}",
            steps=300,
        ),
        {"handle": "changes", "once": "changes"},
        ["losses", "weights", "modules", "gradients"],
    ),
    "instances that nothing else keeps": (
        looped(
            "class Meter:\n    every = []\n\n    def __init__(self, loss):\n"
            "        self.rows = loss.detach().expand(512).clone()\n"
            "        Meter.every.append(self)\n",
            f"{LOSS}{LEARN}    Meter(loss)\n"
            "    print(sum(float(each.rows[0]) for each in Meter.every))\n",
        ),
        {"weak": "changes", "deque": "changes"},
        ["stdout"],
    ),
    "a history that the next epoch reads": (
        epochs("print({mean})"),
        {"clear": "changes"},
        ["stdout"],
    ),
    "a mean that goes to a log": (
        epochs("logging.info({mean})", "import logging\nlogging.basicConfig(level=logging.INFO)\n"),
        {"clear": "changes"},
        ["stderr"],
    ),
    # no optimizer has stepped yet, and what one would step by is not what it was
    "gradients that accumulate": (
        looped(
            "total = torch.zeros(())",
            f"{LOSS}    loss.backward()\n"
            "    total = total + model(torch.randn(4, 16)).abs().mean()\n"
            "    if step % 10 == 9:\n        (total / 10).backward(retain_graph=True)\n",
        ),
        {"carried": "changes"},
        ["gradients"],
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_an_edit_that_changes_what_a_program_does_is_not_proved(name, forked, tmp_path):
    program, expected, differences = TWINS[name]
    (tmp_path / "train.py").write_text(program)

    options = ["--json", "fix.json", "--size", "8", "--steps", "100", "--grace", "1"]
    ended = forked.run("leakcheck", "fix", *options, "train.py", folder=tmp_path)
    answer = json.loads((tmp_path / "fix.json").read_text())

    tried = {}
    for each in answer["attempts"]:
        tried.setdefault(each["candidate"], each)
    assert ended.returncode == (2 if "unclear" in expected.values() else 1), ended.stdout
    assert answer["chosen"] is None
    assert {each: tried[each]["outcome"] for each in expected} == expected
    first = tried[next(iter(expected))]
    assert [each["what"] for each in first["differences"]] == differences
