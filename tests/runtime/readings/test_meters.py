from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

from leakcheck.runtime.readings.meters import LEAST_FREED_BYTES, USUALLY_LITTLE, GarbageMeter
from leakcheck.runtime.readings.watching import Watch


class Heap:
    """A heap that a collection frees some bytes of; counts how often it is read."""

    def __init__(self) -> None:
        self.bytes, self.reads = 1 << 30, 0

    def __call__(self) -> int:
        self.reads += 1
        return self.bytes


@pytest.fixture
def collections(monkeypatch):
    """Run the meter's callback by hand: `collect(generation, objects, freed bytes)`."""
    listening: list[Callable[[str, dict[str, int]], None]] = []
    monkeypatch.setattr(gc, "callbacks", listening)
    heap = Heap()
    meter = GarbageMeter(heap)
    meter.listen()

    def collect(generation: int, collected: int, freed_bytes: int, times: int = 1) -> None:
        for _ in range(times):
            meter.step += 1
            for callback in listening:
                callback("start", {"generation": generation, "collected": 0})
            heap.bytes -= freed_bytes
            for callback in listening:
                callback("stop", {"generation": generation, "collected": collected})
            heap.bytes += freed_bytes

    return meter, heap, collect


def test_what_collections_free_over_and_over_is_added_up(collections):
    meter, _, collect = collections

    collect(0, 40, 1 << 20, times=30)

    assert meter.freed == (30 << 20, 0)


def test_what_readings_held_of_what_was_collected_meanwhile_counts_at_their_end(collections):
    meter, heap, collect = collections
    collect(2, 40, 1 << 20, times=5)

    with meter.measuring(hurried=True):
        collect(2, 40, 0)
        heap.bytes -= 1 << 20
    collect(2, 40, 1 << 20, times=5)

    assert meter.freed == (11 << 20, 0)


def test_young_collections_that_free_little_are_soon_passed_over(collections):
    meter, heap, collect = collections
    collect(0, 12, 4096, times=USUALLY_LITTLE)
    reads = heap.reads

    collect(0, 12, 4096, times=100)
    assert (heap.reads, sum(meter.freed)) == (reads, 0)

    collect(2, 12, 4096)  # the whole heap: seldom, and it may free much
    assert heap.reads == reads + 2


def test_a_young_collection_of_more_objects_has_the_next_ones_measured(collections):
    meter, _, collect = collections
    collect(0, 12, 4096, times=20)

    collect(0, 13, LEAST_FREED_BYTES)  # passed over
    collect(0, 13, LEAST_FREED_BYTES, times=99)

    assert meter.freed == (99 * LEAST_FREED_BYTES, 0)


def test_collections_before_the_first_step_are_not_listened_to():
    before = list(gc.callbacks)
    watch = Watch()
    assert gc.callbacks == before

    watch.boundary(1)
    watch.boundary(2)
    assert len(gc.callbacks) == len(before) + 1

    watch.close()
    assert gc.callbacks == before
