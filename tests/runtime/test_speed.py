"""A slow machine gets the same verdict as a fast one, after as many steps."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, thread_time

import pytest

from leakcheck import Sentinel
from leakcheck.runtime.readings import watching

torch = pytest.importorskip("torch")

EPOCHS, EPOCH_STEPS = 14, 100


def kept_for_ever(sentinel: Sentinel) -> None:
    kept = []
    for _ in range(EPOCHS):
        for step in range(EPOCH_STEPS):
            kept.append(torch.full((8, 8), float(step)))
            sentinel.step()
        sentinel.phase()


def kept_through_a_long_loop(sentinel: Sentinel) -> None:
    kept = []
    for step in range(EPOCHS * EPOCH_STEPS):
        kept.append(torch.full((8, 8), float(step)))
        sentinel.step()


def emptied_at_each_turn(sentinel: Sentinel) -> None:
    kept = []
    for _ in range(EPOCHS):
        for step in range(EPOCH_STEPS):
            kept.append(torch.full((8, 8), float(step)))
            sentinel.step()
        kept.clear()
        sentinel.phase()


def emptied_at_a_turn_that_does_not_come(sentinel: Sentinel) -> None:
    kept = []
    for _ in range(2):
        for step in range(EPOCHS * EPOCH_STEPS):
            kept.append(torch.full((8, 8), float(step)))
            sentinel.step()
        sentinel.stop()
        kept.clear()


def judged(program: Callable[[Sentinel], None]) -> tuple[str, int, list[str]]:
    with Sentinel() as sentinel:
        sentinel.waits_for("all but graphs")
        program(sentinel)
    report = sentinel.report()
    assert report.run is not None
    return report.verdict, report.run.steps, [str(one.holder) for one in report.suspects]


@pytest.mark.parametrize(
    ("program", "verdict"),
    [
        (kept_for_ever, "growing"),
        (kept_through_a_long_loop, "growing"),
        (emptied_at_each_turn, "steady"),
        (emptied_at_a_turn_that_does_not_come, "unclear"),
    ],
)
def test_a_quarter_of_the_speed_changes_no_verdict(program, verdict, monkeypatch):
    usual = judged(program)

    monkeypatch.setattr(watching, "perf_counter", lambda: 4 * perf_counter())
    monkeypatch.setattr(watching, "thread_time", lambda: 4 * thread_time())

    assert judged(program) == usual
    assert usual[0] == verdict
