from __future__ import annotations

import gc
import sys
from collections import deque
from functools import cache, lru_cache

import pytest
import torch

from leakcheck.runtime.attribution.growth import Growth
from leakcheck.runtime.attribution.holders import Chain, Roots
from leakcheck.runtime.attribution.inquest import Inquest
from leakcheck.runtime.attribution.lines import LineTracer
from leakcheck.runtime.attribution.window import Window
from leakcheck.runtime.introspection.objects import Heap

STEPS = 24


def through_a_window(step, growing=("graph.nodes", "tensors")):
    for _ in range(40):
        step()
    window = Window(dict.fromkeys(growing, 0.0))
    window.open()
    for _ in range(STEPS):
        step()
        window.step()
    return window.close()


def loss() -> torch.Tensor:
    return (torch.rand(3, requires_grad=True) * 2).sum()


class Meter:
    def __init__(self):
        self.sum = 0.0

    def update(self, value):
        self.sum += value  # the line to name


class Bank:
    def __init__(self, per_class):
        self.per_class, self.vectors = per_class, {}

    def add(self, label):
        recent = self.vectors.setdefault(label, [])
        recent.append(torch.zeros(2))
        if len(recent) > self.per_class:
            recent.pop(0)


class Trainer:
    every_loss = []  # noqa: RUF012

    def __init__(self):
        self.history = []


def code_of(suspect) -> str:
    return suspect.locations[0].code


def test_an_accumulating_local_is_named_with_its_line():
    total = 0

    def step():
        nonlocal total
        total = total + loss()

    (suspect,), notices = through_a_window(step)

    assert suspect.kind == "graph"
    assert suspect.holder == "local `total` in test_an_accumulating_local_is_named_with_its_line()"
    assert code_of(suspect) == "total = total + loss()"
    assert suspect.objects_per_step == pytest.approx(3, abs=0.2)
    assert suspect.fix == "total = total + loss().item()"
    assert notices == ()


def test_a_meter_is_named_by_class_and_attribute():
    meter = Meter()

    (suspect,), _ = through_a_window(lambda: meter.update(loss()))

    assert suspect.holder.startswith("attribute `Meter.sum`, from local `meter` in test_a_meter")
    assert code_of(suspect) == "self.sum += value  # the line to name"
    assert [link.edge for link in suspect.trace.links] == [".sum"]
    assert suspect.trace.links[-1].suspect


def test_a_thousand_tensors_in_a_list_are_one_suspect():
    kept = []

    def step():
        kept.append(torch.zeros(4))

    (suspect,), _ = through_a_window(step)

    assert (suspect.kind, suspect.objects_per_step) == ("tensor", 1.0)
    assert code_of(suspect) == "kept.append(torch.zeros(4))"
    assert [link.edge for link in suspect.trace.links] == ["[x]"]


def test_the_mean_beside_the_total_is_not_accused():
    box = {"total": 0.0}

    def step():
        box["total"] = box["total"] + loss()
        box["mean"] = box["total"] / 7

    (suspect,), _ = through_a_window(step)

    assert code_of(suspect) == 'box["total"] = box["total"] + loss()'
    assert [link.edge for link in suspect.trace.links] == ['["total"]']


def test_a_container_with_a_limit_is_only_filling():
    window = deque(maxlen=5000)

    suspects, (notice,) = through_a_window(lambda: window.append(torch.zeros(2)))

    assert suspects == ()
    assert notice.kind == "bounded"
    assert "at most 5000" in notice.message


def test_a_cache_with_a_limit_is_only_filling():
    @lru_cache(maxsize=10_000)
    def made(number):
        return torch.zeros(number)

    numbers = iter(range(1000))
    suspects, (notice,) = through_a_window(lambda: made(next(numbers)))

    assert suspects == ()
    assert "lru_cache" in notice.message or "made" in notice.message


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
    return window, window.close()


def test_of_lists_with_a_limit_the_one_that_fills_is_told_not_those_that_are_full():
    _, (suspects, (notice,)) = through_a_window_of_a_bank(rare_steps=[2, 6, 9, 16, 18, 20])

    assert suspects == ()
    assert notice.message == (
        "attribute `Bank.vectors`, from local `bank` in through_a_window_of_a_bank() "
        "holds 7 of at most 30 and is full in 92 steps"
    )


def test_lists_that_renew_what_they_hold_are_in_doubt_where_none_is_seen_to_grow():
    window, _ = through_a_window_of_a_bank(rare_steps=[2])

    assert window.doubtful


def test_a_class_attribute_is_a_root():
    trainer = Trainer()

    (suspect,), _ = through_a_window(lambda: trainer.every_loss.append(loss()))

    assert suspect.trace.root == "class attribute `Trainer.every_loss`"
    Trainer.every_loss.clear()


def test_a_default_argument_is_a_holder():
    def log(value, seen=[]):  # noqa: B006
        seen.append(value)

    (suspect,), _ = through_a_window(lambda: log(loss()))

    assert "`seen`" in suspect.holder
    assert code_of(suspect) == "seen.append(value)"


def test_a_linked_list_reads_as_one_reference():
    class Entry:
        def __init__(self, previous):
            self.value = torch.zeros(3)
            self.previous = previous

    head = None

    def step():
        nonlocal head
        head = Entry(head)

    (suspect,), _ = through_a_window(step)

    assert suspect.kind == "tensor"
    assert [link.edge for link in suspect.trace.links] == [".previous", ".value"]


def test_plain_objects_are_weighed():
    log = []

    def step():
        log.append({"text": "x" * 5000 + str(len(log))})

    (suspect,), _ = through_a_window(step, growing=("python.blocks",))

    assert suspect.kind == "object"
    assert 5000 < suspect.bytes_per_step < 6000


def test_a_steady_loop_has_no_suspect():
    layer = torch.nn.Linear(4, 4)
    optimizer = torch.optim.Adam(layer.parameters())
    recent = None

    def step():
        nonlocal recent
        optimizer.zero_grad()
        recent = layer(torch.rand(2, 4)).sum()
        recent.backward()
        optimizer.step()

    assert through_a_window(step) == ((), ())


def test_the_same_leak_has_the_same_fingerprint():
    prints = set()
    for _ in range(3):
        meter = Meter()
        (suspect,), _ = through_a_window(lambda held=meter: held.update(loss()))
        prints.add(suspect.fingerprint)
        del meter

    assert len(prints) == 1


def test_a_window_leaves_no_trace_function_and_nothing_alive():
    log = []
    through_a_window(lambda: log.append(loss()))
    frame = sys._getframe()

    assert sys.gettrace() is None
    assert frame.f_trace is None
    gc.collect()
    made_by_a_window = (Window, LineTracer, Growth, Inquest, Roots, Heap, Chain)
    assert [each for each in gc.get_objects() if type(each) in made_by_a_window] == []


def test_a_program_that_traces_itself_is_left_alone():
    def theirs(frame, event, arg):
        return None

    kept = []
    sys.settrace(theirs)
    try:
        (suspect,), _ = through_a_window(lambda: kept.append(loss()))
        still = sys.gettrace()
    finally:
        sys.settrace(None)

    assert still is theirs
    assert suspect.holder.startswith("local `kept`")


def test_tensors_that_grow_in_number_and_are_renewed_are_kept_by_nobody():
    episode: list[torch.Tensor] = []
    window = Window({"tensors": 2.0})
    window.open()
    for step in range(STEPS):
        if step % 6 == 0:  # each episode is longer than the one before
            episode.clear()
        episode.extend(torch.zeros(3) for _ in range(4 + step))
        window.step()
    episode.clear()

    suspects, (notice,) = window.close()

    assert suspects == ()
    assert notice.message == "tensors grow in number, but those of past steps are released"


def test_a_buffer_made_anew_in_the_window_is_no_leak_however_much_it_holds():
    trainer = Trainer()
    window = Window({"tensors": 0.4})
    window.open()
    for step in range(STEPS):
        if step == 8:
            trainer.history = [torch.zeros(3) for _ in range(60)]
        window.step()

    suspects, (notice,) = window.close()

    assert suspects == ()
    assert notice.message == "tensors grow in number, but those of past steps are released"


def test_a_window_longer_than_usual_sees_what_comes_late_in_it():
    trainer = Trainer()
    window = Window({"tensors": 0.2}, apart_steps=10.0, last_look=30)
    window.open()
    for step in range(35):
        if step % 10 == 8:  # in a holder that shows no growth of its own
            setattr(trainer, f"at_{step}", torch.zeros(3))
        window.step()

    (suspect,), _ = window.close()

    assert (suspect.kind, suspect.objects_per_step) == ("tensor", 0.1)


def test_buffers_with_a_limit_are_no_limit_if_each_step_makes_another():
    kept: list[deque[float]] = []

    def step() -> None:
        kept.append(deque([1.0], maxlen=100))
        for each in kept:
            each.append(1.0)

    suspects, notices = through_a_window(step, growing=("python.blocks",))

    assert [suspect.holder.partition(" in ")[0] for suspect in suspects] == ["local `kept`"]
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

    suspects, (notice,) = window.close()

    assert suspects == ()
    assert "50 of at most 50 and is full now" in notice.message
