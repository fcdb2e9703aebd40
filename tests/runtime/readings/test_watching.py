from __future__ import annotations

import sys
from itertools import count

import pytest
import torch

from leakcheck.runtime.readings import watching
from leakcheck.runtime.readings.census import Census, Counts
from leakcheck.runtime.readings.watching import FREE_CHECKPOINTS, LARGE_HEAP_BLOCKS, Watch

STEPS = (10, 15, 20, 25, 30, 42, 50, 67, 89, 118, 150, 180, 240)


@pytest.fixture
def watch():
    assert torch  # nothing is counted before it is there
    watch = Watch()
    yield watch
    watch.close()


def counted_at(watch: Watch, monkeypatch, tensors: dict[int, int]) -> list[int]:
    """Return the checkpoints with counts, of a loop with so many tensors from each step on."""

    def take(self: Census, step: int, **_: object) -> Counts:
        return Counts(tensors=[count for since, count in tensors.items() if since <= step][-1])

    monkeypatch.setattr(Census, "take", take)
    for step in STEPS:
        watch.checkpoint(step, sparing=True)
    steps, _ = watch.slow.column("tensors")
    assert watch.slow.column("python.blocks")[0] == list(STEPS)
    return steps


def test_while_no_count_rises_every_second_checkpoint_does_without_them(watch, monkeypatch):
    assert counted_at(watch, monkeypatch, {0: 5}) == [*STEPS[:6], 67, 118, 180]


def test_counts_that_fall_are_no_more_reason_to_look(watch, monkeypatch):
    assert counted_at(watch, monkeypatch, {0: 5, 89: 3}) == [*STEPS[:6], 67, 118, 180]


def test_once_a_count_rises_every_checkpoint_has_them(watch, monkeypatch):
    risen = {0: 5} | {step: step for step in range(100, 300)}

    assert counted_at(watch, monkeypatch, risen) == [*STEPS[:6], 67, 118, 150, 180, 240]


def test_a_count_that_rises_once_in_a_while_is_never_skipped(watch, monkeypatch):
    one_in_ten = {step: step // 10 for step in range(300)}

    assert counted_at(watch, monkeypatch, one_in_ten) == list(STEPS)


def test_a_collected_checkpoint_always_has_them(watch, monkeypatch):
    counted_at(watch, monkeypatch, {0: 5})

    readings = [watch.checkpoint(step, collect=True) for step in (300, 301)]

    assert [reading["tensors"] for reading in readings] == [5, 5]


@pytest.mark.parametrize(("fine", "shows"), [(False, True), (True, False)])
def test_what_free_lists_hold_does_not_show_where_every_block_counts(fine, shows):
    watch = Watch(fine=fine)
    watch.checkpoint(10)
    before = watch.checkpoint(11)["python.blocks"]
    tuples = [(n, *range(300, 318)) for n in range(1500)]
    del tuples  # up to 2,000 of one length wait to be used again

    grown = watch.checkpoint(12)["python.blocks"] - before

    watch.close()
    assert (grown > 1000) is shows


@pytest.mark.parametrize(("fine", "next_step"), [(False, 240), (True, 195)])
def test_checkpoints_stay_close_where_every_block_counts(fine, next_step):
    watch = Watch(fine=fine)
    watch.close()

    assert watch.next_checkpoint(180) == next_step


@pytest.mark.parametrize(
    ("step_s", "reading_us", "stride"),
    [(0.02, 12, 1), (0.02, 40, 4), (0.001, 12, 12), (0.001, 90, 32), (2.0, 100, 1)],
)
def test_a_steady_loop_is_read_for_half_a_thousandth_of_its_time(
    watch, monkeypatch, step_s, reading_us, stride
):
    now_s = [0.0]
    monkeypatch.setattr(watching, "perf_counter", lambda: now_s[0])
    watch._started_s = 0.0
    for step in range(1, 40):
        now_s[0] = step * step_s
        watch.read(step)
        watch.note_cost(reading_us * 1e-6)

    watch.read_less()
    assert watch.read(40) == 40 + stride

    watch.resume(41)  # something has risen
    assert watch.read(41) == 42


def taken_of(watch: Watch, monkeypatch, each_s: float, heap_blocks: int = 500_000) -> int:
    """Return how many checkpoints are taken at once, if one takes so long."""
    clock = count(0, each_s)  # read before and after each
    monkeypatch.setattr(watching, "thread_time", lambda: next(clock))
    monkeypatch.setattr(sys, "getallocatedblocks", lambda: heap_blocks)
    for taken in range(100):
        if not watch.affordable():
            return taken
        watch.checkpoint(taken)
    return 100


@pytest.mark.parametrize("each_s", [10.0, 1000.0])
def test_as_many_checkpoints_are_free_on_a_slow_machine(watch, monkeypatch, each_s):
    assert taken_of(watch, monkeypatch, each_s) == FREE_CHECKPOINTS + 1


def test_fewer_are_free_where_the_heap_is_very_large(watch, monkeypatch):
    assert taken_of(watch, monkeypatch, 10.0, 10 * LARGE_HEAP_BLOCKS) == FREE_CHECKPOINTS // 10 + 1


def test_beyond_those_they_are_a_share_of_the_time(watch, monkeypatch):
    assert taken_of(watch, monkeypatch, 0.0) == 100


@pytest.mark.parametrize(
    ("newest", "after", "settled", "due"),
    [
        (600, 0, 2000, 800),  # a third further on
        (1200, 0, 2000, 1533),  # a sixth of what is to settle it
        (1650, 1600, 2600, 1816),
        (6000, 1600, 2600, 8000),  # long after that
        (2500, 1600, 2600, 2600),
    ],
)
def test_a_checkpoint_that_is_too_long_ago_is_overdue_whatever_it_costs(
    watch, newest, after, settled, due
):
    watch.checkpoint(newest)

    assert not watch.is_overdue(due - 1, after, settled)
    assert watch.is_overdue(due, after, settled)
