"""What the device held before a recording began, worked out backwards from what it held at the end.

Recording may start late and is bounded, so the blocks alive at the start and freed later are known
by address and requested size only. Their true size follows from the rounding rule, and in the large
pool from the slop rule: up to 1 MiB behind a block belongs to it when nothing was carved there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from leakcheck.memory.blocks import DEFAULT_POOL, FREE, USED, BlockView, PoolId, SegmentView
from leakcheck.memory.rounding import (
    LARGE_SEGMENT_BYTES,
    SMALL_BYTES,
    SMALL_SEGMENT_BYTES,
    NativeConfig,
    round_size,
)
from leakcheck.memory.trace import Event


@dataclass(frozen=True, slots=True)
class SegmentSpan:
    """A segment as a snapshot lists it, without its blocks."""

    address: int
    size: int
    stream: int = 0
    pool: PoolId = DEFAULT_POOL
    small: bool = False
    expandable: bool = False

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.address + self.size


def initial_segments(
    spans: Iterable[SegmentSpan],
    live: Mapping[int, tuple[int, int]],
    events: Sequence[Event],
    config: NativeConfig | None = None,
) -> tuple[SegmentView, ...]:
    """Undo the events on the final state: spans, and live blocks as address -> (size, requested).

    Returns the segments at the start with every block and gap, by address. Raises ValueError when
    segments or blocks overlap.
    """
    before, alive = _rewind(spans, live, events)
    starts = sorted(before)
    for start, following in pairwise(starts):
        if before[start].end > following:
            raise ValueError(f"segments overlap at address {following}")
    unknown = {a: requested for a, (size, requested) in alive.items() if size == 0}
    carved = _carved_ends(unknown, events, config)
    homes: dict[int, list[int]] = {}
    for address in sorted(alive):
        at = bisect_right(starts, address) - 1
        if at >= 0 and address < before[starts[at]].end:
            homes.setdefault(starts[at], []).append(address)
    return tuple(
        _segment(before[start], homes.get(start, []), alive, carved, config) for start in starts
    )


def _rewind(
    spans: Iterable[SegmentSpan], live: Mapping[int, tuple[int, int]], events: Sequence[Event]
) -> tuple[dict[int, SegmentSpan], dict[int, tuple[int, int]]]:
    """The spans and live blocks before the first event; a size of 0 is not known."""
    before = {span.address: span for span in spans}
    grows = any(span.expandable for span in before.values())
    alive = dict(live)
    for event in reversed(events):
        if event.kind == "alloc":
            alive.pop(event.block, None)
        elif event.kind == "free":
            alive[event.block] = (0, event.size)
        elif event.kind == "segment_alloc":
            _unmap(before, event.block, event.block + event.size)
        elif event.kind == "segment_free":
            small = event.size < LARGE_SEGMENT_BYTES if grows else event.size == SMALL_SEGMENT_BYTES
            before[event.block] = SegmentSpan(
                event.block, event.size, event.stream, event.pool, small, grows
            )
    return _whole(before) if grows else before, alive


def _unmap(spans: dict[int, SegmentSpan], start: int, end: int) -> None:
    """Take away a segment, or the pages of an expandable one that the range covers."""
    exact = spans.get(start)
    if exact is not None and exact.end == end:
        del spans[start]
        return
    for span in [s for s in spans.values() if s.expandable and s.address < end and start < s.end]:
        del spans[span.address]
        if span.address < start:
            spans[span.address] = replace(span, size=start - span.address)
        if end < span.end:
            spans[end] = replace(span, address=end, size=span.end - end)


def _whole(spans: Mapping[int, SegmentSpan]) -> dict[int, SegmentSpan]:
    """Join stretches of the same arena that touch."""
    joined: dict[int, SegmentSpan] = {}
    last: SegmentSpan | None = None
    for span in (spans[address] for address in sorted(spans)):
        if last is not None and last.end == span.address and _arena(last) == _arena(span):
            last = replace(last, size=last.size + span.size)
        else:
            last = span
        joined[last.address] = last
    return joined


def _arena(span: SegmentSpan) -> tuple[int, PoolId, bool]:
    return span.stream, span.pool, span.small


def _carved_ends(
    unknown: Mapping[int, int], events: Sequence[Event], config: NativeConfig | None
) -> dict[int, int]:
    """Where the first block was carved within the slop behind an unknown one while it lived."""
    waiting = sorted(unknown)
    ends: dict[int, int] = {}
    for event in events:
        if not waiting:
            break
        at = bisect_right(waiting, event.block) - 1
        if at < 0 or event.kind not in ("alloc", "free"):
            continue
        address = waiting[at]
        if event.kind == "free":
            if address == event.block:
                del waiting[at]
            continue
        least = address + round_size(unknown[address], config)
        if least <= event.block <= least + SMALL_BYTES:
            ends[address] = event.block
            del waiting[at]
    return ends


def _segment(
    span: SegmentSpan,
    addresses: Sequence[int],
    alive: Mapping[int, tuple[int, int]],
    carved: Mapping[int, int],
    config: NativeConfig | None,
) -> SegmentView:
    views: list[BlockView] = []
    at = span.address
    for address, following in pairwise((*addresses, span.end)):
        if address < at:
            raise ValueError(f"blocks overlap at address {address}")
        if address > at:
            views.append(BlockView(at, address - at, 0, FREE))
        size, requested = alive[address]
        if size == 0:
            size = _true_size(address, requested, following, span, carved, config)
        views.append(BlockView(address, size, requested, USED))
        at = address + size
    if at > span.end:
        raise ValueError(f"a block ends behind its segment at address {span.end}")
    if at < span.end:
        views.append(BlockView(at, span.end - at, 0, FREE))
    return SegmentView(span.address, span.size, span.stream, span.pool, span.small, tuple(views))


def _true_size(
    address: int,
    requested: int,
    following: int,
    span: SegmentSpan,
    carved: Mapping[int, int],
    config: NativeConfig | None,
) -> int:
    rounded = min(round_size(requested, config), following - address)
    if span.small or span.expandable:
        return rounded
    if address in carved and carved[address] <= following:
        return carved[address] - address
    gap = following - address - rounded
    return rounded + gap if gap <= SMALL_BYTES else rounded
