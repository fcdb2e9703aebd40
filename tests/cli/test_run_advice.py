"""What `run` advises to write where the program itself has what would end the leak."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

PROGRAM = """\
import torch
class Meter:
    def __init__(self):
        self.reset()
    def reset(self):
        self.kept = []
    def add(self, x):
        self.kept.append(x)
meter = Meter()
weights = torch.ones(8, requires_grad=True)
for step in range(300):
    weights.sum().backward()
    meter.add(torch.ones(64, 64))
"""
ADVICE = "call .reset() when what is kept has been used: nothing does; or keep numbers (.item())"


def test_a_method_that_would_empty_it_and_that_nobody_calls_is_to_be_called(judged):
    done = judged(PROGRAM)

    assert done.returncode == 1
    assert f"fix {ADVICE} id" in " ".join(done.stderr.split())


def test_of_a_private_one_the_public_method_that_calls_it_is_named(judged):
    private = (
        "    def _empty(self):\n        self.kept.clear()\n"
        "    def reset(self):\n        self._empty()\n"
    )
    made = PROGRAM.replace("        self.reset()\n    def reset(self):\n", "")
    done = judged(made.replace("    def add", f"{private}    def add"))

    assert f"fix {ADVICE} id" in " ".join(done.stderr.split())


def test_one_that_another_function_may_call_is_waited_for(judged):
    done = judged(f"{PROGRAM}def finish(meter):\n    meter.reset()\n")

    assert done.returncode == 2
    assert "`self.kept = []` (program.py:6) may still take it away" in " ".join(done.stderr.split())
