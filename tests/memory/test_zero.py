from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from leakcheck.memory import zero

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "zero_vectors.json").read_text())

ZERO2 = """\
Estimated memory needed for params, optim states and gradients for a:
HW: Setup with 1 node, 8 GPUs per node.
SW: Model with 2851M total params.
  per CPU  |  per GPU |   Options
  127.45GB |   5.31GB | offload_optimizer=cpu
  127.45GB |  11.28GB | offload_optimizer=none
  127.45GB |  15.93GB | offload_optimizer=none (as documented)"""

ZERO3 = """\
Estimated memory needed for params, optim states and gradients for a:
HW: Setup with 1 node, 8 GPUs per node.
SW: Model with 2851M total params, 32M largest layer params.
  per CPU  |  per GPU |   Options
   71.71GB |   0.12GB | offload_param=cpu , offload_optimizer=cpu , zero_init=1
  127.48GB |   0.12GB | offload_param=cpu , offload_optimizer=cpu , zero_init=0
   63.74GB |   0.79GB | offload_param=none, offload_optimizer=cpu , zero_init=1
  127.48GB |   0.79GB | offload_param=none, offload_optimizer=cpu , zero_init=0
    1.47GB |   6.10GB | offload_param=none, offload_optimizer=none, zero_init=1
  127.48GB |   6.10GB | offload_param=none, offload_optimizer=none, zero_init=0"""


def test_every_zero2_vector_is_exact_in_code_and_document():
    assert len(VECTORS["zero2"]) == 196
    for row in VECTORS["zero2"]:
        setup = (row["params"], row["gpus_per_node"], row["nodes"])
        options = (row["offload_optimizer"], row["factor"])
        assert zero.estimate_zero2_model_states_mem_needs(*setup, *options) == (
            row["cpu"],
            row["gpu"],
        )
        assert zero.documented_zero2_model_states_mem_needs(*setup, *options) == (
            row["doc_cpu"],
            row["doc_gpu"],
        )


def test_every_zero3_vector_is_exact():
    assert len(VECTORS["zero3"]) == 588
    for row in VECTORS["zero3"]:
        needs = zero.estimate_zero3_model_states_mem_needs(
            row["params"],
            row["largest_layer"],
            row["gpus_per_node"],
            row["nodes"],
            row["offload_optimizer"],
            row["offload_param"],
            row["zero_init"],
            row["factor"],
        )
        assert needs == (row["cpu"], row["gpu"], row["largest_layer_mem"])


def test_the_tables_read_as_in_the_original_and_name_the_documented_variant():
    assert zero.estimate_zero2_model_states_mem_needs_all_cold(2851 * 10**6, 8) == ZERO2
    assert (
        zero.estimate_zero3_model_states_mem_needs_all_cold(2_851_598_336, 32_899_072, 8) == ZERO3
    )


def test_zero1_keeps_parameters_and_gradients_whole():
    assert zero.estimate_zero1_model_states_mem_needs(1000, 4, 1, False) == (24000, 4000 + 3000)
    assert zero.estimate_zero1_model_states_mem_needs(1000, 4, 1, True) == (24000, 4000)


def model_with_tied_weights() -> nn.Module:
    model = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10, bias=False), nn.Linear(10, 3))
    model[1].weight = model[0].weight
    return model


def test_tied_weights_count_once_on_real_meta_and_fake_models():
    with torch.device("meta"):
        on_meta = model_with_tied_weights()
    with FakeTensorMode():
        fake = model_with_tied_weights()

    for model in (model_with_tied_weights(), on_meta, fake):
        assert zero.total_params(model) == 40 + 33
        assert zero.largest_layer_params(model) == 40


def test_untied_parameters_of_one_flat_buffer_are_all_counted():
    flat = torch.zeros(12)
    model = nn.ParameterList([nn.Parameter(flat[:8]), nn.Parameter(flat[8:])])

    assert zero.total_params(model) == 12


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_the_live_table_is_the_cold_table_of_the_models_sizes(stage):
    model = nn.Linear(1000, 2000)
    live = getattr(zero, f"estimate_zero{stage}_model_states_mem_needs_all_live")(model, 4)
    cold = getattr(zero, f"estimate_zero{stage}_model_states_mem_needs_all_cold")
    sizes = (2_002_000, 2_002_000) if stage == 3 else (2_002_000,)

    assert live == cold(*sizes, 4)
