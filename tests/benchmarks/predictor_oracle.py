"""The predictor beside PyTorch's own MemTracker, on the same steps, in the same run.

    python tests/benchmarks/predictor_oracle.py

MemTracker (torch.distributed._tools) counts live storages and knows no allocator, so the ratio is
above 1 by what the blocks round up. Both follow real tensors on the host, each after one run that
imports what it needs. Peaks are of the whole run, categories of its end.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import torch
from torch import nn
from torch.distributed._tools.mem_tracker import MemTracker

from leakcheck.memory.storages import StorageTrace
from leakcheck.memory.watch import Ledger
from leakcheck.model import Category

Step = Callable[[], None]
STEPS = 2  # the second one has the optimizer's state
# MemTracker's categories -> ours
NAMES: dict[str, Category] = {
    "Parameter": "parameters",
    "Gradient": "gradients",
    "Optstate": "optimizer state",
}


def perceptron() -> tuple[nn.Module, torch.Tensor]:
    """Four wide layers."""
    layers = [part for _ in range(4) for part in (nn.Linear(512, 512), nn.ReLU())]
    return nn.Sequential(*layers), torch.randn(64, 512)


def convolutions() -> tuple[nn.Module, torch.Tensor]:
    """Three convolutions with batch normalisation."""
    widths = ((3, 32), (32, 64), (64, 64))
    layers = [
        part
        for narrow, wide in widths
        for part in (nn.Conv2d(narrow, wide, 3, padding=1), nn.BatchNorm2d(wide), nn.ReLU())
    ]
    return nn.Sequential(*layers), torch.randn(8, 3, 32, 32)


def transformer() -> tuple[nn.Module, torch.Tensor]:
    """Two encoder layers."""
    layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.randn(8, 64, 128)


MODELS = {"perceptron": perceptron, "convolutions": convolutions, "transformer": transformer}


def step_of(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: torch.Tensor) -> Step:
    """Return a training step."""

    def step() -> None:
        model(inputs).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def by_oracle(make: Callable[[], tuple[nn.Module, torch.Tensor]]) -> dict[str, int]:
    """MemTracker's peak and its categories in bytes."""
    model, inputs = make()
    optimizer = torch.optim.Adam(model.parameters())
    tracker = MemTracker()
    tracker.track_external(model, optimizer, inputs)
    step = step_of(model, optimizer, inputs)
    with tracker:
        for _ in range(STEPS):
            tracker.reset_mod_stats()  # it refuses a module's second pass otherwise
            step()
        (peak,) = tracker.get_tracker_snapshot("peak").values()
        (end,) = tracker.get_tracker_snapshot("current").values()
    told = {str(getattr(key, "value", key)): size for key, size in end.items()}
    return {"peak": _total(peak)} | {ours: told.get(name, 0) for name, ours in NAMES.items()}


def _total(snapshot: dict[object, int]) -> int:
    return next(size for key, size in snapshot.items() if "Total" in str(key))


def by_predictor(make: Callable[[], tuple[nn.Module, torch.Tensor]]) -> dict[str, int]:
    """The trace's peak and the ledger's categories at the end of a step, in bytes."""
    with StorageTrace() as device:
        model, inputs = make()
        optimizer = torch.optim.Adam(model.parameters())
        step = step_of(model, optimizer, inputs)
        ledger = Ledger(model, optimizer, device)
        for _ in range(STEPS):
            step()
        page = ledger.take("end", STEPS)
        peak = device.allocator.peak_allocated_bytes
    return {"peak": peak} | {name: page.size_bytes(name) for name in NAMES.values()}


def main() -> None:
    """Compare every model and print the table."""
    print(f"{'model':<16}{'MemTracker':>14}{'predictor':>14}{'ratio':>8}{'cost ratio':>12}")
    for name, make in MODELS.items():
        by_oracle(make), by_predictor(make)
        began_s = perf_counter()
        theirs = by_oracle(make)
        middle_s = perf_counter()
        ours = by_predictor(make)
        cost = (perf_counter() - middle_s) / (middle_s - began_s)
        ratio = ours["peak"] / theirs["peak"]
        print(f"{name:<16}{theirs['peak']:>14,}{ours['peak']:>14,}{ratio:>8.3f}{cost:>12.2f}")
        for category in NAMES.values():
            print(f"  {category:<14}{theirs[category]:>14,}{ours[category]:>14,}")


if __name__ == "__main__":
    main()
