"""How often the loops around a step turn before a line after them is reached."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, TensorDataset

from leakcheck.runtime.attribution.loop_lengths import turns_until

BATCHES = 12
SAMPLES = TensorDataset(torch.zeros(50))


class Sliced(DataLoader[Any]):
    def __len__(self) -> int:
        raise AssertionError("a method of the program's was called")


def after(line_after: int) -> int | None:
    """Ask from a step for the turns until the line so many lines below that of the caller."""
    frame = sys._getframe(1)
    return turns_until(__file__, frame.f_lineno + line_after, frame)


def test_turns_of_loops_inside_one_another_are_multiplied():
    told = None
    for _ in range(3):
        for _ in range(2, BATCHES):
            told = after(1)
    assert told == 30


def test_a_loop_that_has_the_line_in_it_does_not_count():
    told = set()
    for _ in range(3):
        for _ in range(BATCHES):
            told.add(after(1))
        told.discard(None)
    assert told == {12}


def test_loops_of_callers_count_as_far_as_the_function_with_the_line():
    def predict() -> int | None:
        told = None
        for _ in range(2):
            told = turns_until(__file__, after_line, sys._getframe())
        return told

    after_line = sys._getframe().f_lineno + 5
    told = None
    for _ in range(4):
        for _ in range(5):
            told = predict()
    assert told == 40


@pytest.mark.parametrize(
    ("over", "turns"),
    [
        ([1, 2, 3], 3),
        ({"a": 1, "b": 2}, 2),
        (DataLoader(SAMPLES, batch_size=8), 7),
        (DataLoader(SAMPLES, batch_size=8, drop_last=True, shuffle=True), 6),
        (DataLoader(SAMPLES, sampler=range(9), batch_size=8), None),
        (DataLoader(SAMPLES, batch_sampler=BatchSampler(range(50), 10, False)), None),
        (Sliced(SAMPLES, batch_size=8), None),
        (iter([1, 2]), None),
    ],
    ids=[
        "a list",
        "a dictionary",
        "batches",
        "whole batches",
        "a sampler of the program's",
        "a batch sampler of the program's",
        "a loader of the program's",
        "an iterator",
    ],
)
def test_the_length_of_what_a_loop_goes_over_is_read_where_no_code_of_the_program_says_it(
    over: Iterable[Any], turns: int | None
):
    told = []
    for _, _item in enumerate(over):
        told.append(after(1))
    assert set(told) == {turns}


def test_it_is_not_known_for_how_long_a_condition_holds_or_items_are_made():
    def items() -> Iterator[int]:
        yield 1

    told, waits = [], True
    while waits:
        told.append(after(3))
        waits = False
    for _ in items():
        waits = after(1) is not None
    assert (told, waits) == ([None], False)


def test_a_progress_bar_goes_over_as_much_as_what_it_is_given():
    tqdm = pytest.importorskip("tqdm")
    told, folds = set(), [1, 2, 3]
    for _ in tqdm.tqdm(folds, disable=True):
        for _ in tqdm.trange(BATCHES, disable=True):
            told.add(after(1))
    assert told == {36}


def test_a_function_that_is_only_called_as_a_known_one_may_give_any_number():
    def range(count: int) -> list[int]:
        return [count]

    told = None
    for _ in range(7):
        told = after(1)
    assert told is None


def test_a_loop_that_something_leaves_may_end_at_any_time():
    told = set()
    for number in range(10**9):
        told.add(after(3))
        if number > 2:
            break
    assert told == {None}


def test_of_a_line_that_no_running_function_has_nothing_is_known():
    told = None
    for _ in range(3):
        told = turns_until(__file__, 1, sys._getframe())
    assert told is None
