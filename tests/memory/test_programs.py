"""Programs whose memory depends on what a tensor says of itself, or on a file of the same run."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from leakcheck.memory.predict import predict
from leakcheck.memory.prediction import Prediction, Request

LAYER = 64 * 64 * 4 + 512  # one linear layer in blocks of 512 bytes
WORKSPACES = 2 * 8_519_680 + 1_048_576  # of cuBLAS in two threads, of cuBLASLt in one
# weights, gradients, two moments, a transient; the input and the loss
PEAK = WORKSPACES + 5 * LAYER + 1024 + 512

BEFORE = """
    import copy, io, os, sys
    import torch
    from torch import nn

    model = nn.Linear(64, 64)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(4, 64, device="cuda")

    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
"""


@pytest.fixture
def outcome(tmp_path: Path) -> Callable[[str], Prediction]:
    def run(body: str) -> Prediction:
        path = tmp_path / "train.py"
        path.write_text(textwrap.dedent(BEFORE) + textwrap.dedent(body))
        return predict(Request(str(path), device="a100"))

    return run


@pytest.mark.parametrize(
    "body",
    [
        "model.cuda()\nfor _ in range(3): step()",
        """
        model.to(x.device)
        if x.device.type != "cuda" or not x.device == torch.device("cuda", 0):
            kept = torch.empty(1 << 20, device=x.device)
        if next(model.parameters()).device.type != "cuda":
            kept = torch.empty(1 << 20, device="cuda")
        if hasattr(torch, "accelerator"):
            assert torch.accelerator.current_accelerator().type == "cuda"
        for _ in range(3): step()
        """,
        """
        model.cuda()
        torch.save(model.state_dict(), "weights.pt")
        model.load_state_dict(torch.load("weights.pt", map_location="cpu"))
        for _ in range(3): step()
        """,
        """
        host = torch.empty(1, 64)
        model = copy.deepcopy(model).cuda()
        optimizer = torch.optim.AdamW(copy.copy(list(model.parameters())))
        assert torch.zeros_like(host, device="cuda").is_cuda
        for _ in range(3): step()
        """,
    ],
    ids=["an optimizer made first", "asked for its device", "weights saved and loaded", "copied"],
)
def test_programs_that_mean_the_same_have_the_same_peak(outcome, body: str):
    prediction = outcome(body)

    assert prediction.mode == "fake"
    assert prediction.peak_allocated_bytes == PEAK
    assert prediction.notes == ()


def test_what_a_step_saved_is_loaded_with_storages_of_its_own(outcome):
    prediction = outcome(
        """
        model.cuda()
        step()
        held = torch.cuda.memory_allocated()
        torch.save({"model": model.state_dict(), "step": 7}, "checkpoint.pt")
        assert torch.cuda.memory_allocated() == held
        loaded = torch.load("checkpoint.pt")
        assert torch.cuda.memory_allocated() == held + 64 * 64 * 4 + 512
        assert loaded["step"] == 7 and loaded["model"]["weight"].is_cuda
        on_host = torch.load("checkpoint.pt", map_location=lambda storage, place: storage)
        assert on_host["model"]["bias"].device.type == "cpu"
        file = io.BytesIO()
        torch.save([model.weight, model.weight], file)
        file.seek(0)
        first, second = torch.load(file)
        assert first is second and isinstance(first, nn.Parameter)
        assert not os.path.exists("checkpoint.pt")
        os.replace("checkpoint.pt", "last.pt")
        assert torch.load("last.pt")["step"] == 7
        os.remove("last.pt")
        step(), step()
        """
    )

    assert prediction.mode == "fake"
    assert prediction.conditions == (
        "what the program saves is not written: these tensors hold no numbers",
        "torch.load's map_location function is taken to mean the host",
    )


def test_what_goes_to_safetensors_is_not_written(outcome, tmp_path):
    pytest.importorskip("safetensors")

    prediction = outcome(
        f"""
        from safetensors.torch import save_file
        model.cuda()
        weights = model.state_dict()
        places = {{w.untyped_storage().data_ptr() for w in weights.values()}}
        assert len(places) == 2
        save_file(weights, {str(tmp_path / "model.safetensors")!r})
        for _ in range(3): step()
        """
    )

    assert prediction.peak_allocated_bytes == PEAK
    assert not (tmp_path / "model.safetensors").exists()


pytestmark = pytest.mark.usefixtures("forked_python")


def test_the_phases_of_a_step_with_a_closure_are_its_own(outcome):
    prediction = outcome(
        """
        model.cuda()
        def closure():
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss
        for _ in range(3): optimizer.step(closure)
        """
    )

    pages = {page.phase: page for page in prediction.pages}
    assert list(pages) == ["after forward", "after backward", "after step"]
    assert pages["after forward"].size_bytes("gradients") == 0
    assert pages["after backward"].size_bytes("gradients") == 64 * 64 * 4 + 256


def test_a_step_is_drawn_by_category_up_to_its_peak(outcome):
    prediction = outcome("model.cuda()\nfor _ in range(3): step()")

    step = prediction.timeline
    assert step is not None
    assert step.highest_bytes == PEAK
    assert [name for _, name in step.phases] == ["after forward", "after backward", "after step"]
    assert set(step.layers["workspaces"]) == {WORKSPACES}
    assert set(step.layers["parameters"]) == {64 * 64 * 4 + 256}


def test_a_program_that_is_run_again_on_the_host_is_told_so(outcome):
    prediction = outcome(
        """
        model.cuda()
        torch.nonzero(x)
        for _ in range(3): step()
        """
    )

    assert prediction.mode == "cpu"
    assert prediction.error is None
    assert any(
        note.startswith("run again, for real and from its start") and "aten.nonzero" in note
        for note in prediction.notes
    )
