"""The buffers of sums that were recorded on an H200; what thread blocks do not share needs none."""

from __future__ import annotations

import pytest

from leakcheck.memory.reductions import Grid, scratch_bytes

H200 = Grid(multiprocessors=132, threads=2048)


@pytest.mark.parametrize(
    ("columns", "buffer", "semaphores"),
    [(1000, 8_192_000, 32), (1024, 8_388_608, 32), (768, 6_291_456, 24), (256, 2_097_152, 8)],
)
def test_the_columns_of_1024_rows_need_a_buffer(columns: int, buffer: int, semaphores: int):
    told = scratch_bytes(columns, 1024, 4, H200, rows=False, whole=False)

    assert told == (buffer, semaphores)


@pytest.mark.parametrize(("elements", "buffer"), [(1_024_000, 500), (524_288, 256)])
def test_one_number_of_everything_needs_a_small_one(elements: int, buffer: int):
    assert scratch_bytes(1, elements, 4, H200, rows=True, whole=True) == (buffer, 4)


def test_few_rows_or_short_ones_need_none():
    assert scratch_bytes(1024, 512, 4, H200, rows=False, whole=False) == ()
    assert scratch_bytes(512, 1024, 4, H200, rows=True, whole=False) == ()


def test_a_device_that_is_busy_with_the_columns_does_not_divide_the_rows():
    t4 = Grid(multiprocessors=40, threads=1024)

    assert scratch_bytes(50_304, 4096, 4, t4, rows=False, whole=False) == ()
    assert scratch_bytes(50_304, 4096, 4, H200, rows=False, whole=False) == (154_533_888, 1572)
