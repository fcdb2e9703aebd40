"""Policies to replay a trace under, by name: what another allocator would have reserved.

`autogrowth` is Paddle's AutoGrowthBestFit (phi/core/memory/allocation): 256-byte alignment, best
fit over all chunks whatever the stream, always split, the tail handed out. `ideal` packs live
bytes without a gap, which no allocator can; what lies above it is rounding and fragmentation.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Final

from leakcheck.memory.allocator import NativeAllocator
from leakcheck.memory.blocks import (
    DEFAULT_POOL,
    FREE,
    Allocator,
    Block,
    Driver,
    OutOfMemory,
    PoolId,
)
from leakcheck.memory.expandable import ExpandableAllocator
from leakcheck.memory.rounding import MIB, NativeConfig, parse_roundup

AUTOGROWTH_ALIGN_BYTES: Final = 256
Policy = Callable[[int | None], Allocator]  # limit -> a fresh allocator


class AutoGrowthAllocator(Allocator):
    """Paddle's allocator; `chunk_bytes` is `auto_growth_chunk_size_in_mb`, 0 the exact size."""

    def __init__(
        self, chunk_bytes: int = 0, limit: int | None = None, driver: Driver | None = None
    ) -> None:
        super().__init__(limit, driver)
        self.chunk_bytes = chunk_bytes

    def malloc(self, size: int, stream: int = 0, pool: PoolId = DEFAULT_POOL) -> int:
        """Allocate `size` bytes and return the address. Raises OutOfMemory."""
        rounded = -(-max(size, 1) // AUTOGROWTH_ALIGN_BYTES) * AUTOGROWTH_ALIGN_BYTES
        block = self._take(rounded) or self._grow(rounded, size)
        if block.size > rounded:
            lower, block = block, self._split(block, block.size - rounded)
            lower.state = FREE
            self._insert(lower)
        self._count(block, size)
        return block.address

    def _take(self, size: int) -> Block | None:
        free = self._arena(0, DEFAULT_POOL, False).free
        at = bisect_left(free, (size, 0))
        return None if at == len(free) else self._blocks[free.pop(at)[1]]

    def _grow(self, size: int, requested: int) -> Block:
        """Free idle chunks and retry once when the device, or the limit, refuses."""
        arena, wanted = self._arena(0, DEFAULT_POOL, False), max(size, self.chunk_bytes)
        block = self._new_segment(arena, wanted)
        if block is None:
            self.retries += 1
            self.empty_cache()
            block = self._new_segment(arena, wanted)
        if block is None:
            raise OutOfMemory(requested, self.reserved_bytes, self.limit)
        return block


class IdealAllocator(Allocator):
    """Live bytes and nothing else: no rounding, no cache, no gap."""

    def malloc(self, size: int, stream: int = 0, pool: PoolId = DEFAULT_POOL) -> int:
        """Allocate `size` bytes and return the address. Raises OutOfMemory."""
        block = self._new_segment(self._arena(stream, pool, False), size)
        if block is None:
            raise OutOfMemory(size, self.reserved_bytes, self.limit)
        self._count(block, size)
        return block.address

    def free(self, address: int) -> None:
        """Give the bytes back at once."""
        block = self._blocks[address]
        self.allocated_bytes -= block.size
        self.requested_bytes -= block.requested
        self._drop_segment(block)


def native(config: NativeConfig | None = None) -> Policy:
    """torch's default policy with the given settings."""
    return lambda limit: NativeAllocator(config, limit)


def expandable(config: NativeConfig | None = None) -> Policy:
    """torch's policy with `expandable_segments:True`."""
    return lambda limit: ExpandableAllocator(config, limit)


POLICIES: Final[Mapping[str, Policy]] = {
    "native": native(),
    "expandable": expandable(),
    "autogrowth": lambda limit: AutoGrowthAllocator(limit=limit),
    "ideal": IdealAllocator,
}


def policies_with(config: NativeConfig | None) -> dict[str, Policy]:
    """Every policy by name, torch's own with the given settings."""
    return {**POLICIES, "native": native(config), "expandable": expandable(config)}


# Settings of PYTORCH_CUDA_ALLOC_CONF that may cure fragmentation, in the order we would try them.
CURES: Final[Mapping[str, Policy]] = {
    "expandable_segments:True": expandable(),
    "roundup_power2_divisions:8": native(NativeConfig(roundup_divisions=parse_roundup("8"))),
    "roundup_power2_divisions:4": native(NativeConfig(roundup_divisions=parse_roundup("4"))),
    "max_split_size_mb:128": native(NativeConfig(max_split_bytes=128 * MIB)),
    "max_split_size_mb:512": native(NativeConfig(max_split_bytes=512 * MIB)),
}
