"""What every allocation policy shares: blocks, free lists, segments and the counts over them.

Sizes and addresses are bytes. `allocated` counts whole blocks, `requested` what was asked for,
`reserved` the segments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from leakcheck.units import format_bytes

PoolId: TypeAlias = tuple[int, int]
Driver: TypeAlias = Callable[[int], int]  # bytes wanted -> address of the new segment

DEFAULT_POOL: Final[PoolId] = (0, 0)  # CUDA graphs and MemPool have ids of their own
USED, FREE, UNMAPPED = "used", "free", "unmapped"
_DRIVER_STEP_BYTES = 2 << 20
_FIRST_ADDRESS = 1 << 40


class OutOfMemory(Exception):
    """A request that fits in no cached block and not under the limit, even after releasing."""

    def __init__(self, requested: int, reserved: int, limit: int | None) -> None:
        self.requested, self.reserved, self.limit = requested, reserved, limit
        under = "" if limit is None else f" under a limit of {format_bytes(limit)}"
        held = format_bytes(reserved)
        super().__init__(f"{format_bytes(requested)} do not fit: {held} reserved{under}")


class Block:
    """A stretch of a segment, linked to its neighbours; mutable, never leaves the allocator."""

    __slots__ = (
        "address",
        "arena",
        "born",
        "next",
        "prev",
        "requested",
        "segment",
        "size",
        "state",
    )

    def __init__(self, address: int, size: int, segment: int, arena: Arena) -> None:
        self.address, self.size, self.segment, self.arena = address, size, segment, arena
        self.prev: Block | None = None
        self.next: Block | None = None
        self.state = USED
        self.requested = 0
        self.born = 0

    @property
    def is_split(self) -> bool:
        """Whether the block shares its segment, so that the segment cannot be released."""
        return self.prev is not None or self.next is not None


class Arena:
    """The free blocks of one (stream, pool, small or large), ordered by size, then address."""

    __slots__ = ("free", "pool", "small", "stream", "unmapped")

    def __init__(self, stream: int, pool: PoolId, small: bool) -> None:
        self.stream, self.pool, self.small = stream, pool, small
        self.free: list[tuple[int, int]] = []
        self.unmapped: list[int] = []  # addresses, expandable segments only


@dataclass(frozen=True, slots=True)
class BlockView:
    """A block as others see it; `size` is what it counts for, `requested` what was asked for."""

    address: int
    size: int
    requested: int
    state: str


@dataclass(frozen=True, slots=True)
class SegmentView:
    """A segment and all its blocks in address order; `size` leaves unmapped blocks out."""

    address: int
    size: int
    stream: int
    pool: PoolId
    small: bool
    blocks: tuple[BlockView, ...]


class BumpDriver:
    """Hands out addresses that grow: the driver of a machine without a device."""

    def __init__(self, first: int = _FIRST_ADDRESS) -> None:
        self._next = first

    def __call__(self, size: int) -> int:
        """Reserve `size` bytes; segments never touch, so they cannot merge."""
        address = self._next
        pages = -(-size // _DRIVER_STEP_BYTES) + 1
        self._next += pages * _DRIVER_STEP_BYTES
        return address


class Allocator(ABC):
    """Blocks, free lists and byte counts; a policy says how blocks are found, split and grown.

    `limit` caps the reserved bytes of this allocator; a context or a library is not in it.
    """

    def __init__(self, limit: int | None = None, driver: Driver | None = None) -> None:
        self.limit = limit
        self.driver: Driver = driver or BumpDriver()
        self.allocated_bytes = self.requested_bytes = self.reserved_bytes = 0
        self.peak_allocated_bytes = self.peak_requested_bytes = self.peak_reserved_bytes = 0
        self.segment_allocs = self.segment_frees = self.retries = 0
        self._blocks: dict[int, Block] = {}
        self._arenas: dict[tuple[int, PoolId, bool], Arena] = {}
        self._segment_sizes: dict[int, int] = {}

    @abstractmethod
    def malloc(self, size: int, stream: int = 0, pool: PoolId = DEFAULT_POOL) -> int:
        """Allocate `size` bytes and return the address. Raises OutOfMemory."""

    def free(self, address: int) -> None:
        """Give a live block back to the cache and merge it with free neighbours."""
        block = self._blocks[address]
        self.allocated_bytes -= block.size
        self.requested_bytes -= block.requested
        block.requested = 0
        self._join(block, FREE)
        self._insert(block)

    def empty_cache(self, pool: PoolId = DEFAULT_POOL) -> int:
        """Release every segment of the pool that is one free block; returns the bytes."""
        before = self.reserved_bytes
        for arena in self._arenas.values():
            if arena.pool == pool:
                self._release(arena)
        return before - self.reserved_bytes

    def release_segment(self, address: int) -> int:
        """Release one wholly free segment, as a recorded `segment_free` says; returns its size."""
        block = self._blocks.get(address)
        if block is None or block.state != FREE or block.is_split:
            return 0
        self._remove(block)
        return self._drop_segment(block)

    def size_of(self, address: int) -> int:
        """What the live block at `address` counts for, rounding and slop included."""
        return self._blocks[address].size

    def reset_peaks(self) -> None:
        """Start the peaks again from what is held now."""
        self.peak_allocated_bytes = self.allocated_bytes
        self.peak_requested_bytes = self.requested_bytes
        self.peak_reserved_bytes = self.reserved_bytes

    def segments(self) -> tuple[SegmentView, ...]:
        """Every segment with its blocks, by address."""
        heads = sorted((b for b in self._blocks.values() if b.prev is None), key=_address_of)
        return tuple(_view(head) for head in heads)

    def restore(self, segment: SegmentView) -> None:
        """Put a recorded segment in place as it was, before the first event is replayed."""
        arena = self._arena(segment.stream, segment.pool, segment.small)
        previous: Block | None = None
        for view in segment.blocks:
            block = Block(view.address, view.size, segment.address, arena)
            block.state, block.requested, block.prev = view.state, view.requested, previous
            if previous is not None:
                previous.next = block
            previous = self._blocks[view.address] = block
            if view.state == FREE:
                self._insert(block)
            elif view.state == UNMAPPED:
                insort(arena.unmapped, view.address)
            else:
                self._count(block, view.requested)
        self._count_segment(segment.address, segment.size)

    def _arena(self, stream: int, pool: PoolId, small: bool) -> Arena:
        arena = self._arenas.get((stream, pool, small))
        if arena is None:
            arena = self._arenas[stream, pool, small] = Arena(stream, pool, small)
        return arena

    def _count(self, block: Block, requested: int) -> None:
        block.state = USED
        block.requested = requested
        self.allocated_bytes += block.size
        self.requested_bytes += requested
        if self.allocated_bytes > self.peak_allocated_bytes:
            self.peak_allocated_bytes = self.allocated_bytes
        if self.requested_bytes > self.peak_requested_bytes:
            self.peak_requested_bytes = self.requested_bytes

    def _count_segment(self, address: int, size: int) -> None:
        self._segment_sizes[address] = size
        self.segment_allocs += 1
        self.reserved_bytes += size
        self.peak_reserved_bytes = max(self.peak_reserved_bytes, self.reserved_bytes)

    def _fits(self, size: int) -> bool:
        return self.limit is None or self.reserved_bytes + size <= self.limit

    def _new_segment(self, arena: Arena, size: int) -> Block | None:
        if not self._fits(size):
            return None
        address = self.driver(size)
        block = self._blocks[address] = Block(address, size, address, arena)
        self._count_segment(address, size)
        return block

    def _drop_segment(self, block: Block) -> int:
        del self._blocks[block.address]
        self.segment_frees += 1
        size = self._segment_sizes.pop(block.segment)
        self.reserved_bytes -= size
        return size

    def _release(self, arena: Arena) -> None:
        kept = []
        for entry in arena.free:
            block = self._blocks[entry[1]]
            if block.is_split:
                kept.append(entry)
            else:
                self._drop_segment(block)
        arena.free = kept

    def _insert(self, block: Block) -> None:
        insort(block.arena.free, (block.size, block.address))

    def _remove(self, block: Block) -> None:
        free = block.arena.free
        del free[bisect_left(free, (block.size, block.address))]

    def _split(self, block: Block, size: int) -> Block:
        """Cut the block after `size` bytes; returns the upper part, in no list yet."""
        upper = Block(block.address + size, block.size - size, block.segment, block.arena)
        upper.state = block.state
        upper.prev, upper.next = block, block.next
        if block.next is not None:
            block.next.prev = upper
        block.next = upper
        block.size = size
        self._blocks[upper.address] = upper
        return upper

    def _join(self, block: Block, state: str) -> None:
        """Set the state and swallow neighbours of the same state."""
        block.state = state
        lower = block.prev
        if lower is not None and lower.state == state:
            self._unlist(lower)
            del self._blocks[block.address]
            block.address, block.size, block.prev = (
                lower.address,
                lower.size + block.size,
                lower.prev,
            )
            if lower.prev is not None:
                lower.prev.next = block
            self._blocks[block.address] = block
        upper = block.next
        if upper is not None and upper.state == state:
            self._unlist(upper)
            del self._blocks[upper.address]
            block.size, block.next = block.size + upper.size, upper.next
            if upper.next is not None:
                upper.next.prev = block

    def _unlist(self, block: Block) -> None:
        if block.state == FREE:
            self._remove(block)
        else:
            unmapped = block.arena.unmapped
            del unmapped[bisect_left(unmapped, block.address)]


def _address_of(block: Block) -> int:
    return block.address


def _view(head: Block) -> SegmentView:
    arena, views = head.arena, []
    block: Block | None = head
    while block is not None:
        views.append(BlockView(block.address, block.size, block.requested, block.state))
        block = block.next
    size = sum(v.size for v in views if v.state != UNMAPPED)
    return SegmentView(head.address, size, arena.stream, arena.pool, arena.small, tuple(views))
