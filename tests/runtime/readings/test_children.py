from __future__ import annotations

import mmap
import os

import pytest

from leakcheck.runtime.readings.proc import anonymous_bytes, child_pids

pytestmark = pytest.mark.skipif(child_pids() is None, reason="needs /proc")


def child_with(size_bytes: int) -> tuple[int, int]:
    """Fork a child that holds so much more; returns its pid and what ends it when closed."""
    ready, told = os.pipe()
    wait, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(end)
        held = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        held.write(b"x" * size_bytes)
        os.write(told, b"r")
        os.read(wait, 1)
        os._exit(0)
    os.read(ready, 1)
    for descriptor in (ready, told, wait):
        os.close(descriptor)
    return pid, end


def test_what_a_child_holds_is_read_without_asking_it():
    (small, end_small), (large, end_large) = child_with(1), child_with(30 << 20)
    try:
        pids = child_pids()
        more_bytes = anonymous_bytes([large]) - anonymous_bytes([small])
    finally:
        for end in (end_small, end_large):  # the second child has a copy of the first one's end
            os.close(end)
        for pid in (large, small):
            os.waitpid(pid, 0)

    assert pids is not None
    assert {small, large} <= set(pids)
    assert 29 << 20 <= more_bytes <= 36 << 20  # pages that each copied as it ran


def test_a_child_that_has_ended_holds_nothing():
    pid, end = child_with(1)
    os.close(end)
    os.waitpid(pid, 0)

    assert anonymous_bytes([pid]) == 0
