"""How the native allocator rounds: a request to a block size, a block size to a segment size.

Constants and rules: c10/cuda/CUDACachingAllocator.cpp and CUDAAllocatorConfig.cpp; the constants
were compared with the headers in the torch 2.13 wheel.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

MIB: Final = 1 << 20
ALIGN_BYTES: Final = 512  # every block is a multiple of it
SMALL_BYTES: Final = 1 * MIB  # the largest request of the small pool
SMALL_SEGMENT_BYTES: Final = 2 * MIB
LARGE_SEGMENT_BYTES: Final = 20 * MIB  # torch 2.13: `large_segment_size_mb`
OWN_SEGMENT_BYTES: Final = 10 * MIB  # from here a request gets a segment of its own
ROUND_LARGE_BYTES: Final = 2 * MIB
UNLIMITED: Final = 1 << 62
_INTERVALS = 16  # 1 MiB to 64 GiB, one entry for each power of two
_ENTRY = re.compile(r"(\d+|>):(\d+)")


@dataclass(frozen=True, slots=True)
class NativeConfig:
    """What PYTORCH_CUDA_ALLOC_CONF can say about the native policy; sizes in bytes.

    `roundup_divisions` holds one number of divisions for each power of two from 1 MiB to 64 GiB,
    or None; `gc_threshold` is a share of the limit (0: never) and needs a limit.
    """

    max_split_bytes: int = UNLIMITED
    roundup_divisions: tuple[int, ...] | None = None
    gc_threshold: float = 0.0
    large_segment_bytes: int = LARGE_SEGMENT_BYTES
    non_split_slack_bytes: int = LARGE_SEGMENT_BYTES

    def __post_init__(self) -> None:
        if not 0 <= self.gc_threshold < 1:
            raise ValueError(f"gc_threshold must lie in [0, 1), not {self.gc_threshold}")
        if self.max_split_bytes <= LARGE_SEGMENT_BYTES:
            raise ValueError("max_split_size must be more than 20 MiB, as torch demands")
        if self.large_segment_bytes < LARGE_SEGMENT_BYTES:
            raise ValueError("large_segment_size must be at least 20 MiB")

    @property
    def splits_are_limited(self) -> bool:
        """Whether `max_split_size_mb` was set."""
        return self.max_split_bytes < UNLIMITED


def round_size(size: int, config: NativeConfig | None = None) -> int:
    """The block size searched for: a multiple of 512 bytes, or a power-of-two division."""
    divisions = _divisions(size, config) if size >= ALIGN_BYTES else 0
    if divisions > 1 and size > ALIGN_BYTES * divisions:
        return _next_division(size, divisions)
    return max(ALIGN_BYTES, -(-size // ALIGN_BYTES) * ALIGN_BYTES)


def segment_size(size: int, config: NativeConfig) -> int:
    """The bytes asked of the driver for a block of `size` that no cached block can serve."""
    if size <= SMALL_BYTES:
        return SMALL_SEGMENT_BYTES
    if size < OWN_SEGMENT_BYTES:
        return config.large_segment_bytes
    return -(-size // ROUND_LARGE_BYTES) * ROUND_LARGE_BYTES


def parse_roundup(text: str) -> tuple[int, ...]:
    """Read `roundup_power2_divisions`: "4", or "[256:1,512:2,1024:4,>:8]" with sizes in MiB.

    Raises ValueError for anything else, or when a number is not a power of two.
    """
    if text.strip().isdigit():
        return (_power_of_two(int(text)),) * _INTERVALS
    entries = _ENTRY.findall(text)
    if not entries or ",".join(f"{k}:{v}" for k, v in entries) != re.sub(r"[\[\]\s]", "", text):
        raise ValueError(f'"{text}" is no list of divisions; write 4 or [256:1,512:2,>:8]')
    table, last = [0] * _INTERVALS, -1
    for key, value in entries:
        at = last + 1 if key == ">" else min(_power_of_two(int(key)).bit_length(), _INTERVALS) - 1
        divisions = _power_of_two(int(value))
        stop = _INTERVALS if key == ">" else at + 1
        start = 0 if last < 0 else at
        table[start:stop] = [divisions] * (stop - start)
        last = at
    return tuple(table)


def _divisions(size: int, config: NativeConfig | None) -> int:
    if config is None or config.roundup_divisions is None:
        return 0
    interval = size.bit_length() - MIB.bit_length()
    return config.roundup_divisions[min(max(interval, 0), _INTERVALS - 1)]


def _next_division(size: int, divisions: int) -> int:
    floor = 1 << (size.bit_length() - 1)
    step = floor >> int(math.log2(divisions))
    return size if size == floor else -(-size // step) * step


def _power_of_two(value: int) -> int:
    if value < 1 or value & (value - 1):
        raise ValueError(f"{value} is not a power of two")
    return value
