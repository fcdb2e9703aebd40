"""The page at the peak: which blocks are alive at the highest moment, by category and place.

The events are played once more up to that moment, so a run pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leakcheck.memory.blocks import Allocator
from leakcheck.memory.ledger import LiveBlock, write_page
from leakcheck.memory.trace import Event, Trace
from leakcheck.model import Category, LedgerPage

AT_PEAK = "at the peak"
NO_PLACE = "no recorded place"


def page_at(
    events: Sequence[Event],
    allocator: Allocator,
    categories: Mapping[int, Category],
    sites: Sequence[str],
    *,
    step: int = 0,
) -> LedgerPage:
    """Play events from an empty allocator and write a page of what they leave.

    `categories` maps the names of blocks to what they hold; a block without one, that is no
    workspace, is a temporary: it lives between two phases.
    """
    live: dict[int, tuple[int, Event]] = {}
    for event in events:
        if event.kind == "alloc":
            live[event.block] = allocator.malloc(event.size, event.stream, event.pool), event
        elif event.kind == "free" and event.block in live:
            allocator.free(live.pop(event.block)[0])
        elif event.kind == "empty_cache":
            allocator.empty_cache()
    blocks = [
        LiveBlock(
            address,
            allocator.size_of(address),
            event.size,
            sites[event.site] if 0 <= event.site < len(sites) else "",
        )
        for address, event in live.values()
    ]
    owners: dict[int, Category] = {
        address: categories.get(name, "temporaries") for name, (address, _) in live.items()
    }
    reserved = allocator.reserved_bytes
    return write_page(blocks, owners, phase=AT_PEAK, step=step, reserved_bytes=reserved)


def largest_places(trace: Trace, most: int = 10) -> tuple[tuple[str, int], ...]:
    """The places that hold most requested bytes when a trace holds most, largest first."""
    at = _highest(trace)
    live: dict[int, tuple[str, int]] = {
        view.address: ("before the recording", view.requested) for view in trace.initial_blocks()
    }
    for event in trace.events[:at]:
        if event.kind == "alloc":
            known = 0 <= event.site < len(trace.sites)
            live[event.block] = trace.sites[event.site] if known else NO_PLACE, event.size
        elif event.kind == "free":
            live.pop(event.block, None)
    held: dict[str, int] = {}
    for place, size in live.values():
        held[place] = held.get(place, 0) + size
    return tuple(sorted(held.items(), key=lambda item: -item[1])[:most])


def _highest(trace: Trace) -> int:
    """How many events lead to the highest sum of requested bytes."""
    live = {view.address: view.requested for view in trace.initial_blocks()}
    level = top = sum(live.values())
    highest = 0
    for number, event in enumerate(trace.events, 1):
        if event.kind == "alloc":
            live[event.block] = event.size
            level += event.size
        elif event.kind == "free":
            level -= live.pop(event.block, 0)
        if level > top:
            top, highest = level, number
    return highest
