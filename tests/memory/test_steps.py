from __future__ import annotations

import random

from leakcheck.memory.steps import find_steps
from leakcheck.memory.trace import Event, Mark, Trace

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
