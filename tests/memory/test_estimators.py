from __future__ import annotations

from statistics import mean

import pytest
import torch
from torch import nn

from leakcheck.memory.estimators import (
    CORRECTED_ERROR,
    OPTIMIZERS,
    PUBLISHED_ERROR,
    TrainingMemory,
    forward_hook_activations,
    training_memory,
)

QWEN = 1_543_714_304
# parameters, batch, length, peak allocated: a language model of 423 M parameters (snapshots
# of Wedsonlin/assignment2-systems), and GPT-2, DistilBERT and BERT on a T4
# (fixtures of torch-preflight)
MEASURED = (
    (423_000_000, 4, 128, 7_026_606_592),
    (423_000_000, 4, 256, 9_113_374_720),
    (423_000_000, 4, 512, 12_434_494_464),
    (423_000_000, 4, 1024, 24_213_918_720),
    (124_439_808, 4, 128, 2_705_153_536),
    (124_439_808, 8, 256, 5_736_883_712),
    (66_362_880, 4, 128, 1_354_818_048),
    (66_362_880, 8, 256, 1_757_328_384),
    (109_482_240, 4, 128, 2_209_738_240),
    (109_482_240, 8, 256, 3_185_408_000),
)


@pytest.mark.parametrize(
    ("as_published", "told"), [(False, CORRECTED_ERROR), (True, PUBLISHED_ERROR)]
)
def test_the_errors_told_are_those_of_ten_real_steps(as_published, told):
    errors = [
        abs(training_memory(*point, as_published=as_published).total_bytes / peak - 1)
        for *point, peak in MEASURED
    ]

    assert round(mean(errors), 2) == told


def test_the_formula_adds_model_state_and_the_larger_of_step_and_activations():
    weights = 4 * QWEN

    assert training_memory(QWEN, 1, 1) == TrainingMemory(
        weights, 2 * weights, weights, weights, 5_146_618
    )
    assert training_memory(QWEN, 1, 1).total_bytes == 5 * weights


def test_the_published_unit_error_counts_the_element_size_twice():
    corrected = training_memory(QWEN, 8, 1024)
    published = training_memory(QWEN, 8, 1024, as_published=True)

    assert published.activation_bytes == pytest.approx(2 * corrected.activation_bytes, rel=1e-6)


def test_an_unknown_optimizer_is_refused_with_the_table():
    with pytest.raises(ValueError, match='"Lion" is not in the table; it has SGD, SGD\\+momentum'):
        training_memory(1000, 1, 1, optimizer="Lion")


def test_an_implementation_an_optimizer_lacks_is_refused():
    with pytest.raises(ValueError, match='no "fused" implementation'):
        OPTIMIZERS["Adagrad"].transient("fused")


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "RMSprop"])
def test_the_table_says_what_torchs_optimizers_keep(name):
    weight = nn.Parameter(torch.zeros(64, 64))
    optimizer = getattr(torch.optim, name)([weight])
    weight.grad = torch.ones_like(weight)

    optimizer.step()

    kept = sum(
        value.numel()
        for value in optimizer.state[weight].values()
        if isinstance(value, torch.Tensor) and value.dim() > 0
    )
    assert kept == OPTIMIZERS[name].kept * weight.numel()


def test_hooks_sum_the_outputs_and_leave_the_model_as_it_was():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU())

    with forward_hook_activations(model) as leaves:
        model(torch.zeros(2, 4))
    with forward_hook_activations(model, containers=True) as everything:
        model(torch.zeros(2, 4))

    assert leaves.total_bytes == 2 * (2 * 8 * 4)
    assert everything.total_bytes == 3 * (2 * 8 * 4)
    assert not any(module._forward_hooks for module in model.modules())
