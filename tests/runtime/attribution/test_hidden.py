from __future__ import annotations

import functools
import gc
import random
from collections import deque

import pytest
import torch

from leakcheck.runtime.attribution import hidden, inquest
from leakcheck.runtime.attribution.weight import own_bytes, weigh_each
from tests.runtime.attribution.windows import through_a_window

numpy = pytest.importorskip("numpy")


class Kept:
    def __init__(self):
        self.things = []
        self.last = None


def test_a_tensor_that_an_array_keeps_is_followed_through_the_array():
    kept = Kept()

    def step():
        kept.things.append((torch.rand(3).numpy(), 1))

    (suspect,), _ = through_a_window(step)

    assert suspect.kind == "tensor"
    assert str(suspect.holder).startswith("attribute `Kept.things`, from local `kept`")
    assert [link.edge for link in suspect.trace.links] == [".things", "[x]", "[x]", ".base"]


def test_a_search_that_was_cut_off_does_not_say_that_nothing_in_python_holds_it(monkeypatch):
    kept = Kept()
    monkeypatch.setattr(inquest, "MOST_PASSES", 0)

    (suspect,), _ = through_a_window(lambda: kept.things.append(torch.rand(3)))

    assert (suspect.kind, str(suspect.holder), suspect.trace.root) == ("tensor", "", "")
    assert suspect.fix.code == "keep-a-number-or-window"


def test_a_tensor_that_a_view_keeps_is_followed_through_the_view():
    kept = deque(maxlen=900)

    suspects, (notice,) = through_a_window(lambda: kept.append(torch.rand(3, 3)[0]))

    assert suspects == ()
    assert notice.kind == "bounded"


def test_a_sample_in_a_local_does_not_hide_the_memory_that_it_is_from():
    memory = deque(maxlen=900)
    batch = ()

    def step():
        nonlocal batch
        memory.append((torch.rand(1, 3),))
        batch = tuple(random.sample(memory, min(len(memory), 5)))

    suspects, notices = through_a_window(step)

    assert suspects == ()
    assert {notice.kind for notice in notices} == {"bounded"}


def test_a_chain_of_partials_reads_as_one_reference():
    kept = Kept()

    def step():
        kept.last = functools.partial(print, kept.last, torch.rand(3))

    (suspect,), _ = through_a_window(step)

    assert str(suspect.holder).startswith("attribute `Kept.last`, from local `kept`")
    assert [link.edge for link in suspect.trace.links] == [".last", "argument of a partial"]


def test_a_local_of_a_suspended_function_is_followed_to_what_keeps_that_function():
    kept = Kept()

    def waiting(inputs):
        yield
        print(inputs)

    def step():
        kept.things.append(waiting(torch.rand(3)))
        next(kept.things[-1])

    (suspect,), _ = through_a_window(step)

    assert str(suspect.holder).startswith("attribute `Kept.things`, from local `kept`")
    assert [link.edge for link in suspect.trace.links] == [
        ".things",
        "[x]",
        "suspended waiting()",
    ]


def test_views_that_share_a_storage_weigh_it_once():
    views = list(torch.zeros(1000).split(500))

    assert weigh_each(views).in_bytes == own_bytes(torch.empty(0)) + 2000


def test_what_the_first_of_many_has_more_than_the_others_is_shared_by_all():
    shared = list(range(1000, 2000))

    assert weigh_each([[1000.5 + i, shared] for i in range(8)]).in_bytes < 200


def test_what_is_in_an_array_of_objects_is_held_by_who_holds_the_array():
    class Memory:
        slots = None

    memory = Memory()
    memory.slots = numpy.zeros(0, dtype=object)

    def step():
        grown = numpy.empty(len(memory.slots) + 1, dtype=object)
        grown[:-1] = memory.slots
        grown[-1] = (torch.zeros(3), 1.0)
        memory.slots = grown

    (suspect,), _ = through_a_window(step, growing=("tensors",))

    assert str(suspect.holder).startswith("attribute `Memory.slots`")


def test_what_is_kept_by_a_view_alone_is_known_and_no_object_is_made_for_it():
    base, alone = torch.zeros(4), torch.zeros(4)
    view, of_unnamed = base[None], torch.zeros(2).view(2, 1)
    before = sum(type(one) is torch.Tensor for one in gc.get_objects())

    assert hidden.seen_through_views([alone, base, view, of_unnamed]) == {id(base)}
    assert sum(type(one) is torch.Tensor for one in gc.get_objects()) == before
    assert hidden.seen_through_views([]) == set()


@pytest.mark.parametrize(
    "batch",
    [lambda: torch.rand(256, 8), lambda: numpy.random.default_rng(0).random((256, 8))],
    ids=["tensor", "array"],
)
def test_a_row_that_keeps_its_whole_batch_is_to_be_copied(batch):
    kept = Kept()

    (suspect,), _ = through_a_window(lambda: kept.things.append(batch()[0]))

    assert suspect.fix is not None
    assert suspect.fix.code == "copy-the-view"


def test_rows_that_keep_a_batch_together_are_not_to_be_copied():
    kept = Kept()

    (suspect,), _ = through_a_window(lambda: kept.things.extend(torch.rand(8, 64)))

    assert suspect.fix is not None
    assert suspect.fix.code == "keep-a-number-or-window"


def test_a_traceback_is_told_with_the_functions_that_called_one_another():
    def fail(data):
        raise KeyError("x")

    kept = Kept()

    def step():
        batch = torch.rand(3)
        try:
            fail(batch)
        except KeyError as error:
            kept.things.append(error)

    (suspect,), _ = through_a_window(step)

    assert suspect.trace is not None
    edges = [link.edge for link in suspect.trace.links]
    assert edges[:4] == [".things", "[x]", ".__traceback__", ".tb_frame"]
    assert all("local ?" not in edge for edge in edges)
