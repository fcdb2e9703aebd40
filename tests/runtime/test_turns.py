"""A sentinel that is stepped by hand knows the loops around its steps by their source."""

from __future__ import annotations

import sys

import pytest
import torch

import leakcheck
from leakcheck.runtime.attribution.loops import Turns, loops_around


def turns_here() -> list[Turns]:
    return Turns.of_outer(loops_around(sys._getframe(1)))


def test_loops_are_told_from_the_inside_to_the_outside_through_callers():
    def lines() -> list[int]:
        return [loop.lineno for _, loop in loops_around(sys._getframe(1))]

    def batches() -> list[int]:
        for _ in range(1):
            found = lines()
        return found

    told: list[int] = []
    for _ in range(1):
        told = batches()

    inner, outer = told[:2]
    assert inner < outer


def test_the_loop_around_the_steps_turns_with_its_variable():
    turned = []
    turns = []
    for _epoch, (_fold, _name) in enumerate([(0, "a"), (1, "a"), (1, "b")]):
        for _ in range(3):
            turns = turns or turns_here()
            assert turns
            turned.append(turns[0].turned())

    assert turned == [False, False, False, True, False, False, True, False, False]


def test_a_loop_without_a_variable_turns_with_what_its_body_is_given_outside_of_the_steps():
    outer, turned, turns = 0, [], []
    while outer < 3:
        outer += 1
        for _ in range(2):
            turns = turns or turns_here()
            assert turns
            turned.append(turns[0].turned())

    turns = []
    for _ in range(3):
        rows = []
        for _ in range(2):
            turns = turns or turns_here()
            assert turns
            rows.append(turns[0].turned())
        turned += rows

    assert turned == [False, False, True, False, True, False] * 2


def test_each_of_the_loops_around_turns_by_itself():
    turned = []
    turns: list[Turns] = []
    for _fold in range(2):
        for _epoch in range(2):
            for _ in range(2):
                turns = turns or turns_here()
                turned.append([one.turned() for one in turns])

    new_epoch, new_fold = [True, False], [True, True]
    still = [False, False]
    assert turned == [still, still, new_epoch, still, new_fold, still, new_epoch, still]


def test_one_loop_has_none_around_it_and_one_that_is_given_nothing_never_turns():
    turned = []
    for _ in range(2):
        assert turns_here() == []

    turns = []
    for _ in range(3):
        for _ in range(2):
            turns = turns or turns_here()
            assert turns
            turned.append(turns[0].turned())

    assert turned == [False] * 6


def stepped(epochs: int, steps: int, *, leaky: bool) -> leakcheck.Report:
    kept: list[bytearray] = []
    with leakcheck.Sentinel() as sentinel:
        for _epoch in range(epochs):
            rows: list[bytearray] = []
            for _ in range(steps):
                (kept if leaky else rows).append(bytearray(4000))
                sentinel.step()
    return sentinel.report()


def test_what_an_epoch_gathers_and_releases_is_no_leak():
    report = stepped(6, 300, leaky=False)

    assert report.verdict == "steady", report.reason
    assert "epoch-sawtooth" in [notice.kind for notice in report.notices]


def test_graphs_that_a_short_epoch_keeps_are_told():
    def is_told(of_loss):
        weight = torch.ones(8, requires_grad=True)
        loader = torch.utils.data.DataLoader(torch.rand(40, 8), batch_size=1)
        with leakcheck.Sentinel() as sentinel:
            for _epoch in range(20):
                total = torch.zeros(())
                for batch in loader:
                    loss = (weight * batch).square().mean()
                    loss.backward()
                    total = total + of_loss(loss)
                    sentinel.step()
        # what else a process that runs many tests gains is another matter
        return "epoch-sawtooth" in [notice.kind for notice in sentinel.report().notices]

    assert is_told(lambda loss: loss)
    assert not is_told(torch.Tensor.detach)


def test_what_the_epochs_keep_is_one():
    report = stepped(6, 300, leaky=True)

    assert report.verdict == "growing", report.reason
    assert str(report.suspects[0].holder) == "local `kept` in stepped()"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="CPython 3.10 knows no columns")
def test_a_loop_on_one_line_is_not_around_what_it_goes_over():
    seen = []

    def items():
        seen.append([loop.lineno for _, loop in loops_around(sys._getframe(1))])
        yield 1

    def note():
        seen.append([loop.lineno for _, loop in loops_around(sys._getframe(1))])

    first = sys._getframe().f_lineno
    for _ in items(): note()  # fmt: skip  # noqa: E701

    assert seen == [[], [first + 1]]
