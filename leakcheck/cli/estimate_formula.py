"""`leakcheck estimate --formula`: training memory from a few numbers, labelled with its error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from leakcheck.errors import UsageError
from leakcheck.units import format_bytes

if TYPE_CHECKING:
    from leakcheck.memory.estimators import TrainingMemory

OPTIMIZER_NAMES = (
    *("SGD", "SGD+momentum", "Adam", "AdamW", "AdamW+amsgrad", "RAdam", "Adagrad", "Adadelta"),
    *("RMSprop", "Adamax", "ASGD", "Rprop", "Adafactor", "Muon"),
)
USUAL_OPTIMIZER = "AdamW"


@dataclass(frozen=True, slots=True)
class _Estimate:
    """The formula for one batch size: corrected, as published, and its peak by optimizer."""

    found: TrainingMemory
    published: TrainingMemory
    peaks: dict[str, int]


def table(
    params: int | None,
    batch_sizes: tuple[int, ...],
    length: int | None,
    optimizer: str,
    element_bytes: int,
) -> str:
    """Return the parts of the formula, its peak under every optimizer, and its measured error."""
    params, length = _needed(params, length)
    blocks = []
    for batch, each in _estimates(params, batch_sizes, length, optimizer, element_bytes):
        tokens = f"{batch:,} x {length:,} tokens, {element_bytes} bytes an element"
        head = f"{params:,} parameters, {optimizer}, {tokens}"
        lines = [head, *_parts(each.found, optimizer), *_optimizers(each.peaks)]
        blocks.append("\n".join([*lines, _error(each.published)]))
    return "\n\n".join(blocks)


def as_json(
    params: int | None,
    batch_sizes: tuple[int, ...],
    length: int | None,
    optimizer: str,
    element_bytes: int,
) -> str:
    """Return the same as one JSON object."""
    params, length = _needed(params, length)
    told = []
    for batch, each in _estimates(params, batch_sizes, length, optimizer, element_bytes):
        size = {"params": params, "batch_size": batch, "sequence_length": length}
        told.append(size | {"optimizer": optimizer} | _told(each))
    return json.dumps({"format": 1, "formulas": told}, indent=2)


def _estimates(
    params: int, batch_sizes: tuple[int, ...], length: int, optimizer: str, element_bytes: int
) -> Iterator[tuple[int, _Estimate]]:
    for batch in batch_sizes or (1,):
        yield batch, _estimate((params, batch, length), optimizer, element_bytes)


def _needed(params: int | None, length: int | None) -> tuple[int, int]:
    if params is None or length is None:
        raise UsageError(
            "--formula needs --params and --sequence-length, e.g. --params 124e6 "
            "--sequence-length 1024"
        )
    return params, length


def _estimate(size: tuple[int, int, int], optimizer: str, element_bytes: int) -> _Estimate:
    from leakcheck.memory.estimators import OPTIMIZERS, training_memory

    def memory(name: str, *, as_published: bool = False) -> TrainingMemory:
        return training_memory(
            *size, bytes_per_element=element_bytes, optimizer=name, as_published=as_published
        )

    return _Estimate(
        memory(optimizer),
        memory(optimizer, as_published=True),
        {name: memory(name).total_bytes for name in OPTIMIZERS},
    )


def _parts(found: TrainingMemory, optimizer: str) -> list[str]:
    from leakcheck.memory.estimators import OPTIMIZERS

    chosen = OPTIMIZERS[optimizer]
    rows = (
        ("model", found.model_bytes, ""),
        ("optimizer state", found.optimizer_bytes, f"{chosen.kept:g} x model"),
        ("gradients", found.gradient_bytes, ""),
        ("in the step", found.optimizer_transient_bytes, f"{chosen.foreach:g} x model, foreach"),
        ("activations", found.activation_bytes, "fitted on transformers in bf16"),
        ("peak", found.total_bytes, "model + state + max(gradients + step, activations)"),
    )
    return [f"  {name:<18}{format_bytes(size):>10}   {why}".rstrip() for name, size, why in rows]


def _optimizers(peaks: dict[str, int]) -> list[str]:
    from leakcheck.memory.estimators import OPTIMIZERS

    lines = [
        f"  {'optimizer':<18}{'kept':>6}{'foreach':>9}{'for-loop':>10}{'fused':>7}{'peak':>11}"
    ]
    for name, each in OPTIMIZERS.items():
        fused = "-" if each.fused is None else f"{each.fused:g}"
        shares = f"{each.kept:>6g}{each.foreach:>9g}{each.for_loop:>10g}{fused:>7}"
        lines.append(f"  {name:<18}{shares}{format_bytes(peaks[name]):>11}")
    return lines


def _error(published: TrainingMemory) -> str:
    from leakcheck.memory.estimators import CORRECTED_ERROR, PUBLISHED_ERROR

    return (
        f"rough: off by {CORRECTED_ERROR:.0%} on average on ten real training steps; the formula as"
        f" published says {format_bytes(published.total_bytes)} and is off by {PUBLISHED_ERROR:.0%}"
    )


def _told(each: _Estimate) -> dict[str, object]:
    from leakcheck.memory.estimators import CORRECTED_ERROR, PUBLISHED_ERROR

    return {
        **asdict(each.found),
        "total_bytes": each.found.total_bytes,
        "mean_error": CORRECTED_ERROR,
        "total_bytes_as_published": each.published.total_bytes,
        "mean_error_as_published": PUBLISHED_ERROR,
        "total_bytes_by_optimizer": each.peaks,
    }
