from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from leakcheck.memory.allocator import NativeAllocator
from leakcheck.memory.blocks import SegmentView
from leakcheck.memory.trace import Event, Mark, Trace
from leakcheck.memory.trace_file import read_traces

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="session")
def recorded() -> dict[str, Trace]:
    return {trace.name: trace for trace in read_traces(DATA / "alloc_traces.json.gz")}


@pytest.fixture(scope="session")
def twelve_steps(recorded: dict[str, Trace]) -> Callable[..., Trace]:
    """Twelve steps made of one recorded full step: as it was, of varying size, or leaking."""
    source = recorded["kk_128_fullstep_"]
    matched = _closed(source.events)

    def build(*, varying: bool = False, leaked_bytes: int = 0) -> Trace:
        chance = random.Random(3)
        events: list[Event] = []
        marks: list[Mark] = []
        for step in range(12):
            scale = chance.uniform(0.6, 1.0) if varying else 1.0
            first = step * 10**9
            for event in matched:
                size = max(1, int(event.size * scale)) if event.size > 4 << 20 else event.size
                events.append(event._replace(block=event.block + first, size=size))
            if leaked_bytes:
                events.append(Event("alloc", -1 - step, leaked_bytes))
            marks.append(Mark(len(events), "after optimizer", step))
        return Trace(events=tuple(events), marks=tuple(marks), name="twelve steps")

    return build


def _closed(events: tuple[Event, ...]) -> list[Event]:
    """The allocations with their frees, each under its own name; what stayed is freed last."""
    closed: list[Event] = []
    names: dict[int, Event] = {}
    for number, event in enumerate(e for e in events if e.kind in ("alloc", "free")):
        if event.kind == "alloc":
            names[event.block] = Event("alloc", number, event.size)
            closed.append(names[event.block])
        elif event.block in names:
            closed.append(names.pop(event.block)._replace(kind="free"))
    return closed + [event._replace(kind="free") for event in names.values()]


@pytest.fixture
def snapshot_of() -> Callable[[Trace], dict[str, object]]:
    """What torch would dump at the end of a trace that began where the trace begins."""

    def dump(trace: Trace) -> dict[str, object]:
        allocator = played(trace)
        actions = {"alloc": "alloc", "free": "free_completed"}
        entries = [
            {
                "action": actions.get(event.kind, event.kind),
                "addr": event.block,
                "size": event.size,
                "stream": event.stream,
                "time_us": number,
                "frames": [],
            }
            for number, event in enumerate(trace.events)
        ]
        return {
            "segments": [_segment_dict(segment) for segment in allocator.segments()],
            "device_traces": [entries],
            "allocator_settings": {},
        }

    return dump


def played(trace: Trace) -> NativeAllocator:
    """The allocator after every event, with the recorded places of new segments."""
    places = [event.block for event in trace.events if event.kind == "segment_alloc"]
    allocator = NativeAllocator(driver=lambda size: places.pop(0))
    for segment in trace.initial:
        allocator.restore(segment)
    for event in trace.events:
        if event.kind == "alloc":
            assert allocator.malloc(event.size, event.stream, event.pool) == event.block
        elif event.kind == "free":
            allocator.free(event.block)
        elif event.kind == "segment_free":
            allocator.release_segment(event.block)
    return allocator


def _segment_dict(segment: SegmentView) -> dict[str, object]:
    return {
        "device": 0,
        "address": segment.address,
        "total_size": segment.size,
        "stream": segment.stream,
        "segment_type": "small" if segment.small else "large",
        "segment_pool_id": segment.pool,
        "is_expandable": False,
        "blocks": [
            {
                "address": block.address,
                "size": block.size,
                "requested_size": block.requested,
                "state": "active_allocated" if block.state == "used" else "inactive",
            }
            for block in segment.blocks
        ],
    }
