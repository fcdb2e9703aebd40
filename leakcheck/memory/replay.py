"""Replay a trace: exactly, to check the model against a recording, or under another policy."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leakcheck.memory.allocator import NativeAllocator
from leakcheck.memory.blocks import USED, Allocator, BumpDriver, OutOfMemory
from leakcheck.memory.expandable import ExpandableAllocator
from leakcheck.memory.policies import Policy
from leakcheck.memory.rounding import MIB, UNLIMITED, NativeConfig
from leakcheck.memory.trace import Event, Trace

_LIMIT_RESOLUTION_BYTES = 2 * MIB  # torch asks the driver for no less


@dataclass(frozen=True, slots=True)
class Moment:
    """The counts at one point of a replay; the peaks are those since the moment before."""

    at: int
    requested_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    peak_requested_bytes: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int


@dataclass(frozen=True, slots=True)
class Replay:
    """What a policy made of a trace; `failed_at` is the event it had no memory for, or None."""

    moments: tuple[Moment, ...]
    peak_requested_bytes: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    final_allocated_bytes: int
    final_reserved_bytes: int
    retries: int
    failed_at: int | None = None
    failure: str = ""

    @property
    def fits(self) -> bool:
        """Whether every request was served."""
        return self.failed_at is None


@dataclass(frozen=True, slots=True)
class Fidelity:
    """How much of a recording the model reproduces: blocks and segments at the same address."""

    blocks: int
    same_blocks: int
    segments: int
    same_segments: int
    allocated_bytes: int
    reserved_bytes: int

    @property
    def exact(self) -> bool:
        """Whether every block and every segment came out where it was recorded."""
        return (self.blocks, self.segments) == (self.same_blocks, self.same_segments)


def replay(trace: Trace, allocator: Allocator, stops: Sequence[int] = ()) -> Replay:
    """Run the events through the allocator, and read its counts before each event in `stops`.

    Blocks alive at the start are allocated first, in address order, so that every policy begins
    with the same live bytes and no history. A run of recorded releases counts as one emptying of
    the cache. A request that does not fit ends the replay.
    """
    live: dict[int, int] = {}
    moments: list[Moment] = []
    tops = [0, 0, 0]
    events = trace.events
    at = 0
    failure, births_done = "", False
    try:
        births = _births(trace)
        _run(allocator, births, 0, len(births), live)
        births_done = True
        for stop in stops:
            at = _run(allocator, events, at, min(stop, len(events)), live)
            moments.append(_moment(allocator, at, tops))
        at = _run(allocator, events, at, len(events), live)
        failed_at = None
    except _Failed as failed:  # before the first event when what was alive does not fit
        failed_at = failed.at if births_done else 0
        failure = str(failed.cause)
    _moment(allocator, at, tops)
    return Replay(
        moments=tuple(moments),
        peak_requested_bytes=tops[0],
        peak_allocated_bytes=tops[1],
        peak_reserved_bytes=tops[2],
        final_allocated_bytes=allocator.allocated_bytes,
        final_reserved_bytes=allocator.reserved_bytes,
        retries=allocator.retries,
        failed_at=failed_at,
        failure=failure,
    )


def smallest_limit(trace: Trace, policy: Policy, resolution: int = _LIMIT_RESOLUTION_BYTES) -> int:
    """The least limit on reserved bytes under which the whole trace is served, by bisection.

    A policy may serve a trace under some limit and not under a slightly larger one; the answer is
    a limit that works, at most `resolution` above one that does not.
    """
    free_run = replay(trace, policy(None))
    fails, fits = free_run.peak_requested_bytes - 1, free_run.peak_reserved_bytes
    while fits - fails > resolution:
        middle = (fails + fits) // 2
        if replay(trace, policy(middle)).fits:
            fits = middle
        else:
            fails = middle
    return fits


def reproduce(trace: Trace, config: NativeConfig | None = None) -> Fidelity:
    """Run the recorded policy over the recorded segments and compare every address.

    Where the driver put a segment and what was released when are taken from the trace, everything
    else is computed. Reserved bytes are compared after each change of them.
    """
    model = Reproduction(trace, config)
    blocks = same = 0
    for event, address in model:
        if event.kind == "alloc":
            blocks += 1
            same += address == event.block
    return Fidelity(
        blocks,
        same,
        model.script.changes,
        model.script.same,
        model.allocator.allocated_bytes,
        model.allocator.reserved_bytes,
    )


class Reproduction:
    """The recorded policy over the recorded segments: each event with the model's address, once."""

    def __init__(self, trace: Trace, config: NativeConfig | None = None) -> None:
        self.trace = trace
        self.script = _Recording(trace)
        kind = ExpandableAllocator if trace.expandable else NativeAllocator
        self.allocator = kind(config)
        self.allocator.driver = self.script.place
        for segment in trace.initial:
            self.allocator.restore(segment)

    @property
    def reserved_bytes(self) -> int:
        """What the recording says is reserved now, the model where it tells of no segment."""
        told = self.script.changes or self.trace.initial
        return self.script.reserved_bytes if told else self.allocator.reserved_bytes

    def __iter__(self) -> Iterator[tuple[Event, int]]:
        trace, allocator, script = self.trace, self.allocator, self.script
        expandable = trace.expandable
        live = {view.address: view.address for view in trace.initial_blocks()}
        for event, before in zip(trace.events, (None, *trace.events), strict=False):
            if event.kind == "alloc":
                live[event.block] = allocator.malloc(event.size, event.stream, event.pool)
                script.compare(allocator.reserved_bytes)
            elif event.kind == "free":
                address = live.pop(event.block, None)
                if address is not None:
                    allocator.free(address)
            elif event.kind == "segment_alloc":
                script.expect(event)
            elif event.kind == "segment_free":
                script.release(event)
                if not expandable:
                    if allocator.release_segment(event.block):
                        script.forget(event.block)
                elif before is None or before.kind != "segment_free":
                    allocator.empty_cache(event.pool)
            yield event, live.get(event.block, 0)
        script.compare(allocator.reserved_bytes)


class _Recording:
    """What the recording says of segments: where they lay, and the reserved bytes that follow."""

    def __init__(self, trace: Trace) -> None:
        self.changes = self.same = 0
        self.reserved_bytes = sum(segment.size for segment in trace.initial)
        self._pending = 0
        self._places: deque[tuple[int, int]] = deque()
        self._spare = BumpDriver(1 << 50)
        self._held = sorted((s.address, s.address + s.size) for s in trace.initial)

    def expect(self, event: Event) -> None:
        self.reserved_bytes += event.size
        self._pending += 1
        self._places.append((event.block, event.size))

    def release(self, event: Event) -> None:
        self.reserved_bytes -= event.size
        self._pending += 1

    def place(self, size: int) -> int:
        """The recorded address, or one far away once the model has left the recording."""
        if not self._places:
            return self._spare(size)
        address, recorded = self._places.popleft()
        end = address + min(size, recorded)  # an expandable range is longer than its first pages
        at = bisect_right(self._held, (address, UNLIMITED))
        below = self._held[at - 1][1] if at else 0
        above = self._held[at][0] if at < len(self._held) else UNLIMITED
        if below > address or above < end:
            return self._spare(size)
        self._held.insert(at, (address, end))
        return address

    def forget(self, address: int) -> None:
        """A segment was released: its addresses may be used again."""
        at = bisect_right(self._held, (address, UNLIMITED)) - 1
        if at >= 0 and self._held[at][0] == address:
            del self._held[at]

    def compare(self, reserved_bytes: int) -> None:
        self.changes += self._pending
        if reserved_bytes == self.reserved_bytes:
            self.same += self._pending
        self._pending = 0
        self._places.clear()


class _Failed(Exception):
    def __init__(self, at: int, cause: OutOfMemory) -> None:
        self.at, self.cause = at, cause


def _births(trace: Trace) -> tuple[Event, ...]:
    """The blocks alive at the start as requests, so that any policy can hold them."""
    return tuple(
        Event("alloc", view.address, view.requested, segment.stream, segment.pool)
        for segment in trace.initial
        for view in segment.blocks
        if view.state == USED
    )


def _run(
    allocator: Allocator, events: Sequence[Event], start: int, stop: int, live: dict[int, int]
) -> int:
    """Feed the events from start up to stop; returns stop. Raises _Failed."""
    malloc, free = allocator.malloc, allocator.free
    released = False  # a run of recorded releases is one emptying of the cache
    at = start
    try:
        for at in range(start, stop):
            kind, block, size, stream, pool, _ = events[at]
            if kind == "alloc":
                live[block] = malloc(size, stream, pool)
                released = False
            elif kind == "free":
                if block in live:
                    free(live.pop(block))
                released = False
            elif kind != "segment_alloc" and not released:
                allocator.empty_cache(pool)
                released = True
    except OutOfMemory as cause:
        raise _Failed(at, cause) from None
    return stop


def _moment(allocator: Allocator, at: int, tops: list[int]) -> Moment:
    """Read the counts, raise the overall tops and start the next stretch's peaks."""
    peaks = (
        allocator.peak_requested_bytes,
        allocator.peak_allocated_bytes,
        allocator.peak_reserved_bytes,
    )
    tops[:] = map(max, tops, peaks)
    allocator.reset_peaks()
    return Moment(
        at, allocator.requested_bytes, allocator.allocated_bytes, allocator.reserved_bytes, *peaks
    )
