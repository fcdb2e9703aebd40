"""The closed-form tables of `leakcheck estimate`: ZeRO model states and the rough formula."""

from __future__ import annotations

import json
from typing import Any

from leakcheck.errors import UsageError
from leakcheck.units import format_bytes

ROUGH = "model states only: no activations, buckets or framework; mean error 25 % on ten real steps"


def tables(options: dict[str, Any]) -> str:
    """Return the tables that were asked for, as text or as one JSON object."""
    if options["params"] is None:
        raise UsageError("the closed forms need --params, the model's parameter count")
    if options["zero3"] and options["largest_layer"] is None:
        raise UsageError("--zero3 needs --largest-layer, the parameter count of the largest layer")
    stages = [stage for stage in (1, 2, 3) if options[f"zero{stage}"]]
    if options["as_json"]:
        found: dict[str, Any] = {f"zero{stage}": _rows(stage, options) for stage in stages}
        if options["formula"]:
            found["formula"] = _formula(options)
        return json.dumps({"format": 1, "params": options["params"], **found}, indent=1)
    parts = [f"{_table(stage, options)}\nrough: {ROUGH}" for stage in stages]
    return "\n\n".join([*parts, *([_formula_text(options)] if options["formula"] else [])])


def _setup(options: dict[str, Any]) -> tuple[int, int, float]:
    return options["gpus_per_node"], options["nodes"], options["buffer_factor"]


def _table(stage: int, options: dict[str, Any]) -> str:
    from leakcheck.memory import zero

    if stage == 3:
        return zero.estimate_zero3_model_states_mem_needs_all_cold(
            options["params"], options["largest_layer"], *_setup(options)
        )
    tabled = (
        zero.estimate_zero1_model_states_mem_needs_all_cold,
        zero.estimate_zero2_model_states_mem_needs_all_cold,
    )
    return tabled[stage - 1](options["params"], *_setup(options))


def _rows(stage: int, options: dict[str, Any]) -> list[dict[str, Any]]:
    from leakcheck.memory import zero

    setup = _setup(options)
    if stage == 3:
        needs = zero.zero3_needs(options["params"], options["largest_layer"], *setup)
    else:
        needs = zero.zero12_needs(stage, options["params"], *setup)
    return [
        {"options": need.options, "cpu_bytes": need.cpu_bytes, "gpu_bytes": need.gpu_bytes}
        for need in needs
    ]


def _formula(options: dict[str, Any]) -> dict[str, int]:
    from dataclasses import asdict

    from leakcheck.memory.estimators import training_memory

    sizes = options["batch_size"] or (1,)
    try:
        memory = training_memory(
            options["params"], sizes[0], options["sequence_length"], optimizer=options["optimizer"]
        )
    except ValueError as error:
        raise UsageError(f"--optimizer: {error}") from None
    return asdict(memory) | {"total_bytes": memory.total_bytes}


def _formula_text(options: dict[str, Any]) -> str:
    from leakcheck.memory.estimators import PUBLISHED_ERROR

    parts = _formula(options)
    lines = [
        f"{name.removesuffix('_bytes').replace('_', ' '):<20}{format_bytes(size):>12}"
        for name, size in parts.items()
    ]
    return "\n".join([*lines, f"rough: as published {PUBLISHED_ERROR}; here in corrected units"])
