"""A model that is run only for what a hook or a stand-in catches needs no gradients."""

from __future__ import annotations

import pytest

from leakcheck.static.engine import check_source

HOOK = """
import torch

class Calibrator:
    def catch(self, model, layers, batches):
        caught = []

        def hook(module, args, output):
            {keep}

        handle = layers[0].{register}(hook)
        try:
            for batch in batches:
                {run}
        finally:
            handle.remove()
        return caught
"""
STAND_IN = """
import torch
from torch import nn

def catch(model, layers, examples):
    caught, masks = [], []

    class Catcher(nn.Module):
        def forward(self, hidden, **kwargs):
            for row in range(len(hidden)):
                caught.append(hidden[row].to("cpu"){cut})
                masks.append(kwargs["mask"][row])
            raise ValueError

    layers[0] = Catcher()
    for example in examples:
        try:
            model(**example)
        except ValueError:
            pass
    {then}
"""


def kept(source: str) -> list[str]:
    """The lines that keep a graph."""
    found = check_source(source)
    return [f.context.strip() for f in found if f.rule.endswith("evaluation-with-graph")]


def hooked(keep="caught.append(output)", register="register_forward_hook", run="model(batch)"):
    return kept(HOOK.format(keep=keep, register=register, run=run))


def stood_in(cut="", then="return caught"):
    return kept(STAND_IN.format(cut=cut, then=then))


def test_what_a_hook_catches_has_the_graph_of_its_pass():
    assert hooked() == ["caught.append(output)"]
    assert hooked("caught.append(args[0])", "register_forward_pre_hook") == [
        "caught.append(args[0])"
    ]


def test_what_a_stand_in_catches_has_it_and_the_mask_beside_it_has_none():
    assert stood_in() == ['caught.append(hidden[row].to("cpu"))']


def test_what_is_detached_has_none():
    assert hooked("caught.append(output.detach())") == []
    assert stood_in(cut=".detach()") == []


@pytest.mark.parametrize(
    "run",
    [
        "loss = model(batch)",  # somebody may train
        "model(batch).sum().backward()",
        "model(batch); optimizer.step()",
        "with torch.no_grad(): model(batch)",
        "model(batch); caught.clear()",
        "model(batch); caught = []",
    ],
)
def test_a_run_that_trains_or_lets_go_or_is_without_gradients_is_left_alone(run):
    if run.startswith("with"):
        run = run.replace(": ", ":\n                    ")
    assert hooked(run=run) == []


def test_neither_is_a_loop_that_runs_no_model():
    assert hooked(run="print(batch)") == []


def test_a_list_that_only_goes_on_after_the_run_is_no_list_that_is_let_go():
    assert stood_in(then="caught, outputs = [layers[0](x) for x in caught], []") == [
        'caught.append(hidden[row].to("cpu"))'
    ]


def test_a_caller_may_switch_gradients_off():
    quiet = "\n\n@torch.no_grad()\ndef calibrate(model, batches):\n    catch(model, [], batches)\n"

    assert kept(STAND_IN.format(cut="", then="return caught") + quiet) == []


def test_a_hook_that_nobody_registers_here_is_shown_nothing():
    assert hooked(register="add") == []
