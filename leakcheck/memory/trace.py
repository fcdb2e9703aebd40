"""An allocation trace: what a program asked of its allocator, in order.

Traces come from a `torch.cuda.memory` snapshot, from a trace file, or from the predictor; every
policy replays the same one. Events are named tuples because a trace may hold a million of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from leakcheck.memory.blocks import DEFAULT_POOL, UNMAPPED, USED, BlockView, PoolId, SegmentView

EventKind = Literal["alloc", "free", "segment_alloc", "segment_free", "empty_cache"]


class Event(NamedTuple):
    """One request; `block` names the allocation, in a recorded trace by its address.

    `size` is what was asked for, not rounded; `site` indexes `Trace.sites`, -1 when unknown.
    """

    kind: EventKind
    block: int
    size: int = 0
    stream: int = 0
    pool: PoolId = DEFAULT_POOL
    site: int = -1


class Mark(NamedTuple):
    """A moment between events: the label of a phase, before event number `at`, in a step."""

    at: int
    label: str
    step: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """Events of one device with what was there before the first one.

    `initial` holds the segments at the start of the recording, block for block; `final` the totals
    the recording ended with, for checking. `settings` is the allocator's configuration as recorded.
    """

    events: tuple[Event, ...]
    initial: tuple[SegmentView, ...] = ()
    marks: tuple[Mark, ...] = ()
    sites: tuple[str, ...] = ()
    name: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    final_allocated_bytes: int | None = None
    final_reserved_bytes: int | None = None

    @property
    def expandable(self) -> bool:
        """Whether the recording was made with expandable segments."""
        mapped = any(view.state == UNMAPPED for s in self.initial for view in s.blocks)
        return mapped or bool(self.settings.get("expandable_segments"))

    def initial_blocks(self) -> Iterator[BlockView]:
        """The blocks alive before the first event, by address."""
        for segment in self.initial:
            yield from (view for view in segment.blocks if view.state == USED)
