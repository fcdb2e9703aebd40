"""When tensors and Nodes are counted: at every checkpoint, or at every second one."""

from __future__ import annotations

import pytest

from leakcheck.runtime.watching import FLAT_CENSUSES, Watch

torch = pytest.importorskip("torch")


@pytest.fixture
def watch():
    model = torch.nn.Linear(2, 2)
    watch = Watch()
    yield watch
    watch.close()
    del model


def counted(watch: Watch, steps: range, census: bool = False) -> list[bool]:
    """Say for each of these checkpoints whether tensors were counted."""
    return ["tensors" in watch.checkpoint(step, census=census) for step in steps]


def test_where_nothing_rises_every_second_census_is_passed_over(watch):
    assert all(counted(watch, range(1 + FLAT_CENSUSES)))
    assert counted(watch, range(20, 25)) == [False, True, False, True, False]


def test_one_more_tensor_brings_back_every_census(watch):
    counted(watch, range(1 + FLAT_CENSUSES))
    kept = [torch.ones(3)]

    assert counted(watch, range(20, 22)) == [False, True]
    assert all(counted(watch, range(22, 22 + FLAT_CENSUSES)))
    assert len(kept) == 1


def test_a_census_that_is_asked_for_is_taken(watch):
    counted(watch, range(3 + FLAT_CENSUSES))

    assert counted(watch, range(20, 24), census=True) == [True] * 4


def test_another_loop_is_counted_anew(watch):
    counted(watch, range(3 + FLAT_CENSUSES))
    watch.start_over(30)

    assert all(counted(watch, range(31, 31 + FLAT_CENSUSES)))


def test_the_other_readings_are_taken_at_every_checkpoint(watch):
    counted(watch, range(1 + FLAT_CENSUSES))

    assert "python.blocks" in watch.checkpoint(20, census=False)
