"""What a trace tells: leak, fragmentation or steady; what each policy needs; what would cure it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from leakcheck.memory.growth import (
    WARMUP_STEPS,
    MemoryVerdict,
    SeriesGrowth,
    excess_grows,
    grows,
    verdict,
)
from leakcheck.memory.policies import CURES, Policy, policies_with
from leakcheck.memory.replay import Fidelity, Replay, replay, reproduce, smallest_limit
from leakcheck.memory.rounding import LARGE_SEGMENT_BYTES, UNLIMITED, NativeConfig, round_size
from leakcheck.memory.steps import Steps, find_steps
from leakcheck.memory.trace import Trace
from leakcheck.units import format_bytes

_NO_STEPS: Final = "the trace shows no steps; record six or more, or mark phases in it"
_LAYERS: Final = (
    "the requests repeat, and what each time makes lives on through much of the next: the layers "
    "of one pass, or steps that keep their output; mark the steps to tell"
)
_GROWING_LAYERS: Final = (
    "live bytes grow {} each time the requests repeat, and that is much of what each time "
    "allocates: steps that leak, or the layers of one pass; mark the steps to tell"
)
_LEAST_BLOCKS_PER_STEP: Final = 0.5
_WORTH_CURING: Final = 0.05  # of the reserved bytes
_MOST_SITES: Final = 10
_MOST_BISECTED_EVENTS: Final = 300_000  # above it a bisection of every policy takes minutes


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """What one policy needs for the trace; `fits` under the limit asked about, or None."""

    policy: str
    peak_reserved_bytes: int
    peak_allocated_bytes: int
    peak_requested_bytes: int
    reserved_per_step: float
    smallest_limit_bytes: int | None
    fits: bool | None


@dataclass(frozen=True, slots=True)
class AllocatorSetting:
    """A setting of PYTORCH_CUDA_ALLOC_CONF and the reserved bytes it saves at the peak."""

    setting: str
    saved_bytes: int


@dataclass(frozen=True, slots=True)
class GrownSite:
    """Live bytes that one place in the source adds each step."""

    site: str
    bytes_per_step: float
    blocks_per_step: float


@dataclass(frozen=True, slots=True)
class TraceReport:
    """Everything `leakcheck replay` knows about one trace."""

    name: str
    events: int
    verdict: MemoryVerdict
    live: SeriesGrowth
    excess: SeriesGrowth
    steps: Steps
    rows: tuple[PolicyRow, ...]
    grown: tuple[GrownSite, ...] = ()
    cure: AllocatorSetting | None = None
    fidelity: Fidelity | None = None
    limit_bytes: int | None = None

    @property
    def fits(self) -> bool:
        """Whether the first policy serves the trace under the limit, if one was given."""
        return self.rows[0].fits is not False


def judge(
    trace: Trace,
    policies: Mapping[str, Policy] | None = None,
    limit: int | None = None,
    bisect: bool = True,
) -> TraceReport:
    """Replay a trace under each policy and say what it shows.

    The first policy is the one judged for fragmentation; by default the recorded one. Steps are
    found in the trace; with fewer than six the verdict is "unclear".
    """
    config = recorded_config(trace)
    chosen = dict(policies) if policies else default_policies(trace, config)
    steps = find_steps(trace)
    runs = {name: replay(trace, policy(None), steps.boundaries) for name, policy in chosen.items()}
    first = next(iter(runs.values()))
    live = _live_growth(trace, steps.boundaries)
    if not steps.boundaries:
        live = replace(live, reason=_why_no_steps(trace, steps.layers))
    excess = excess_grows(
        [m.reserved_bytes for m in first.moments], [m.peak_requested_bytes for m in first.moments]
    )
    found = verdict(live, excess)
    bisected = bisect and len(trace.events) <= _MOST_BISECTED_EVENTS
    return TraceReport(
        name=trace.name,
        events=len(trace.events),
        verdict=found,
        live=live,
        excess=excess,
        steps=steps,
        rows=tuple(_row(n, trace, chosen[n], run, limit, bisected) for n, run in runs.items()),
        grown=grown_sites(trace, steps.boundaries) if found == "leak" else (),
        cure=None if found == "leak" else _cure(trace, first),
        fidelity=_fidelity(trace, config),
        limit_bytes=limit,
    )


def _why_no_steps(trace: Trace, layers: Sequence[int]) -> str:
    if not layers:
        return _NO_STEPS
    live = _live_growth(trace, layers)
    return _GROWING_LAYERS.format(format_bytes(live.per_step)) if live.grows else _LAYERS


def default_policies(trace: Trace, config: NativeConfig) -> dict[str, Policy]:
    """Every policy, the recorded one first and with its recorded settings."""
    settled = policies_with(config)
    if not trace.expandable:
        return settled
    return {"expandable": settled.pop("expandable")} | settled


def recorded_config(trace: Trace) -> NativeConfig:
    """The allocator's settings as a snapshot names them; what is absent keeps its default."""
    settings = trace.settings
    split, threshold = settings.get("max_split_size"), settings.get("garbage_collection_threshold")
    config = NativeConfig(roundup_divisions=_divisions(settings.get("roundup_power2_divisions")))
    if isinstance(split, int) and LARGE_SEGMENT_BYTES < split < UNLIMITED:
        config = replace(config, max_split_bytes=split)
    if isinstance(threshold, float) and 0 < threshold < 1:
        config = replace(config, gc_threshold=threshold)
    return config


def _live_growth(trace: Trace, boundaries: Sequence[int]) -> SeriesGrowth:
    """Whether live bytes grow, or the number of live blocks: inputs of varying size hide the first.

    Where blocks pile up, the rate is that of the blocks that outlive their step.
    """
    sizes, counts = live_series(trace, boundaries)
    live, blocks = grows(sizes), grows(counts, _LEAST_BLOCKS_PER_STEP)
    if not blocks.grows:
        return live
    rate = _outliving_bytes(trace, boundaries)
    if rate <= 0:
        return live
    reason = live.reason if live.grows else "live blocks pile up step after step"
    return replace(live, grows=True, per_step=rate, reason=reason)


def live_series(trace: Trace, stops: Sequence[int]) -> tuple[list[int], list[int]]:
    """Live bytes, every block rounded to 512, and live blocks before each stop; for any policy."""
    sizes = {view.address: round_size(view.requested) for view in trace.initial_blocks()}
    level, at = sum(sizes.values()), 0
    levels: list[int] = []
    counts: list[int] = []
    for stop in stops:
        for event in trace.events[at:stop]:
            if event.kind == "alloc":
                level -= sizes.get(event.block, 0)
                sizes[event.block] = rounded = round_size(event.size)
                level += rounded
            elif event.kind == "free":
                level -= sizes.pop(event.block, 0)
        levels.append(level)
        counts.append(len(sizes))
        at = max(at, stop)
    return levels, counts


def _outliving_bytes(trace: Trace, boundaries: Sequence[int]) -> float:
    """Bytes a step of blocks made in a settled step that are alive at the last boundary."""
    settled = boundaries[WARMUP_STEPS:]
    if len(settled) < 3:
        return 0.0
    made: dict[int, int] = {}
    for at, event in enumerate(trace.events[: settled[-1]]):
        if event.kind == "free":
            made.pop(event.block, None)
        elif event.kind == "alloc" and settled[0] <= at < settled[-2]:
            made[event.block] = round_size(event.size)
        elif event.kind == "alloc":
            made.pop(event.block, None)
    return sum(made.values()) / (len(settled) - 2)


def grown_sites(trace: Trace, boundaries: Sequence[int]) -> tuple[GrownSite, ...]:
    """Which places hold more live bytes at the last boundary than at the first settled one.

    Blocks without a recorded place are told apart by their size.
    """
    settled = boundaries[WARMUP_STEPS:]
    if len(settled) < 2:
        return ()
    before, after = (_live_by_site(trace, at) for at in (settled[0], settled[-1]))
    steps = len(settled) - 1
    grown = [
        GrownSite(
            site,
            (size - before.get(site, (0, 0))[0]) / steps,
            (count - before.get(site, (0, 0))[1]) / steps,
        )
        for site, (size, count) in after.items()
        if size > before.get(site, (0, 0))[0]
    ]
    return tuple(sorted(grown, key=lambda each: -each.bytes_per_step)[:_MOST_SITES])


def _live_by_site(trace: Trace, stop: int) -> dict[str, tuple[int, int]]:
    """Site -> (live bytes, live blocks) before event number `stop`, among blocks of the trace."""
    live: dict[int, tuple[str, int]] = {}
    for event in trace.events[:stop]:
        if event.kind == "alloc":
            known = 0 <= event.site < len(trace.sites)
            site = trace.sites[event.site] if known else f"blocks of {format_bytes(event.size)}"
            live[event.block] = site, event.size
        elif event.kind == "free":
            live.pop(event.block, None)
    held: dict[str, tuple[int, int]] = {}
    for site, size in live.values():
        total, count = held.get(site, (0, 0))
        held[site] = total + size, count + 1
    return held


def _row(
    name: str, trace: Trace, policy: Policy, run: Replay, limit: int | None, bisect: bool
) -> PolicyRow:
    reserved = [m.reserved_bytes for m in run.moments][WARMUP_STEPS:]
    rises = [b - a for a, b in pairwise(reserved)]
    return PolicyRow(
        policy=name,
        peak_reserved_bytes=run.peak_reserved_bytes,
        peak_allocated_bytes=run.peak_allocated_bytes,
        peak_requested_bytes=run.peak_requested_bytes,
        reserved_per_step=sum(rises) / len(rises) if rises else 0.0,
        smallest_limit_bytes=smallest_limit(trace, policy) if bisect else None,
        fits=None if limit is None else replay(trace, policy(limit)).fits,
    )


def _cure(trace: Trace, recorded: Replay) -> AllocatorSetting | None:
    """The setting with the least peak of reserved bytes, where it saves enough to change it."""
    worth = max(LARGE_SEGMENT_BYTES, int(_WORTH_CURING * recorded.peak_reserved_bytes))
    if recorded.peak_reserved_bytes - recorded.peak_requested_bytes < worth:
        return None
    peaks = {name: replay(trace, p(None)).peak_reserved_bytes for name, p in CURES.items()}
    best = min(peaks, key=peaks.__getitem__)
    saved = recorded.peak_reserved_bytes - peaks[best]
    return AllocatorSetting(best, saved) if saved >= worth else None


def _fidelity(trace: Trace, config: NativeConfig) -> Fidelity | None:
    recorded = any(event.kind == "segment_alloc" for event in trace.events) or trace.initial
    return reproduce(trace, config) if recorded else None


def _divisions(setting: Any) -> tuple[int, ...] | None:
    """A snapshot lists the divisions as {"1": 0, "2": 0, ...}, MiB to divisions."""
    if not isinstance(setting, Mapping):
        return None
    try:
        table = tuple(int(setting[key]) for key in sorted(setting, key=int))
    except (TypeError, ValueError):
        return None
    return table if len(table) == 16 and any(table) else None
