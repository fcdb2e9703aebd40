"""The caching allocator of PyTorch, as arithmetic: sizes in, addresses and byte counts out.

The rules of torch's default allocator (c10/cuda/CUDACachingAllocator.cpp), checked block by block
against recorded traces; `expandable.py` and `policies.py` hold the other policies.

    allocator = NativeAllocator()
    address = allocator.malloc(3200)
    allocator.allocated_bytes  # 3584
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from leakcheck.memory.blocks import (
    DEFAULT_POOL,
    FREE,
    Allocator,
    Arena,
    Block,
    Driver,
    OutOfMemory,
    PoolId,
)
from leakcheck.memory.rounding import (
    ALIGN_BYTES,
    SMALL_BYTES,
    NativeConfig,
    round_size,
    segment_size,
)

__all__ = ["NativeAllocator", "NativeConfig", "OutOfMemory", "round_size", "segment_size"]


class NativeAllocator(Allocator):
    """torch's default policy: best fit per stream and pool, 2 and 20 MiB segments, lazy release."""

    def __init__(
        self,
        config: NativeConfig | None = None,
        limit: int | None = None,
        driver: Driver | None = None,
    ) -> None:
        super().__init__(limit, driver)
        self.config = config or NativeConfig()
        self._collects = limit is not None and self.config.gc_threshold > 0
        self._searches: dict[tuple[PoolId, bool], int] = {}

    def malloc(self, size: int, stream: int = 0, pool: PoolId = DEFAULT_POOL) -> int:
        """Allocate `size` bytes and return the address. Raises OutOfMemory."""
        if self.config.roundup_divisions is None:
            rounded = -(-size // ALIGN_BYTES) * ALIGN_BYTES or ALIGN_BYTES
        else:
            rounded = round_size(size, self.config)
        arena = self._arena(stream, pool, rounded <= SMALL_BYTES)
        block = self._take(arena, rounded) or self._grow(arena, rounded, size)
        if self._should_split(block, rounded):
            upper = self._split(block, rounded)
            upper.state = FREE
            self._insert(upper)
        self._count(block, size)
        return block.address

    def _should_split(self, block: Block, size: int) -> bool:
        remainder = block.size - size
        if block.arena.small:
            return remainder >= ALIGN_BYTES
        return remainder > SMALL_BYTES and size < self.config.max_split_bytes

    def _take(self, arena: Arena, size: int) -> Block | None:
        if self._collects:
            key = arena.pool, arena.small
            self._searches[key] = self._searches.get(key, 0) + 1
        free = arena.free
        at = bisect_left(free, (size, 0))
        if at == len(free):
            return None
        found, address = free[at]
        split = self.config.max_split_bytes
        if found >= split and (size < split or found >= size + self.config.non_split_slack_bytes):
            return None
        del free[at]
        return self._blocks[address]

    def _grow(self, arena: Arena, size: int, requested: int) -> Block:
        """The chain of a cache miss: collect, ask the driver, release some, release all, fail."""
        wanted = segment_size(size, self.config)
        if self._collects:
            self._collect_garbage()
        block = self._extend(arena, size, wanted)
        if block is None and self._release_oversize(arena, size):
            block = self._extend(arena, size, wanted)
        if block is None:
            self.retries += 1
            self.empty_cache()
            block = self._extend(arena, size, wanted)
        if block is None:
            raise OutOfMemory(requested, self.reserved_bytes, self.limit)
        return block

    def _extend(self, arena: Arena, size: int, wanted: int) -> Block | None:
        return self._new_segment(arena, wanted)

    def _release_oversize(self, arena: Arena, size: int) -> bool:
        """With max_split set: free one block that is large enough, or several from the largest."""
        split, free = self.config.max_split_bytes, arena.free
        if not self.config.splits_are_limited:
            return False
        wanted = max(size, split)
        at = bisect_left(free, (wanted, 0))
        if at < len(free):
            return self.release_segment(free[at][1]) > 0
        released = 0
        for block_size, address in list(reversed(free)):
            if released >= wanted or block_size < split:
                break
            released += self.release_segment(address)
        return released >= wanted

    def _collect_garbage(self) -> None:
        """Above the threshold, free unsplit large blocks of at least average age, in rounds."""
        excess = self.reserved_bytes - int(self.config.gc_threshold * (self.limit or 0))
        while excess > 0:
            aged = [(self._age(b), b) for b in self._releasable()]
            if not aged:
                return
            mean = sum(age for age, _ in aged) / len(aged)
            for age, block in aged:
                if age >= mean:
                    excess -= self.release_segment(block.address)

    def _releasable(self) -> Iterator[Block]:
        for arena in self._arenas.values():
            if arena.pool == DEFAULT_POOL and not arena.small:
                blocks = (self._blocks[address] for _, address in arena.free)
                yield from (b for b in blocks if not b.is_split)

    def _age(self, block: Block) -> int:
        return self._searches.get((DEFAULT_POOL, False), 0) - block.born

    def _insert(self, block: Block) -> None:
        if self._collects:
            block.born = self._searches.get((block.arena.pool, block.arena.small), 0)
        insort(block.arena.free, (block.size, block.address))
