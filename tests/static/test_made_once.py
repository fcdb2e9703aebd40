"""A hook whose owner is made once in a program is of low confidence; else it piles up."""

from __future__ import annotations

from textwrap import dedent

import pytest

from leakcheck.static.engine import check_source

WATCHER = """
    import torch

    class Watcher:
        def __init__(self, model):
            self.seen = []
            for layer in model.children():
                layer.register_forward_hook(lambda m, args, out: self.look(out))
        def look(self, output):
            self.seen.append(float(output.mean()))
            print(self.seen.pop())
"""
OWNER = """
    class Owner:
        def __init__(self, model):
            self.watcher = Watcher(model)
            self.optimizer = make(model)
        def ask(self, model, x):
            LINE
            model(x).sum().backward()
"""


def told(text: str) -> list[str]:
    """How sure it is that the hook stays, for the program as a whole."""
    found = check_source(dedent(WATCHER) + dedent(text))
    return [f.confidence for f in found if f.rule.endswith("dropped-hook-handle")]


def test_a_script_that_makes_one_has_one():
    assert told("watcher = Watcher(model)") == ["low"]


def test_a_script_that_makes_two_puts_the_hooks_on_twice():
    assert told("watcher = Watcher(model)\nwatcher = Watcher(model)") == ["high"]


@pytest.mark.parametrize("line", ["self.optimizer.step()", "self.take_step(model)", "print(x)"])
def test_one_that_a_trainer_makes_is_made_once(line):
    assert told(OWNER.replace("LINE", line)) == ["low"]


def test_one_that_is_made_to_explain_a_model_is_made_for_each_explanation():
    assert told(OWNER.replace("LINE", "model.zero_grad()")) == ["high"]
    assert told(OWNER.replace("LINE", "model.zero_grad()").replace("ask", "forward")) == ["high"]
    assert told(OWNER.replace("LINE", "model.zero_grad(); self.optimizer.step()")) == ["low"]
