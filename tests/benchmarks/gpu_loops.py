"""Training loops that the capture and the device tests share; small, deterministic in shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

PHASES = ("after zero_grad", "after forward", "after backward", "after optimizer")


class Attention(nn.Module):
    """A transformer of `layers` blocks with causal SDPA and a language-model head."""

    def __init__(
        self, width: int = 256, layers: int = 4, heads: int = 8, reentrant: bool | None = None
    ) -> None:
        super().__init__()
        self.heads, self.reentrant = heads, reentrant
        self.embed = nn.Embedding(1000, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            if self.reentrant is None:
                x = block(x)
            else:
                x = checkpoint(block, x, use_reentrant=self.reentrant)
        return self.head(self.norm(x))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.first(x)).view(batch, length, 3, self.heads, -1).unbind(2)
        q, k, v = (part.transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells, self.head = nn.LSTM(128, 256, 2, batch_first=True), nn.Linear(256, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.cells(x)[0])


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512))


def cnn() -> nn.Module:
    parts: list[nn.Module] = []
    for channels, wider in ((3, 32), (32, 64), (64, 128)):
        parts += [nn.Conv2d(channels, wider, 3, padding=1), nn.BatchNorm2d(wider), nn.ReLU()]
        parts.append(nn.MaxPool2d(2))
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(128 * 8 * 8, 10))


def floats(*shape: int) -> Callable[[str], torch.Tensor]:
    return lambda device: torch.randn(*shape, device=device)


def tokens(*shape: int) -> Callable[[str], torch.Tensor]:
    return lambda device: torch.randint(0, 1000, shape, device=device)


@dataclass(frozen=True)
class Loop:
    """A model, its input and how it is trained."""

    model: Callable[[], nn.Module]
    batch: Callable[[str], torch.Tensor]
    optimizer: str = "AdamW"
    options: tuple[tuple[str, Any], ...] = ()
    amp: bool = False
    accumulate: int = 1

    def make(self, device: str) -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(0)
        model = self.model().to(device)
        kind = getattr(torch.optim, self.optimizer)
        return model, kind(model.parameters(), lr=1e-3, **dict(self.options))


LOOPS = {
    "mlp": Loop(mlp, floats(64, 512)),
    "mlp-sgd": Loop(mlp, floats(64, 512), "SGD"),
    "cnn": Loop(cnn, floats(16, 3, 64, 64)),
    "transformer": Loop(Attention, tokens(8, 128)),
    "transformer-amp": Loop(Attention, tokens(8, 128), amp=True),
    "transformer-fused": Loop(Attention, tokens(8, 128), options=(("fused", True),)),
    "transformer-for-loop": Loop(Attention, tokens(8, 128), options=(("foreach", False),)),
    "transformer-checkpointed": Loop(lambda: Attention(reentrant=False), tokens(8, 128)),
    "transformer-reentrant": Loop(lambda: Attention(reentrant=True), tokens(8, 128)),
    "transformer-accumulating": Loop(Attention, tokens(8, 128), accumulate=3),
    "lstm": Loop(Recurrent, floats(16, 50, 128)),
}


def training(
    loop: Loop,
    device: str,
    steps: int,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
) -> Iterator[tuple[str, int, object, object]]:
    """Train, and stop at each phase of each step with (phase, step, inputs, outputs) alive."""
    kind = torch.device(device).type
    for step in range(steps):
        optimizer.zero_grad()
        yield PHASES[0], step, (), ()
        for part in range(loop.accumulate):
            x = loop.batch(device)
            with torch.autocast(kind, torch.bfloat16) if loop.amp else nullcontext():
                y = model(x)
            loss = y.float().square().mean()
            if part == loop.accumulate - 1:
                yield PHASES[1], step, x, (y, loss)
            loss.backward()
        yield PHASES[2], step, x, (y, loss)
        optimizer.step()
        yield PHASES[3], step, x, (y, loss)
        del x, y, loss
