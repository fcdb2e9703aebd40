"""The policy of `expandable_segments:True`: one growing segment for each stream and pool.

Rules from c10/cuda/CUDACachingAllocator.cpp: pages of 2 MiB (small pool) or 20 MiB (large pool) are
mapped at the lowest address where the request fits, free pages are unmapped under pressure, blocks
split from 512 bytes on. Not yet compared with a recording of a real device.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

from leakcheck.memory.allocator import NativeAllocator
from leakcheck.memory.blocks import FREE, UNMAPPED, Arena, Block, BlockView, PoolId, SegmentView
from leakcheck.memory.initial import SegmentSpan
from leakcheck.memory.rounding import ALIGN_BYTES, LARGE_SEGMENT_BYTES, SMALL_SEGMENT_BYTES

ADDRESS_SPACE_BYTES = 1 << 42  # torch reserves 9/8 of the card; any size above the card behaves so


class ExpandableAllocator(NativeAllocator):
    """torch's allocator with expandable segments; takes the native settings that still apply."""

    def _should_split(self, block: Block, size: int) -> bool:
        return block.size - size >= ALIGN_BYTES

    def _take(self, arena: Arena, size: int) -> Block | None:
        """Best fit, where a block before unmapped space counts as large as it could become."""
        free = arena.free
        at = bisect_left(free, (size, 0))
        if at == len(free):
            return None
        best = self._blocks[free[at][1]]
        for candidate_at in range(at + 1, len(free)):
            candidate = self._blocks[free[candidate_at][1]]
            if _potential(candidate) >= _potential(best):
                break
            best, at = candidate, candidate_at
        split = self.config.max_split_bytes
        if size < split <= best.size:
            return None
        if size >= split and best.size >= size + self.config.non_split_slack_bytes:
            return None
        del free[at]
        return best

    def _extend(self, arena: Arena, size: int, wanted: int) -> Block | None:
        if not self._fits(wanted) or size > ADDRESS_SPACE_BYTES:
            return None
        block = self._lowest_room(arena, size)
        if block.state == UNMAPPED and not self._map(block, min(block.size, size)):
            return None
        while block.size < size:
            upper = block.next
            assert upper is not None
            if not self._map(upper, min(size - block.size, upper.size)):
                return None
            block = upper
        self._remove(block)
        return block

    def _lowest_room(self, arena: Arena, size: int) -> Block:
        """The lowest run of free and unmapped blocks that holds `size`, or a new address range."""
        for address in arena.unmapped:
            block = self._blocks[address]
            if block.prev is not None and block.prev.state == FREE:
                block = block.prev
            if _room(block) >= size:
                return block
        address = self.driver(ADDRESS_SPACE_BYTES)
        block = self._blocks[address] = Block(address, ADDRESS_SPACE_BYTES, address, arena)
        block.state = UNMAPPED
        insort(arena.unmapped, address)
        return block

    def _map(self, block: Block, size: int) -> bool:
        """Back the first `size` bytes, in whole pages, and merge them with free neighbours."""
        page = self._page(block.arena)
        mapped = min(-(-size // page) * page, block.size)
        if not self._fits(mapped):
            return False
        self._unlist(block)
        if mapped < block.size:
            upper = self._split(block, mapped)
            insort(block.arena.unmapped, upper.address)
        self._join(block, FREE)
        self._insert(block)
        self.segment_allocs += 1
        self.reserved_bytes += mapped
        self.peak_reserved_bytes = max(self.peak_reserved_bytes, self.reserved_bytes)
        return True

    def _release(self, arena: Arena) -> None:
        for _, address in tuple(arena.free):
            self._unmap(self._blocks[address])

    def release_segment(self, address: int) -> int:
        """Expandable segments are released page by page, never one by one; always 0."""
        return 0

    def _collect_garbage(self) -> None:
        """torch's collector passes over expandable blocks."""

    def _unmap(self, block: Block) -> None:
        """Give back the whole pages inside a free block; the edges stay free blocks."""
        page, base = self._page(block.arena), block.segment
        first = base + -(-(block.address - base) // page) * page
        last = base + (block.address + block.size - base) // page * page
        if first >= last:
            return
        self._remove(block)
        if first > block.address:
            lower, block = block, self._split(block, first - block.address)
            self._insert(lower)
        if last < block.address + block.size:
            self._insert(self._split(block, last - block.address))
        released = block.size
        self._join(block, UNMAPPED)
        insort(block.arena.unmapped, block.address)
        self.segment_frees += 1
        self.reserved_bytes -= released

    def _page(self, arena: Arena) -> int:
        return SMALL_SEGMENT_BYTES if arena.small else self.config.large_segment_bytes


def address_ranges(
    segments: Sequence[SegmentView], spans: Iterable[SegmentSpan]
) -> tuple[SegmentView, ...]:
    """Join expandable stretches, where any span is one, into the address range of their arena."""
    if not any(span.expandable for span in spans):
        return tuple(segments)
    arenas: dict[tuple[int, PoolId, bool], list[SegmentView]] = {}
    for segment in segments:
        arenas.setdefault((segment.stream, segment.pool, segment.small), []).append(segment)
    return tuple(_one_range(stretches) for stretches in arenas.values())


def _one_range(mapped: Sequence[SegmentView]) -> SegmentView:
    """Join the mapped stretches of one arena into its address range, unmapped space between.

    A snapshot lists each mapped stretch as a segment of its own.
    """
    ordered = sorted(mapped, key=lambda segment: segment.address)
    first, views, at = ordered[0], [], ordered[0].address
    for segment in ordered:
        if segment.address > at:
            views.append(BlockView(at, segment.address - at, 0, UNMAPPED))
        views.extend(segment.blocks)
        at = segment.address + segment.size
    rest = max(first.address + ADDRESS_SPACE_BYTES - at, LARGE_SEGMENT_BYTES)
    views.append(BlockView(at, rest, 0, UNMAPPED))
    size = sum(segment.size for segment in ordered)
    return SegmentView(first.address, size, first.stream, first.pool, first.small, tuple(views))


def _potential(block: Block) -> int:
    upper = block.next
    return block.size + (upper.size if upper is not None and upper.state == UNMAPPED else 0)


def _room(block: Block) -> int:
    size, at = 0, block
    while at is not None and at.state in (FREE, UNMAPPED):
        size += at.size
        at = at.next  # type: ignore[assignment]
    return size
