"""`leakcheck estimate --formula`: training memory from a few numbers, labelled with its error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

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
class Training:
    """What the formula is asked: the model, its optimizer, and each size of batch."""

    params: int
    sequence_length: int
    batch_sizes: tuple[int, ...]
    optimizer: str
    element_bytes: int

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Training:
        """Take it from the command's options. Raises UsageError when a size is missing."""
        if options["params"] is None or options["sequence_length"] is None:
            raise UsageError(
                "--formula needs --params and --sequence-length, e.g. --params 124e6 "
                "--sequence-length 1024"
            )
        return cls(
            options["params"],
            options["sequence_length"],
            options["batch_sizes"] or (1,),
            options["optimizer"],
            options["element_bytes"],
        )


@dataclass(frozen=True, slots=True)
class _Estimate:
    """The formula for one batch size: corrected, as published, and its peak by optimizer."""

    batch_size: int
    found: TrainingMemory
    published: TrainingMemory
    peaks: dict[str, int]


def table(asked: Training) -> str:
    """Return the parts of the formula, its peak under every optimizer, and its measured error."""
    blocks = []
    for each in _estimates(asked):
        tokens = f"{each.batch_size:,} x {asked.sequence_length:,} tokens"
        size = f"{asked.element_bytes} bytes an element"
        head = f"{asked.params:,} parameters, {asked.optimizer}, {tokens}, {size}"
        lines = [head, *_parts(each.found, asked.optimizer), *_optimizers(each.peaks)]
        blocks.append("\n".join([*lines, _error(each.published)]))
    return "\n\n".join(blocks)


def as_json(asked: Training) -> str:
    """Return the same as one JSON object."""
    told = [
        {
            "params": asked.params,
            "batch_size": each.batch_size,
            "sequence_length": asked.sequence_length,
            "optimizer": asked.optimizer,
            **_told(each),
        }
        for each in _estimates(asked)
    ]
    return json.dumps({"format": 1, "formulas": told}, indent=2)


def _estimates(asked: Training) -> Iterator[_Estimate]:
    from leakcheck.memory.estimators import OPTIMIZERS

    for batch_size in asked.batch_sizes:
        yield _Estimate(
            batch_size,
            _memory(asked, batch_size, asked.optimizer),
            _memory(asked, batch_size, asked.optimizer, as_published=True),
            {name: _memory(asked, batch_size, name).total_bytes for name in OPTIMIZERS},
        )


def _memory(
    asked: Training, batch_size: int, optimizer: str, *, as_published: bool = False
) -> TrainingMemory:
    from leakcheck.memory.estimators import training_memory

    return training_memory(
        asked.params,
        batch_size,
        asked.sequence_length,
        bytes_per_element=asked.element_bytes,
        optimizer=optimizer,
        as_published=as_published,
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
