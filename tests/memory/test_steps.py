from __future__ import annotations

import random

from leakcheck.memory.steps import find_steps, optimizer_marks
from leakcheck.memory.trace import Event, Mark, Trace
from leakcheck.memory.verdict import judge

LAYERS = [4096, 8192, 4096, 8192, 65536, 333]


def training(steps: int, scale: float | None = None) -> Trace:
    """Forward allocates, backward frees; with `scale` every step has sizes of its own."""
    chance, events, marks, name = random.Random(1), [], [], 0
    for step in range(steps):
        factor = 1.0 if scale is None else chance.uniform(scale, 1.0)
        sizes = [int(size * factor) for size in LAYERS]
        made = list(range(name, name + len(sizes)))
        name += len(sizes)
        events += [Event("alloc", n, s) for n, s in zip(made, sizes, strict=True)]
        events += [Event("free", n, s) for n, s in zip(made[::-1], sizes[::-1], strict=True)]
        marks.append(Mark(len(events), "after optimizer", step))
    return Trace(tuple(events), marks=tuple(marks))


def test_marks_are_believed():
    trace = training(8)

    found = find_steps(trace)

    assert found.boundaries == tuple(mark.at for mark in trace.marks)
    assert found.found_by == 'marks "after optimizer"'


def test_equal_steps_are_found_by_their_period():
    trace = training(8)

    found = find_steps(Trace(trace.events))

    assert found.boundaries == tuple(mark.at for mark in trace.marks)
    assert found.found_by == "the repeating requests"


def test_unequal_steps_are_found_by_their_valleys():
    trace = training(20, scale=0.7)

    found = find_steps(Trace(trace.events))

    assert found.boundaries == tuple(mark.at for mark in trace.marks)[:-1]
    assert found.found_by == "the valleys of the live bytes"


def test_equal_layers_are_not_taken_for_steps():
    layers = tuple(Event("alloc", n, 4096) for n in range(40))
    head = (Event("alloc", 98, 777), Event("alloc", 99, 31))
    frees = tuple(Event("free", n, 4096) for n in reversed(range(40)))

    assert find_steps(Trace(layers + head + frees)).boundaries == ()


def test_a_trace_that_only_allocates_has_no_steps():
    chance = random.Random(2)
    events = tuple(Event("alloc", n, chance.randrange(1, 10**6)) for n in range(200))

    assert find_steps(Trace(events)).boundaries == ()


ADAM = {"filename": "/usr/lib/python3/site-packages/torch/optim/adam.py", "line": 9, "name": "step"}


def stack(line: int, *inner: dict[str, object]) -> list[dict[str, object]]:
    return [*inner, {"filename": "/home/me/train.py", "line": line, "name": "train"}]


def test_requests_from_inside_an_optimizer_tell_where_its_step_ends():
    step = [stack(3), None, stack(4, ADAM), None, stack(4, ADAM), None]

    marks = optimizer_marks(step * 3 + [stack(3)])

    label = "after train.py:4 train"
    assert marks == (Mark(6, label, 0), Mark(12, label, 1), Mark(18, label, 2))


def test_a_step_that_the_recording_may_have_cut_is_not_marked():
    assert optimizer_marks([stack(3), stack(4, ADAM)]) == ()


def test_two_optimizers_have_marks_of_their_own():
    step = [stack(3), stack(4, ADAM), stack(5), stack(6, ADAM)]

    marks = optimizer_marks(step * 2 + [stack(3)])

    assert {mark.label for mark in marks} == {"after train.py:4 train", "after train.py:6 train"}


def test_an_optimizer_under_a_framework_is_one_place():
    library = {"filename": "/venv/site-packages/lightning/loop.py", "line": 1, "name": "run"}
    inside = ([{**ADAM, "line": line}, library] for line in (1, 2))

    marks = optimizer_marks([[library], *inside, [library]])

    assert marks == (Mark(3, "after an optimizer", 0),)


def test_stacks_without_an_optimizer_tell_nothing():
    assert optimizer_marks([stack(3), None, [7, {"filename": None}], "text", stack(3)]) == ()


def test_steps_that_keep_much_of_what_they_allocate_are_judged_where_stacks_tell_them():
    events: list[Event] = []
    stacks: list[object] = []
    for step in range(12):
        saved, leaked, used = range(3 * step, 3 * step + 3)
        events += [Event("alloc", saved, 8 << 20), Event("alloc", leaked, 4 << 20)]
        events += [Event("alloc", used, 2 << 20), Event("free", used), Event("free", saved)]
        stacks += [stack(3), stack(3), stack(4, ADAM), None, None]
    trace = Trace(tuple(events))

    told = judge(Trace(trace.events, marks=optimizer_marks(stacks)))

    assert judge(trace).verdict == "unclear"
    assert told.verdict == "leak"
    assert told.live.per_step == 4 << 20
