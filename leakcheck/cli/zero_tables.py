"""The closed forms of `leakcheck estimate`: ZeRO model states as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

import click

from leakcheck.errors import UsageError

if TYPE_CHECKING:
    from leakcheck.memory.zero import Need

ROUGH = "rough: model states only, no activations; 25 % off on average on ten real training steps"
MOST_PARAMS = 10**18


class Count(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """A whole number above 0, also written as "2851e6"."""

    name = "count"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read the number; a usage error when it is none."""
        try:
            count = Decimal(str(value))
        except InvalidOperation:
            self.fail(f'"{value}" is not a number; write it as 2851e6', param, ctx)
        if not count.is_finite() or not 0 < count < MOST_PARAMS or count != int(count):
            self.fail(f'"{value}" is not a whole number above 0', param, ctx)
        return int(count)


def table(
    stage: int,
    params: int | None,
    largest_layer_params: int | None,
    setup: tuple[int, int, float],
    *,
    as_json: bool = False,
) -> str:
    """Return a stage's table, labelled with its error; `setup` is (GPUs a node, nodes, factor)."""
    if params is None:
        raise UsageError(f"--zero{stage} needs --params, e.g. --params 2851e6")
    if stage == 3 and largest_layer_params is None:
        raise UsageError("--zero3 needs --largest-layer-params, e.g. 32e6")
    largest = largest_layer_params or 0
    if as_json:
        found = {"format": 1, "stage": stage, "params": params, "error": ROUGH}
        return json.dumps(found | {"needs": _rows(stage, params, largest, setup)}, indent=2)
    return f"{_text(stage, params, largest, setup)}\n{ROUGH}"


def _text(stage: int, params: int, largest: int, setup: tuple[int, int, float]) -> str:
    from leakcheck.memory import zero

    if stage == 3:
        return zero.estimate_zero3_model_states_mem_needs_all_cold(params, largest, *setup)
    if stage == 2:
        return zero.estimate_zero2_model_states_mem_needs_all_cold(params, *setup)
    return zero.estimate_zero1_model_states_mem_needs_all_cold(params, *setup)


def _rows(
    stage: int, params: int, largest: int, setup: tuple[int, int, float]
) -> list[dict[str, object]]:
    from leakcheck.memory import zero

    needs: Iterable[Need]
    if stage == 3:
        needs = zero.zero3_needs(params, largest, *setup)
    else:
        needs = zero.zero12_needs(stage, params, *setup)
    return [
        {"options": need.options, "cpu_bytes": need.cpu_bytes, "gpu_bytes": need.gpu_bytes}
        for need in needs
    ]
