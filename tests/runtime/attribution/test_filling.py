"""What grows up to a limit, beside what has none."""

from __future__ import annotations

import random
import re
from collections import deque
from functools import cache, lru_cache

import torch

from leakcheck.report.reasons import told
from leakcheck.runtime.attribution import inquest
from leakcheck.runtime.attribution.window import Window
from tests.runtime.attribution.windows import STEPS, through_a_window


class Bank:
    def __init__(self, per_class):
        self.per_class, self.vectors = per_class, {}

    def add(self, label):
        recent = self.vectors.setdefault(label, [])
        recent.append(torch.zeros(2))
        if len(recent) > self.per_class:
            recent.pop(0)


def test_a_container_with_a_limit_is_only_filling():
    window = deque(maxlen=5000)

    suspects, (notice,) = through_a_window(lambda: window.append(torch.zeros(2)))

    assert suspects == ()
    assert notice.kind == "bounded"
    assert told(notice).endswith("holds 64 of at most 5000 and is full in 4936 steps")


def test_what_fills_up_is_not_told_where_its_holder_was_not_searched_for(monkeypatch):
    monkeypatch.setattr(inquest, "MOST_PASSES", 0)
    window = deque(maxlen=5000)

    _, notices = through_a_window(lambda: window.append(torch.zeros(2)))

    assert notices == ()


def test_a_limit_that_memory_has_no_room_for_is_none():
    endless = deque(maxlen=10**12)

    (suspect,), _ = through_a_window(lambda: endless.append(torch.zeros(2)))

    assert suspect.holder.name == "endless"


def test_what_will_be_large_once_it_is_full_is_told():
    window = deque(maxlen=20_000)

    _, (notice,) = through_a_window(lambda: window.append(torch.zeros(2000)))

    assert re.search(r" is full in 19936 steps, with 15\d MiB$", told(notice))


def test_a_cache_with_a_limit_is_only_filling():
    @lru_cache(maxsize=10_000)
    def made(number):
        return torch.zeros(number)

    numbers = iter(range(1000))
    suspects, (notice,) = through_a_window(lambda: made(next(numbers)))

    assert suspects == ()
    assert "made" in told(notice)


def test_of_the_limits_of_a_cache_the_nearest_is_told_and_no_other():
    @lru_cache(maxsize=10_000)
    def made(number):
        return torch.zeros(number)

    drawn = random.Random(0)
    numbers = iter([drawn.randrange(400) for _ in range(1000)])
    suspects, (notice,) = through_a_window(lambda: made(next(numbers)), ["tensors"])

    assert suspects == ()
    assert re.search(r"holds 6\d of about 4\d\d possible keys", told(notice))


def test_a_cache_without_a_limit_is_a_leak():
    @cache
    def made(number):
        return torch.zeros(number)

    numbers = iter(range(1000))
    (suspect,), _ = through_a_window(lambda: made(next(numbers)))

    assert suspect.kind == "tensor"
    assert any(link.edge == "lru_cache of made()" for link in suspect.trace.links)


def test_a_full_ring_buffer_is_no_leak():
    ring, count = [torch.zeros(2)] * 16, 0

    def step():
        nonlocal count
        ring[count % 16] = torch.zeros(2)
        count += 1

    assert through_a_window(step, growing=()) == ((), ())


def through_a_window_of_a_bank(rare_steps):
    """Five classes that are full and one that is not, to which little is added."""
    bank = Bank(per_class=30)
    for label in list(range(5)) * 30 + [9]:
        bank.add(label)
    window = Window({"tensors": len(rare_steps) / STEPS})
    window.open()
    for step in range(STEPS):
        for label in range(5):
            bank.add(label)
        if step in rare_steps:
            bank.add(9)
        window.step()
    return window.close()


def test_of_lists_with_a_limit_the_one_that_fills_is_told_not_those_that_are_full():
    found = through_a_window_of_a_bank(rare_steps=[2, 6, 9, 16, 18, 20])

    (notice,) = found.notices
    assert found.suspects == ()
    assert told(notice) == (
        "a list in attribute `Bank.vectors`, from local `bank` in through_a_window_of_a_bank() "
        "holds 7 of at most 30 and is full in 92 steps"
    )


def test_a_table_made_before_it_is_filled_is_only_filling():
    table: list[object] = [None] * 500
    places = iter(range(500))
    batch = []

    def step():
        table[next(places)] = (torch.zeros(2), 1.0)
        batch[:] = [row for row in table if row is not None][-5:]

    suspects, (notice,) = through_a_window(step, growing=("tensors",))

    assert suspects == ()
    assert told(notice).endswith("holds 64 of at most 500 and is full in 436 steps")


def test_of_what_is_held_by_a_batch_and_by_what_grows_that_is_told_which_grows():
    kept: dict[int, tuple[torch.Tensor, float]] = {}
    batch = []

    def step():
        kept[len(kept)] = (torch.zeros(2), 1.0)
        batch[:] = list(kept.values())[-40:]

    (suspect,), _ = through_a_window(step, growing=("tensors",))

    assert str(suspect.holder).startswith("local `kept`")


def test_lists_that_renew_what_they_hold_are_in_doubt_where_none_is_seen_to_grow():
    assert through_a_window_of_a_bank(rare_steps=[2]).doubtful


def test_buffers_with_a_limit_are_no_limit_if_each_step_makes_another():
    kept: list[deque[float]] = []

    def step() -> None:
        kept.append(deque([1.0], maxlen=100))
        for each in kept:
            each.append(1.0)

    suspects, notices = through_a_window(step, growing=("python.blocks",))

    assert [str(suspect.holder).partition(" in ")[0] for suspect in suspects] == ["local `kept`"]
    assert notices == ()


def test_a_cache_that_is_full_soon_after_the_window_opens_releases_nothing():
    mask = lru_cache(maxsize=50)(lambda length: torch.zeros(3))
    for length in range(46):
        mask(length)
    window = Window({"tensors": 1.0})
    window.open()
    for length in range(46, 46 + STEPS):
        mask(min(length, 49))
        window.step()

    found = window.close()

    (notice,) = found.notices
    assert found.suspects == ()
    assert "50 of at most 50 and is full now" in told(notice)
