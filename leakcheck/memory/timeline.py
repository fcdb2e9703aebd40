"""Live memory over the events of a training step, thinned to what a picture shows.

The predictor makes one by category, a recording one by the place that allocated; both hold block
bytes, so that their sums are what `memory_allocated` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from leakcheck.memory.blocks import Allocator
from leakcheck.memory.ledger import CATEGORIES
from leakcheck.memory.replay import Reproduction
from leakcheck.memory.rounding import NativeConfig
from leakcheck.memory.trace import Event, Trace
from leakcheck.model import Category

COLUMNS: Final = 600
MOST_LAYERS: Final = 8
OTHER_PLACES, BEFORE = "other places", "before the recording"
LIVE: Final = "live bytes"


@dataclass(frozen=True, slots=True)
class Timeline:
    """Bytes by layer and reserved bytes in columns; each keeps the highest moment of its events.

    `phases` names the column at which a phase of the step ends; `events` is how many were thinned.
    """

    layers: dict[str, tuple[int, ...]]
    reserved: tuple[int, ...]
    phases: tuple[tuple[int, str], ...] = ()
    events: int = 0

    @property
    def highest_bytes(self) -> int:
        """The most live bytes of any moment."""
        return max(map(sum, zip(*self.layers.values(), strict=True)), default=0)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a recording shows: a stretch of it, the peaks of all, and the live bytes by event.

    `levels` holds the allocated bytes before the first event and after each.
    """

    timeline: Timeline
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    levels: tuple[int, ...]


class _Columns:
    """Rows of bytes by layer, of which each column keeps the one with the highest sum."""

    def __init__(self, events: int, names: Sequence[str]) -> None:
        self.names = names
        self.row = [0] * len(names)
        self._events = events
        self._width = -(-events // COLUMNS) or 1
        self._kept: list[list[int]] = []
        self._highest: list[int] = []
        self._reserved: list[int] = []

    def add(self, at: int, live: int, reserved: int) -> None:
        """Look at the row after event number `at`, whose sum is `live`."""
        column = at // self._width
        if column == len(self._kept):
            self._kept.append(self.row.copy())
            self._highest.append(live)
            self._reserved.append(reserved)
        elif live > self._highest[column]:
            self._kept[column], self._highest[column] = self.row.copy(), live
        self._reserved[column] = max(self._reserved[column], reserved)

    def timeline(self, phases: Iterable[tuple[int, str]] = ()) -> Timeline:
        """What was kept, without the layers that are always empty."""
        columns = tuple(zip(*self._kept, strict=True)) if self._kept else ()
        layers = {n: c for n, c in zip(self.names, columns, strict=False) if any(c)}
        ends = tuple((at // self._width, name) for at, name in phases)
        return Timeline(layers, tuple(self._reserved), ends, self._events)


def predicted_timeline(
    events: Sequence[Event],
    allocator: Allocator,
    categories: Mapping[int, Category],
    start: int,
    phases: Sequence[tuple[int, str]] = (),
) -> Timeline:
    """Play events on an empty allocator and draw those from number `start` on, by category.

    A block without a category is a temporary; rounding is a layer of its own. `phases` are event
    numbers, after which a phase ends.
    """
    columns = _Columns(len(events) - start, CATEGORIES)
    numbers = {name: row for row, name in enumerate(CATEGORIES)}
    rounding = numbers["rounding and slop"]
    live: dict[int, tuple[int, int]] = {}
    for at, event in enumerate(events):
        if event.kind == "alloc":
            row = numbers[categories.get(event.block, "temporaries")]
            live[event.block] = allocator.malloc(event.size, event.stream, event.pool), row
            columns.row[row] += event.size
        elif event.kind == "free" and event.block in live:
            address, row = live.pop(event.block)
            allocator.free(address)
            columns.row[row] -= event.size
        elif event.kind == "empty_cache":
            allocator.empty_cache()
        if at >= start:
            columns.row[rounding] = allocator.allocated_bytes - allocator.requested_bytes
            columns.add(at - start, allocator.allocated_bytes, allocator.reserved_bytes)
    return columns.timeline((at - start, name) for at, name in phases if at >= start)


def recorded_timeline(
    trace: Trace, start: int, stop: int, config: NativeConfig | None = None
) -> Recorded:
    """The events of a recording from number `start` up to `stop`, by place.

    Block sizes come from reproducing the recorded policy. A block from before the recording and a
    recording without places have layers of their own.
    """
    largest = largest_sites(trace)
    rest = len(largest) + 1
    names = (BEFORE, *(trace.sites[site] for site in largest), OTHER_PLACES if largest else LIVE)
    columns = _Columns(stop - start, names)
    model = Reproduction(trace, config)
    allocator = model.allocator
    live = {view.address: (0, allocator.size_of(view.address)) for view in trace.initial_blocks()}
    columns.row[0] = sum(size for _, size in live.values())
    levels = [allocator.allocated_bytes]
    peak_reserved = model.reserved_bytes
    for at, (event, address) in enumerate(model):
        if event.kind == "alloc":
            row = largest.get(event.site, rest - 1) + 1
            live[event.block] = row, allocator.size_of(address)
            columns.row[row] += live[event.block][1]
        elif event.kind == "free" and event.block in live:
            row, size = live.pop(event.block)
            columns.row[row] -= size
        levels.append(allocator.allocated_bytes)
        peak_reserved = max(peak_reserved, model.reserved_bytes)
        if start <= at < stop:
            columns.add(at - start, allocator.allocated_bytes, model.reserved_bytes)
    return Recorded(columns.timeline(), max(levels), peak_reserved, tuple(levels))


def largest_sites(trace: Trace) -> dict[int, int]:
    """The sites that asked for most bytes, numbered from 0."""
    asked: dict[int, int] = {}
    for event in trace.events:
        if event.kind == "alloc" and 0 <= event.site < len(trace.sites):
            asked[event.site] = asked.get(event.site, 0) + event.size
    largest = sorted(asked, key=lambda site: -asked[site])[:MOST_LAYERS]
    return {site: number for number, site in enumerate(largest)}
