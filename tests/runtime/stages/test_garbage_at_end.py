"""What rose to the end of a run from garbage alone is told from what stays after a collection."""

from __future__ import annotations

import gc

import pytest

from leakcheck.runtime.judgement.tolerance import Tolerance
from leakcheck.runtime.readings.watching import Watch
from leakcheck.runtime.stages.loop import LoopCourse

torch = pytest.importorskip("torch")
LOOKS = range(10, 60, 10)
A_LOOK = 8  # tensors


class Result:
    def __init__(self):
        self.own, self.value = self, torch.zeros(3)


@pytest.fixture(autouse=True)
def _without_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def garbage_after(keep, at_end=lambda: None, looks_in_loop=False) -> frozenset[str]:
    """Return what rose from garbage alone; `keep` is given some objects between two looks."""
    loop = LoopCourse(Watch(), 1000, Tolerance())
    for step in LOOKS:
        loop.checkpoint(step)
        if looks_in_loop:
            loop.find_what_stays(step)
        keep([Result() for _ in range(A_LOOK)])
    at_end()
    loop.find_garbage(LOOKS[-1])
    return loop.garbage


def test_what_a_collection_takes_away_rose_from_garbage():
    assert garbage_after(lambda results: None) == {"tensors"}


def test_what_is_kept_did_not():
    kept = []

    assert garbage_after(kept.extend) == set()


def test_what_is_kept_beside_garbage_did_not():
    kept = []

    assert garbage_after(lambda results: kept.append(results[0])) == set()


def test_what_a_function_that_returned_held_was_not():
    kept = []

    def keep(results):
        kept.append([torch.zeros(3) for _ in results])
        for result in results:
            result.own = None

    assert garbage_after(keep, at_end=kept.clear) == set()


def test_nor_what_it_held_in_cycles_if_a_look_in_the_loop_saw_it_stay():
    kept = []

    assert garbage_after(kept.extend, at_end=kept.clear) == {"tensors"}
    assert garbage_after(kept.extend, at_end=kept.clear, looks_in_loop=True) == set()


def test_where_nothing_rises_nothing_is_collected(monkeypatch):
    loop = LoopCourse(Watch(), 1000, Tolerance())
    for step in LOOKS:
        loop.checkpoint(step)
    monkeypatch.setattr(loop.watch, "read_beside", pytest.fail)
    loop.find_garbage(LOOKS[-1])

    assert loop.garbage == set()
