from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from leakcheck.errors import UsageError
from leakcheck.memory.allocator import round_size
from leakcheck.memory.owners import SavedTensors, owners
from leakcheck.memory.policies import POLICIES
from leakcheck.memory.replay import replay
from leakcheck.memory.storages import StorageTrace
from leakcheck.memory.verdict import judge
from leakcheck.memory.watch import Ledger
from leakcheck.model import LedgerPage

PHASES = ("after zero_grad", "after forward", "after backward", "after optimizer")


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_the_optimizer_timeline_has_exactly_its_categories(kind: str):
    """Linear(256, 250), batch 100, 4 steps: every block rounded to 512 bytes, by hand."""
    state = 2 if kind == "Adam" else 0
    weights, inputs, outputs = round_size(256_000) + round_size(1000), 102_400, 100_352
    counters = 1024 if kind == "Adam" else 0  # step counts, on the host when training on a card

    with StorageTrace() as device:
        model = nn.Linear(256, 250)
        optimizer = getattr(torch.optim, kind)(model.parameters(), lr=1e-3)
        x = torch.randn(100, 256)
        with Ledger(model, optimizer, device) as ledger:
            for step in range(4):
                optimizer.zero_grad()
                ledger.take(PHASES[0], step, inputs=x)
                y = model(x)
                ledger.take(PHASES[1], step, inputs=x, outputs=y)
                y.sum().backward()
                ledger.take(PHASES[2], step, inputs=x, outputs=y)
                optimizer.step()
                del y
                ledger.take(PHASES[3], step, inputs=x)

    expected = []
    for step in range(4):
        kept = state * weights + counters if step else 0
        base = weights + inputs + kept
        expected += [base, base + outputs, base + outputs + weights]
        expected += [weights + inputs + state * weights + counters + weights]
    assert [page.allocated_bytes for page in ledger.pages] == expected
    assert {row.category: row.size_bytes for row in ledger.pages[6].rows} == {
        "parameters": 257_000,
        "gradients": 257_000,
        "inputs": 102_400,
        "outputs": 100_000,
        "rounding and slop": expected[6] - 716_400 - state * 257_000 - (8 if state else 0),
        **({"optimizer state": 514_008} if state else {}),
    }


def transformer() -> nn.Module:
    return nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.1)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells, self.head = nn.LSTM(16, 32, 2, batch_first=True), nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.cells(x)[0])


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.GELU()) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for part in self.parts:
            x = checkpoint(part, x, use_reentrant=False)
        return x


LOOPS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (lambda: nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4)), (8, 32)),
    "cnn": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(1568, 4)
        ),
        (4, 3, 16, 16),
    ),
    "transformer": (transformer, (4, 16, 32)),
    "lstm": (Recurrent, (4, 10, 16)),
    "checkpointed": (Checkpointed, (8, 32)),
}


def train(loop: str, *, amp: bool, foreach: bool, leak: list[object] | None = None) -> Ledger:
    make, shape = LOOPS[loop]
    with StorageTrace() as device:
        model = make()
        optimizer = torch.optim.AdamW(model.parameters(), foreach=foreach)
        with Ledger(model, optimizer, device) as ledger:
            for step in range(6):
                x = torch.randn(shape)
                with torch.autocast("cpu", torch.bfloat16, enabled=amp):
                    y = model(x)
                loss = y.float().square().mean()
                roots = {"inputs": x, "outputs": (y, loss)}
                ledger.take("after forward", step, **roots)
                loss.backward()
                ledger.take("after backward", step, **roots)
                optimizer.step()
                ledger.take("after optimizer", step, **roots)
                optimizer.zero_grad()
                if leak is not None:
                    leak.append(torch.zeros(100))
                ledger.take("after zero_grad", step, **roots)
    return ledger


def has_lstm_in_bfloat16() -> bool:
    """Say whether oneDNN has one for this processor: not without AVX-512."""
    make, shape = LOOPS["lstm"]
    try:
        with torch.autocast("cpu", torch.bfloat16):
            make()(torch.randn(shape))
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("foreach", [True, False], ids=["foreach", "for-loop"])
@pytest.mark.parametrize("amp", [True, False], ids=["amp", "fp32"])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_clean_loop_leaves_nothing_unexplained(loop: str, amp: bool, foreach: bool):
    if loop == "lstm" and amp and not has_lstm_in_bfloat16():
        pytest.skip("this processor has no LSTM in bfloat16")
    ledger = train(loop, amp=amp, foreach=foreach)

    assert [page.size_bytes("unexplained") for page in ledger.pages] == [0] * 24
    by_phase = [[p.allocated_bytes for p in list(ledger.pages)[n::4]] for n in range(4)]
    assert [len(set(series[1:])) for series in by_phase] == [1, 1, 1, 1]
    memory = ledger.memory("after backward")
    assert memory is not None
    assert (memory.unexpected_bytes, memory.grown) == (0, ())


def test_activations_are_what_autograd_saved_and_gone_after_backward():
    ledger = train("mlp", amp=False, foreach=True)
    forward, backward = list(ledger.pages)[:2]

    assert forward.size_bytes("activations") == 8 * 64 * 4  # after ReLU, and x is an input
    assert backward.size_bytes("activations") == 0


def test_what_a_list_keeps_is_unexplained_and_named_by_its_line():
    ledger = train("mlp", amp=False, foreach=True, leak=[])

    memory = ledger.memory("after zero_grad")

    assert memory is not None
    assert memory.unexpected_per_step == 512
    (grown,) = memory.grown
    assert (grown.category, grown.bytes_per_step) == ("unexplained", 400)
    assert grown.site.startswith("test_watch.py:")


def test_a_scan_calls_what_python_holds_temporary():
    with StorageTrace() as device:
        kept = torch.zeros(1000)
        with Ledger(device=device) as ledger:
            page = ledger.take("now", scan=True)

    assert page.size_bytes("temporaries") == kept.numel() * 4
    assert page.size_bytes("unexplained") == 0


@pytest.mark.parametrize(("detach", "per_step"), [(False, 512), (True, 0)])
def test_the_undetached_sum_costs_512_device_bytes_a_step(detach: bool, per_step: int):
    with StorageTrace() as device:
        total = torch.rand(1)
        for step in range(12):
            value = torch.rand(1).requires_grad_()
            total += value.detach() if detach else value
            del value
            device.mark("step", step)
        report = judge(device.trace(), bisect=False)

    assert report.live.per_step == per_step
    assert report.verdict == ("steady" if detach else "leak")
    if not detach:
        assert report.grown[0].site.startswith("test_watch.py:")


def test_the_trace_of_storages_replays_to_the_same_bytes():
    with StorageTrace() as device:
        kept = [torch.rand(n * 1000) for n in range(1, 20)]
        del kept[::2]
        live = device.allocator.allocated_bytes

    run = replay(device.trace(), POLICIES["native"](None))

    assert run.final_allocated_bytes == live


def test_views_and_tied_weights_count_once():
    first, second = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
    second.weight = first.weight
    model = nn.Sequential(first, second)

    found = owners(
        lambda t: t.untyped_storage().data_ptr(), models=[model], inputs=first.weight.detach()[2:]
    )

    assert found == {first.weight.data_ptr(): "parameters"}


def test_saved_tensors_leave_the_registry_with_the_graph_and_change_no_gradient():
    def gradient(watched: bool) -> torch.Tensor:
        torch.manual_seed(0)
        x = torch.rand(5, requires_grad=True)
        if not watched:
            (x.exp() * x.sin()).sum().backward()
            return x.grad
        with SavedTensors() as saved:
            y = (x.exp() * x.sin()).sum()
            assert len(list(saved)) > 0
            y.backward()
            assert list(saved) == []
        return x.grad

    assert torch.equal(gradient(True), gradient(False))


def test_the_ledger_holds_no_tensor():
    ledger = train("mlp", amp=False, foreach=True)
    gc.collect()

    assert all(isinstance(page, LedgerPage) for page in ledger.pages)
    assert list(ledger._saved) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="the device exists")
def test_a_device_the_program_has_not_touched_is_refused():
    with pytest.raises(UsageError, match="the program has not used cuda:0"):
        Ledger().take("now")
    assert not torch.cuda.is_initialized()
