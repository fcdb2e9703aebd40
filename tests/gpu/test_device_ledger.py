"""The exact-accounting document's values, and the ledger's sums, on a real device."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest
import torch

from leakcheck.memory.allocator import round_size
from leakcheck.memory.watch import Ledger
from leakcheck.memory.workspaces import CUBLASLT_BYTES, cublas_bytes

pytestmark = pytest.mark.cuda

LOOPS = (
    "mlp", "mlp-sgd", "cnn", "transformer", "transformer-amp", "transformer-fused",
    "transformer-for-loop", "transformer-checkpointed", "transformer-reentrant",
    "transformer-accumulating", "lstm",
)  # fmt: skip


def workspace_bytes() -> int:
    """What cuBLAS takes for each handle and stream."""
    return cublas_bytes(torch.cuda.get_device_capability(), {})


@pytest.mark.parametrize("section", ["seeds", "seeds-without-workspaces"])
def test_the_printed_values_of_one_linear_layer(section: str, captured: Callable[[str], Path]):
    workspace = workspace_bytes() if section == "seeds" else 0
    biased = min(CUBLASLT_BYTES, workspace)

    rows = json.loads(captured(section).read_text())["captured"]["linear"]

    assert [(row[0], row[1]) for row in rows] == [
        ("model", 257_024),
        ("input", 258_048),
        ("forward", 259_072 + workspace + biased),
        ("backward", 516_096 + 2 * workspace + biased),
        ("deleted", 2 * workspace + biased),
    ]
    assert rows[0][2] == 2 * 1024 * 1024  # reserved


@pytest.mark.parametrize(("kind", "state"), [("SGD", 0), ("Adam", 2)])
def test_the_optimizer_timeline_is_explained_at_every_event(
    kind: str, state: int, captured: Callable[[str], Path]
):
    rows = json.loads(captured("seeds").read_text())["captured"]["timeline"][kind]

    for phase, step, allocated, page in rows:
        sizes = {row["category"]: row["size_bytes"] for row in page["rows"]}
        assert page["allocated_bytes"] == sum(sizes.values()) == allocated, (phase, step)
        assert sizes["parameters"] == 257_000
        stepped = step > 0 or phase == "after optimizer"
        assert sizes.get("optimizer state", 0) == (state * 257_000 if stepped else 0)
        has_gradient = phase in ("after backward", "after optimizer")
        assert sizes.get("gradients", 0) == (257_000 if has_gradient else 0)
        assert sizes.get("unexplained", 0) == 0


def test_inference_keeps_no_activation(captured: Callable[[str], Path]):
    rows = json.loads(captured("seeds").read_text())["captured"]["layers"]

    saved = round_size(100 * 5 * 4)  # what the second Linear keeps of its input, and Sigmoid shares
    assert rows["training"][0] - rows["inference"][0] >= saved


@pytest.mark.parametrize("name", LOOPS)
def test_the_pages_sum_to_what_torch_says_and_nothing_is_unexplained(name: str, loops: ModuleType):
    loop = loops.LOOPS[name]
    model, optimizer = loop.make("cuda")
    optimizer.zero_grad()
    gc.collect()
    earlier = Ledger(model, optimizer).take("start").size_bytes("unexplained")  # other tests' rest

    with Ledger(model, optimizer) as ledger:
        for phase, step, inputs, outputs in loops.training(loop, "cuda", 4, model, optimizer):
            page = ledger.take(phase, step, inputs=inputs, outputs=outputs)
            assert page.allocated_bytes == torch.cuda.memory_allocated()
            assert page.reserved_bytes == torch.cuda.memory_reserved()
            assert page.used_bytes is not None
            assert page.used_bytes >= page.reserved_bytes
            assert sum(row.size_bytes for row in page.rows) == page.allocated_bytes

    settled = [page for page in ledger.pages if page.step >= 2]
    assert {page.size_bytes("unexplained") for page in settled} == {earlier}
    for phase in loops.PHASES:
        memory = ledger.memory(phase)
        assert memory is not None
        assert (memory.unexpected_per_step, memory.grown) == (0, ())


def test_a_list_of_outputs_grows_by_its_bytes(loops: ModuleType):
    loop, kept = loops.LOOPS["mlp"], []
    model, optimizer = loop.make("cuda")

    with Ledger(model, optimizer) as ledger:
        for phase, step, inputs, outputs in loops.training(loop, "cuda", 6, model, optimizer):
            if phase == "after optimizer":
                kept.append(outputs[0].detach())
            ledger.take(phase, step, inputs=inputs, outputs=outputs)

    memory = ledger.memory("after zero_grad")
    assert memory is not None
    assert memory.unexpected_per_step == 64 * 512 * 4
    assert {growth.category for growth in memory.grown} == {"unexplained"}


def test_workspaces_grow_with_threads_and_streams(captured: Callable[[str], Path]):
    told = json.loads(captured("workspaces").read_text())["captured"]
    workspace = workspace_bytes()

    assert told["first"] - told["start"] == workspace
    threads = [told["first"], *told["threads"]]
    assert [b - a for a, b in pairwise(threads)] == [workspace] * 4
    assert told["streams"][-1] - told["threads"][-1] == 4 * workspace
    assert told["cleared"] == told["start"]
