from __future__ import annotations

import ast

import pytest

from leakcheck.runtime.isolation.silence import silence


def silenced(source: str) -> str:
    tree = ast.parse(source)
    silence(tree, "program.py")
    return ast.unparse(tree)


@pytest.mark.parametrize(
    "source",
    [
        "def log(loss):\n    losses.append(loss)",
        "def log_metrics(loss):\n    if loss is None:\n        return\n    losses.append(loss)",
        "def record(x):\n    def inner():\n        return 1\n    seen.append(inner())",
        "async def on_step(x):\n    seen.append(x)",
    ],
)
def test_a_function_that_logs_and_returns_nothing_does_nothing(source):
    name = ast.parse(source).body[0].name

    head = source.splitlines()[0]
    assert silenced(source) == f"{head}\n    __leakcheck_silenced__({name!r})"


def test_the_methods_of_a_logger_do_nothing_but_make_it():
    source = (
        "class LossMeter:\n\n"
        "    def __init__(self):\n        self.sum = 0\n\n"
        "    def update(self, x):\n        self.sum += x\n\n"
        "    @property\n    def average(self):\n        return self.sum\n\n"
        "    def value(self):\n        return self.sum"
    )

    changed = silenced(source)

    assert changed == source.replace("self.sum += x", "__leakcheck_silenced__('update')")


@pytest.mark.parametrize(
    "source",
    [
        "def log_prob(x):\n    return x.log()",
        "def log_items(x):\n    yield x",
        "def train(x):\n    losses.append(x)",
        "def logistic(x):\n    seen.append(x)",
        "@hook\ndef on_step(x):\n    seen.append(x)",
        "class Model:\n\n    def update(self, x):\n        self.x = x",
    ],
)
def test_what_returns_something_or_is_no_logging_stays(source):
    assert silenced(source) == source
