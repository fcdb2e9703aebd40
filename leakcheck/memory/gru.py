"""The shapes that the fused kernel of a GRU cell answers with, which torch does not know for fakes.

Sizes: RNN.cu. Without them every recurrent network of that kind would run on the host.
"""

from __future__ import annotations

from typing import Any

import torch

_KEPT = 5  # values that a unit keeps for backward: GRU_WORKSPACE_MULTIPLIER
_GATES = 3
_libraries: list[Any] = []


def install() -> None:
    """Register them, once a process: a registration cannot be taken back safely."""
    library: Any = torch.library.Library("aten", "IMPL", "Meta")  # type: ignore[no-untyped-call]
    _libraries.append(library)
    for name, shapes in (("", _forward), ("_backward", _backward)):
        library.impl(f"_thnn_fused_gru_cell{name}", shapes)


def _forward(
    input_gates: torch.Tensor, hidden_gates: torch.Tensor, hx: torch.Tensor, *biases: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    kept = hx.new_empty(hx.size(0), hx.size(1) * _KEPT)
    return torch.empty_like(hx), kept


def _backward(
    grad: torch.Tensor, kept: torch.Tensor, has_bias: bool
) -> tuple[torch.Tensor | None, ...]:
    batch, units = grad.shape
    gates = [kept.new_empty(batch, units * _GATES) for _ in range(2)]
    biases = [kept.new_empty(units * _GATES) if has_bias else None for _ in range(2)]
    return (*gates, torch.empty_like(grad), *biases)
