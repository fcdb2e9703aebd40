from __future__ import annotations

import gc
import sys
import weakref
from collections import deque
from queue import Queue

import numpy as np
import pytest
import torch

from leakcheck.model import Reason
from leakcheck.runtime.attribution.growth import HeapGrowth
from leakcheck.runtime.attribution.holders import Chain, Roots
from leakcheck.runtime.attribution.inquest import Inquest
from leakcheck.runtime.attribution.lines import LineTracer
from leakcheck.runtime.attribution.window import RENEWED, Window
from leakcheck.runtime.introspection.objects import Heap
from tests.runtime.attribution.windows import STEPS, through_a_window


def loss() -> torch.Tensor:
    return (torch.rand(3, requires_grad=True) * 2).sum()


class Meter:
    def __init__(self):
        self.sum = 0.0

    def update(self, value):
        self.sum += value  # the line to name


class Trainer:
    every_loss = []  # noqa: RUF012

    def __init__(self):
        self.history = []


def code_of(suspect) -> str:
    return suspect.locations[0].code


@pytest.mark.parametrize(
    ("kind", "add", "fix"),
    [
        (list, list.append, "keep-a-number-or-window"),
        (deque, deque.append, "keep-a-number-or-window"),
        (Queue, Queue.put, "read-the-queue"),
        (dict, lambda kept, new: kept.update({id(new): new}), "drop-old-keys"),
        (set, set.add, "drop-old-keys"),
    ],
)
def test_the_advice_fits_what_the_tensors_are_kept_in(kind, add, fix):
    kept = kind()

    (suspect,), _ = through_a_window(lambda: add(kept, torch.rand(3)))

    assert suspect.fix.code == fix


def test_an_accumulating_local_is_named_with_its_line():
    total = 0

    def step():
        nonlocal total
        total = total + loss()

    (suspect,), notices = through_a_window(step)

    assert suspect.kind == "graph"
    assert (
        str(suspect.holder)
        == "local `total` in test_an_accumulating_local_is_named_with_its_line()"
    )
    assert code_of(suspect) == "total = total + loss()"
    assert suspect.objects_per_step == pytest.approx(3, abs=0.2)
    assert suspect.fix == Reason.of("write", code="total = total + loss().item()")
    assert notices == ()


def test_a_meter_is_named_by_class_and_attribute():
    meter = Meter()

    (suspect,), _ = through_a_window(lambda: meter.update(loss()))

    assert str(suspect.holder).startswith(
        "attribute `Meter.sum`, from local `meter` in test_a_meter"
    )
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


@pytest.mark.usefixtures("thawed")
def test_a_class_attribute_is_a_root():
    trainer = Trainer()

    (suspect,), _ = through_a_window(lambda: trainer.every_loss.append(loss()))

    assert suspect.trace.root == "class attribute `Trainer.every_loss`"
    Trainer.every_loss.clear()


def test_a_default_argument_is_a_holder():
    def log(value, seen=[]):  # noqa: B006
        seen.append(value)

    (suspect,), _ = through_a_window(lambda: log(loss()))

    assert "`seen`" in str(suspect.holder)
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


def test_a_long_linked_list_is_followed_though_its_attributes_were_asked_for():
    class Entry:
        def __init__(self, value):
            self.value, self.next = value, None

    head = tail = Entry(torch.zeros(3))

    def step():
        nonlocal tail
        tail.next = Entry(torch.zeros(3))
        tail = tail.next

    for _ in range(400):
        step()
    entry = head
    while entry is not None:
        vars(entry)  # which makes a dictionary of each: that stands between two entries from now on
        entry = entry.next
    (suspect,), _ = through_a_window(step)

    assert str(suspect.holder).startswith("attribute `Entry.value`, from local")
    assert "held outside Python" not in suspect.trace.root


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
    made_by_a_window = (Window, LineTracer, HeapGrowth, Inquest, Roots, Heap, Chain)
    assert [each for each in gc.get_objects() if type(each) in made_by_a_window] == []


@pytest.mark.parametrize("ends", [Window.close, Window.abandon])
def test_what_the_program_lets_go_of_after_a_window_is_gone(ends):
    def numbers():
        own = torch.zeros(3)
        yield weakref.ref(own)
        own = None
        yield own

    window = Window({"tensors": 1.0})
    window.open()
    kept = [torch.zeros(3)]
    suspended = numbers()
    (held, inside) = (weakref.ref(kept[0]), next(suspended))
    for _ in range(STEPS):
        window.step()
    ends(window)
    kept = next(suspended)

    assert (held(), inside(), kept) == (None, None, None)


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
    assert str(suspect.holder).startswith("local `kept`")


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

    found = window.close()
    suspects, (notice,) = found.suspects, found.notices

    assert suspects == ()
    assert notice == RENEWED


def test_a_buffer_made_anew_in_the_window_is_no_leak_however_much_it_holds():
    trainer = Trainer()
    window = Window({"tensors": 0.4})
    window.open()
    for step in range(STEPS):
        if step == 8:
            trainer.history = [torch.zeros(3) for _ in range(60)]
        window.step()

    found = window.close()
    suspects, (notice,) = found.suspects, found.notices

    assert suspects == ()
    assert notice == RENEWED


def test_a_window_longer_than_usual_sees_what_comes_late_in_it():
    trainer = Trainer()
    window = Window({"tensors": 0.2}, apart_steps=10.0, last_look=30)
    window.open()
    for step in range(35):
        if step % 10 == 8:  # in a holder that shows no growth of its own
            setattr(trainer, f"at_{step}", torch.zeros(3))
        window.step()

    (suspect,) = window.close().suspects

    assert (suspect.kind, suspect.objects_per_step) == ("tensor", 0.1)


def test_between_additions_that_are_far_apart_nothing_is_traced():
    kept, traced = [], []
    window = Window({"host.heap": 1e3}, apart_steps=20.0, last_look=40, traced_steps=6)
    window.open()
    for step in range(45):
        if step % 20 == 3:
            kept.append(torch.zeros(30_000))
        window.step()
        traced.append(sys.gettrace() is not None)
    (suspect,) = window.close().suspects

    assert traced == [*[True] * 5, *([False] * 14 + [True] * 6) * 2]
    assert code_of(suspect) == "kept.append(torch.zeros(30_000))"
    assert sys.gettrace() is None


@pytest.mark.parametrize("begins", [3, 10])  # while the window traces, and while it rests
def test_a_program_that_begins_to_trace_itself_meanwhile_keeps_its_tracer(begins):
    def theirs(frame, event, arg):
        return None

    window = Window({"host.heap": 1e3}, apart_steps=20.0, traced_steps=6)
    window.open()
    for step in range(25):
        if step == begins:
            sys.settrace(theirs)
        window.step()
    still = sys.gettrace()
    window.close()
    sys.settrace(None)

    assert still is theirs


def test_what_a_closure_puts_together_anew_is_told_with_the_line_that_does():
    def logger():
        seen = ()

        def log(value):
            nonlocal seen
            seen = (*seen, value)

        return log

    log = logger()
    window = Window({"tensors": 1.0})
    window.open()
    for _ in range(24):
        log(torch.zeros(3))
        window.step()
    (suspect,) = window.close().suspects

    assert str(suspect.holder).startswith("closure cell `seen` of log()")
    assert code_of(suspect) == "seen = (*seen, value)"


class Seen:
    def __init__(self):
        self.numbers, self.known = np.zeros(0), []

    def add(self, numbers):
        self.numbers = np.append(self.numbers, numbers)

    def note(self, thing):
        self.known.append(weakref.ref(thing))


def test_an_array_that_is_extended_comes_before_weak_references_beside_it():
    seen = Seen()

    def step():
        seen.add(np.zeros(64))
        seen.note(Meter())

    (suspect,), _ = through_a_window(step, growing=("host.heap",))

    assert str(suspect.holder).startswith("attribute `Seen.numbers`")
    assert suspect.bytes_per_step == pytest.approx(512, rel=0.1)


def test_weak_references_are_told_where_nothing_is_extended():
    seen = Seen()

    (suspect,), _ = through_a_window(lambda: seen.note(Meter()), growing=("host.heap",))

    assert str(suspect.holder).startswith("attribute `Seen.known`")


def test_the_values_of_two_variables_are_no_pile_beside_one():
    kept, rows, scores, count = [], None, None, 0

    def step():
        nonlocal rows, scores, count
        kept.append(torch.zeros(4))
        count += 1
        if count % 44 == 0:  # early in the window
            rows, scores = torch.zeros(count, 6), torch.zeros(count, 2)

    suspects, _ = through_a_window(step)

    assert [suspect.holder.name for suspect in suspects] == ["kept"]


def test_the_values_of_one_name_in_many_calls_are_a_pile():
    waiting = []

    def wait():
        rows = torch.zeros(3, 6)
        yield rows

    def step():
        waiting.append(wait())
        next(waiting[-1])

    suspects, _ = through_a_window(step)

    assert [suspect.what for suspect in suspects if suspect.kind == "tensor"] != []
