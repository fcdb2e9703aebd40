"""The scratch memory of a reduction on a device: how torch divides a sum among thread blocks.

A column sum over many rows, as the gradient of a bias is, needs a buffer of partial sums that can
be larger than the tensor itself: 8 MiB for 1024 rows of 1024. The arithmetic is setReduceConfig and
ReduceConfig of aten/src/ATen/native/cuda/Reduce.cuh; on an H200 it gave the size of every buffer
that was recorded (tests/data/gpu/trace-native.json.gz and scratch.json).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_THREADS: Final = 512  # MAX_NUM_THREADS
_WARP: Final = 32
_VECTOR: Final = 4  # elements that are read at once
_FEW_VALUES, _MANY_VALUES = 16, 256  # of a thread: the least and the most
_SEMAPHORE_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Grid:
    """How many threads a device runs at once."""

    multiprocessors: int
    threads: int  # of a multiprocessor

    def blocks(self, threads: int) -> int:
        """How many thread blocks of so many threads run at once."""
        return self.multiprocessors * (self.threads // threads)


def scratch_bytes(
    outputs: int, inputs: int, element_bytes: int, grid: Grid, *, rows: bool, whole: bool
) -> Sequence[int]:
    """Return the bytes of the buffer and of the semaphores, or nothing where none are needed.

    Each of the `outputs` is made of so many `inputs`, summed in elements of `element_bytes`; `rows`
    says that they lie side by side, `whole` that all of a dense tensor becomes one number.
    """
    vector = 1 if rows else math.gcd(outputs, _VECTOR)
    across, down = (inputs, outputs) if rows else (outputs // vector, inputs)
    if whole and inputs > _THREADS // _VECTOR:
        across //= _VECTOR
    width, height = _block(across, down, _THREADS // vector)
    values = over(inputs, width) if rows else inputs
    if values < min(height * _FEW_VALUES, _MANY_VALUES):
        return ()  # the threads of a block have outputs of their own
    values = over(values, height)
    columns = over(outputs // vector, 1 if rows else width)
    at_once = grid.blocks(width * height)
    if values < _MANY_VALUES or columns > at_once:
        return ()
    parts = min(over(at_once, columns), over(values, _FEW_VALUES))
    parts = max(parts, over(values, _MANY_VALUES))
    if parts <= 1:
        return ()
    lanes = 1 if rows else width * vector
    return element_bytes * outputs * parts * lanes, _SEMAPHORE_BYTES * columns


def _block(across: int, down: int, threads: int) -> tuple[int, int]:
    """Width and height of a thread block, powers of two."""
    widest, highest = (min(_power(size), threads) for size in (across, down))
    height = min(highest, threads // min(widest, _WARP))
    return min(widest, threads // height), height


def _power(size: int) -> int:
    return 1 << max(size, 1).bit_length() - 1


def over(size: int, tile: int) -> int:
    """How many tiles cover a size."""
    return -(-size // tile)
