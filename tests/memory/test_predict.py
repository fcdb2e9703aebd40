from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from leakcheck.errors import LeakcheckError, UsageError
from leakcheck.memory.predict import largest_batch, predict
from leakcheck.memory.prediction import Prediction, Request

pytestmark = pytest.mark.usefixtures("forked_python")

SEED = """
    import torch
    from torch import nn

    def linear(device):
        model = nn.Linear(256, 250, device=device)
        seen = [torch.cuda.memory_allocated()]
        x = torch.randn(1, 256, device=device)
        seen.append(torch.cuda.memory_allocated())
        y = model(x)
        seen.append(torch.cuda.memory_allocated())
        y.sum().backward()
        seen.append(torch.cuda.memory_allocated())
        cublas, cublaslt = 8_519_680, 1_048_576
        forward, backward = 259_072 + cublas + cublaslt, 516_096 + 2 * cublas + cublaslt
        assert seen == [257_024, 258_048, forward, backward], seen

    def forward_keeps_inputs_of_linear_layers(device):
        model = nn.Sequential(nn.Linear(200, 100), nn.ReLU(), nn.Linear(100, 200), nn.Sigmoid())
        model = model.to(device)
        weights, x, hidden, y = 162_304, 4_096, 2_048, 4_096
        cublas, cublaslt = 8_519_680, 1_048_576
        batch = torch.randn(5, 200, device=device)
        with torch.inference_mode():
            out = model(batch)
        inference = torch.cuda.memory_allocated()
        assert inference == weights + x + y + cublas + cublaslt, inference
        del out
        out = model(batch)
        training = torch.cuda.memory_allocated()
        assert training == inference + hidden, training
        out.sum().backward()
        after = torch.cuda.memory_allocated()
        assert after == 2 * weights + x + y + 2 * cublas + cublaslt, after

    def normalisation_keeps_an_intermediate(device):
        x = torch.rand(10, device=device)
        w = torch.rand(10, requires_grad=True, device=device)
        y = (x - x.mean()) / (x.std() + 1e-6) * w
        assert torch.cuda.memory_allocated() == 4 * 512

    def leak(device):
        val = torch.rand(1, device=device)
        before = torch.cuda.memory_allocated()
        for _ in range(100):
            val += torch.rand(1, device=device).requires_grad_()
        assert torch.cuda.memory_allocated() - before == 100 * 512

    def no_device_leak(device):
        val = torch.rand(1, device=device).requires_grad_() * 1
        before = torch.cuda.memory_allocated()
        for _ in range(100):
            val += 1
        assert torch.cuda.memory_allocated() == before
"""

SUMS = """
    import torch

    def requests(device, keep):
        history = torch.cuda.memory
        x = torch.zeros(1000, device=device, requires_grad=True)
        hidden = x.exp()
        first, second = hidden.sin(), hidden.cos()
        kept = []
        if keep:
            second = hidden.view_as(hidden)
            second.register_hook(kept.append)
            second = second.cos()
        total = (first * second).sum()
        history._record_memory_history()
        total.backward()
        entries = history._snapshot()["device_traces"][0]
        history._record_memory_history(enabled=None)
        return sum(each["action"] == "alloc" and each["size"] == 4000 for each in entries)

    def sums(device):
        assert requests(device, keep=True) == requests(device, keep=False) + 1
"""

TIMELINE = """
    import torch
    from torch import nn

    def timeline(device, optimizer):
        model = nn.Linear(256, 250, device=device)
        optimizer = optimizer(model.parameters(), lr=0.001)
        x = torch.randn(100, 256, device=device)
        seen = []
        def add():
            seen.append(torch.cuda.memory_allocated())
        for _ in range(4):
            optimizer.zero_grad()
            add()
            y = model(x)
            add()
            y.sum().backward()
            add()
            optimizer.step()
            del y
            add()
        return seen

    def expected(state):
        model, x, y = 257_024, 102_400, 100_352
        events, kept = [], 0
        for _ in range(4):
            events += [model + x + kept, model + x + kept + y, 2 * model + x + kept + y]
            kept = state * model
            events.append(2 * model + x + kept)
        return events

    def adam(device):
        assert timeline(device, torch.optim.Adam) == expected(2)

    def sgd(device):
        assert timeline(device, torch.optim.SGD) == expected(0)
"""

TRAINING = """
    import torch
    from torch import nn

    def train(device, batch_size=8, width=64):
        model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)).to(device)
        optimizer = torch.optim.AdamW(model.parameters())
        x = torch.randn(batch_size, width, device=device)

        def step():
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()

        return step

    def fails(device):
        raise RuntimeError("no such data")

    def needs(device, data):
        pass
"""

SCRIPT = """
    import sys
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert device.type == "cuda"
    data = TensorDataset(torch.randn(256, 20), torch.randint(0, 3, (256,)))
    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=2, pin_memory=True)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    while True:
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.cuda()
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = nn.functional.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            print(loss.item())
"""


def program(tmp_path: Path, source: str) -> Path:
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(source))
    return path


def on_t4(target: str, **options: object) -> Prediction:
    return predict(Request(target, device="t4", **options))


@pytest.mark.parametrize(
    "function",
    [
        "linear",
        "forward_keeps_inputs_of_linear_layers",
        "normalisation_keeps_an_intermediate",
        "leak",
        "no_device_leak",
    ],
)
def test_the_published_byte_counts_are_exact(tmp_path, function):
    prediction = on_t4(f"{program(tmp_path, SEED)}:{function}")

    assert prediction.mode == "fake"


def test_gradients_are_added_in_place_unless_somebody_holds_the_first(tmp_path):
    prediction = on_t4(f"{program(tmp_path, SUMS)}:sums")

    assert prediction.mode == "fake"


@pytest.mark.parametrize("function", ["adam", "sgd"])
def test_the_published_optimizer_timelines_are_exact_without_workspaces(tmp_path, function):
    prediction = on_t4(f"{program(tmp_path, TIMELINE)}:{function}", workspace_bytes=0)

    assert prediction.mode == "fake"


def test_every_page_sums_to_the_allocated_bytes_and_explains_them(tmp_path):
    prediction = on_t4(f"{program(tmp_path, TRAINING)}:train")

    phases = [page.phase for page in prediction.pages]
    assert phases == ["after forward", "after backward", "after step"]
    for page in prediction.pages:
        assert sum(row.size_bytes for row in page.rows) == page.allocated_bytes
        assert page.size_bytes("unexplained") == 0
    parameters = 4 * (64 * 64 + 64 + 64 + 1)
    assert prediction.pages[-1].size_bytes("parameters") == parameters
    assert prediction.pages[-1].size_bytes("gradients") == parameters
    assert prediction.pages[-1].size_bytes("inputs") == 4 * 8 * 64


def test_the_page_at_the_peak_holds_what_lives_between_the_phases(tmp_path):
    prediction = on_t4(f"{program(tmp_path, TRAINING)}:train")

    peak = prediction.peak_page
    assert peak is not None
    assert sum(row.size_bytes for row in peak.rows) == peak.allocated_bytes
    assert peak.allocated_bytes == prediction.peak_allocated_bytes  # AdamW's step is the highest
    parameters = 4 * (64 * 64 + 64 + 64 + 1)
    assert peak.size_bytes("optimizer state") == 2 * parameters
    assert peak.size_bytes("workspaces") == 2 * 8_519_680 + 1_048_576
    assert peak.size_bytes("unexplained") == 0
    assert ("temporaries", "program.py:13 step") in [site[:2] for site in peak.sites]


def test_a_script_as_users_have_it_is_stopped_after_the_steps(tmp_path):
    prediction = on_t4(str(program(tmp_path, SCRIPT)), steps=2)

    assert prediction.mode == "fake"
    assert prediction.steps == 2
    assert prediction.notes == ()
    (condition,) = prediction.conditions
    assert condition.startswith("memory does not follow the values")
    low, high = prediction.allocated_interval
    assert low < prediction.peak_allocated_bytes < high


def test_a_hopper_card_has_larger_workspaces(tmp_path):
    target = f"{program(tmp_path, TRAINING)}:train"

    hopper = predict(Request(target, device="h200"))
    older = on_t4(target)

    assert hopper.peak_allocated_bytes - older.peak_allocated_bytes == 2 * ((32 << 20) - 8_519_680)


def test_the_largest_batch_that_fits_is_found_by_bisection(monkeypatch):
    def made_up(request: Request, timeout_s: float) -> Prediction:
        size = (request.batch_size or 0) * 1000
        return Prediction("t4", "fake", 1, size, size, 0, 77_500, batch_size=request.batch_size)

    monkeypatch.setattr("leakcheck.memory.predict.predict", made_up)

    best = largest_batch(Request("train.py:train"))

    assert best is not None
    assert best.batch_size == 77


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("nothing", 'there is no function "nothing"'),
        ("needs", "the function needs data; besides device and --batch-size"),
        ("fails", "RuntimeError: no such data"),
    ],
)
def test_a_target_that_cannot_be_run_is_told_in_one_line(tmp_path, function, message):
    with pytest.raises(LeakcheckError, match=message) as error:
        on_t4(f"{program(tmp_path, TRAINING)}:{function}")

    assert "\n" not in str(error.value)


def test_missing_files_devices_and_policies_are_refused_before_anything_runs(tmp_path):
    with pytest.raises(UsageError, match="there is no such file"):
        on_t4(str(tmp_path / "missing.py"))
    with pytest.raises(UsageError, match='no profile of a device "h20"; did you mean "h200"'):
        predict(Request("train.py", device="h20"))
    with pytest.raises(UsageError, match='no policy "best"; known are native'):
        predict(Request("train.py", policy="best"))


def test_a_program_that_takes_too_long_is_stopped(tmp_path):
    path = program(tmp_path, "while True:\n    pass\n")

    with pytest.raises(LeakcheckError, match="no prediction within 3 s; allow more with --timeout"):
        predict(Request(str(path), device="t4"), timeout_s=3)
