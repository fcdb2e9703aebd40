"""What torch.compile has made, as Dynamo counts it: reading two dictionaries, under a microsecond.

A function is compiled anew for each shape, number or object that its guards do not fit, and each
time keeps what was made, up to `torch._dynamo.config.recompile_limit` (8 by default); from then on
it runs as it is written.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

GRAPHS = "graphs.compiled"  # what lines are credited with
USUAL_LIMIT = 8
MOSTLY = 0.5  # of what was compiled, for functions that had been compiled before


@dataclass(frozen=True, slots=True)
class Recompilation:
    """Functions that were compiled again in some steps: how often so far, at most, and a step.

    `full_in_steps`: until each of them has as many graphs as it may keep, if that goes on.
    """

    made: int
    most: int
    per_step: float
    full_in_steps: int


def times_compiled() -> dict[int, int]:
    """Return how often each function was compiled, by Dynamo's number of it; {} without Dynamo."""
    counts = getattr(sys.modules.get("torch._dynamo.convert_frame"), "FRAME_COMPILE_COUNTER", {})
    return dict(counts)


def is_in_use() -> bool:
    """Say whether Dynamo is loaded."""
    return "torch._dynamo.utils" in sys.modules


def graphs_made() -> int:
    """Return how many graphs of all functions were made so far."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    return int(dict(counters).get("stats", {}).get("unique_graphs", 0))


def recompilation(
    before: Mapping[int, int], now: Mapping[int, int], steps: int
) -> Recompilation | None:
    """Say what functions were compiled again meanwhile; None if few were, or ever new ones are."""
    more = {one: now[one] - before.get(one, 0) for one in now if now[one] > before.get(one, 0)}
    again = {one: count for one, count in more.items() if one in before or count > 1}
    if not steps or sum(again.values()) < max(1.0, MOSTLY * sum(more.values())):
        return None
    each = _most_each()
    rates = {one: count / steps for one, count in again.items()}
    return Recompilation(
        made=sum(min(now[one], each) for one in again),
        most=each * len(again),
        per_step=sum(rates.values()),
        full_in_steps=max(round(max(0, each - now[one]) / rate) for one, rate in rates.items()),
    )


def _most_each() -> int:
    config = sys.modules.get("torch._dynamo.config")
    names = ("recompile_limit", "accumulated_recompile_limit")
    limits = (getattr(config, name, None) for name in names)
    return min((one for one in limits if isinstance(one, int)), default=USUAL_LIMIT)
