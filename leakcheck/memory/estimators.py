"""Rough estimates of training memory from a few numbers; every one is labelled with its error.

The formula and its coefficients are those of "Visualize and understand GPU memory in PyTorch"
(Q. Gallouédec, Hugging Face blog, 2024-12-24), with the units corrected. On ten real training
steps it is off by 85 % on average, by 214 % as published (tests/memory/test_estimators.py holds
the steps); use `leakcheck estimate` on the program itself when the number matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# mean absolute errors of the peak on ten real training steps, rounded to a percent
CORRECTED_ERROR, PUBLISHED_ERROR = 0.85, 2.14
# activations per token as a linear function of the parameter count, fitted on bf16 bytes
TOKEN_SLOPE, TOKEN_OFFSET = 4.6894e-4, 1.8494e6
BF16_BYTES = 2


@dataclass(frozen=True, slots=True)
class Optimizer:
    """Memory of an optimizer in units of the parameters' bytes: kept, and transient in its step."""

    kept: float
    foreach: float
    for_loop: float
    fused: float | None = None

    def transient(self, implementation: str = "foreach") -> float:
        """Return the transient share of an implementation: foreach, for_loop or fused."""
        share: float | None = getattr(self, implementation)
        if share is None:
            raise ValueError(f'this optimizer has no "{implementation}" implementation')
        return share


# Measured on fake tensors with twelve equal linear layers, torch 2.13; the for-loop figures are
# two of the largest parameters. CUDA's default is foreach.
OPTIMIZERS = {
    "SGD": Optimizer(0, 0, 0),
    "SGD+momentum": Optimizer(1, 0, 0),
    "Adam": Optimizer(2, 1, 0.167, 0),
    "AdamW": Optimizer(2, 1, 0.167, 0),
    "RAdam": Optimizer(2, 1, 0.167),
    "AdamW+amsgrad": Optimizer(3, 1, 0.167),
    "Adagrad": Optimizer(1, 2, 0.083),
    "Adadelta": Optimizer(2, 2, 0.167),
    "RMSprop": Optimizer(1, 1, 0.083),
    "Adamax": Optimizer(2, 1, 0.083),
    "ASGD": Optimizer(1, 1, 0.083),
    "Rprop": Optimizer(2, 1.1, 0.25),
    "Adafactor": Optimizer(0, 0.084, 0.084),
    "Muon": Optimizer(1, 0.25, 0.25),
}


@dataclass(frozen=True, slots=True)
class TrainingMemory:
    """The parts of the formula, in bytes; `total_bytes` is their peak."""

    model_bytes: int
    optimizer_bytes: int
    gradient_bytes: int
    optimizer_transient_bytes: int
    activation_bytes: int

    @property
    def total_bytes(self) -> int:
        """Model + optimizer state + the larger of (gradients + transients) and activations."""
        stepping = self.gradient_bytes + self.optimizer_transient_bytes
        return self.model_bytes + self.optimizer_bytes + max(stepping, self.activation_bytes)


def training_memory(
    params: int,
    batch_size: int,
    sequence_length: int,
    *,
    bytes_per_element: int = 4,
    optimizer: str = "AdamW",
    as_published: bool = False,
) -> TrainingMemory:
    """Estimate the peak of a transformer's training step from its size and its batch.

    The published formula multiplies the activations, which are bytes of bf16, by the element size
    once more; `as_published=True` keeps that. Raises ValueError for an unknown optimizer.
    """
    if optimizer not in OPTIMIZERS:
        raise ValueError(f'"{optimizer}" is not in the table; it has {", ".join(OPTIMIZERS)}')
    weights = params * bytes_per_element
    table = OPTIMIZERS[optimizer]
    per_token = TOKEN_SLOPE * params + TOKEN_OFFSET
    unit = bytes_per_element if as_published else bytes_per_element / BF16_BYTES
    return TrainingMemory(
        model_bytes=weights,
        optimizer_bytes=int(table.kept * weights),
        gradient_bytes=weights,
        optimizer_transient_bytes=int(table.transient() * weights),
        activation_bytes=int(per_token * batch_size * sequence_length * unit),
    )


class ActivationCount:
    """The bytes that modules returned so far."""

    def __init__(self) -> None:
        self.total_bytes = 0


@contextmanager
def forward_hook_activations(
    model: torch.nn.Module, *, containers: bool = False
) -> Iterator[ActivationCount]:
    """Sum the bytes of every module's output while the block runs the model.

    With `containers=True` modules that hold other modules count, too, as in the published recipe:
    their output is their last child's, so it counts twice. Functional operators and what autograd
    saves inside a module are missed either way.
    """
    import torch
    from torch.utils import _pytree

    count = ActivationCount()

    def add(module: torch.nn.Module, inputs: object, output: object) -> None:
        for leaf in _pytree.tree_leaves(output):
            if isinstance(leaf, torch.Tensor):
                count.total_bytes += leaf.numel() * leaf.element_size()

    handles = [
        module.register_forward_hook(add)
        for module in model.modules()
        if containers or not any(module.children())
    ]
    try:
        yield count
    finally:
        for handle in handles:
            handle.remove()
