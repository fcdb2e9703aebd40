"""One pass of equal layers is no step after step; ten passes are ten steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest

from leakcheck.memory.policies import native
from leakcheck.memory.rounding import MIB
from leakcheck.memory.trace import Event, Mark, Trace
from leakcheck.memory.verdict import TraceReport, judge

LAYERS = 24
NO_STEPS = (
    "the requests repeat, and what each time makes lives on through much of the next: the layers "
    "of one pass, or steps that keep their output; mark the steps to tell"
)


class Program:
    """What a program asks of the allocator; a block is known by its number."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._numbers = count()
        self._sizes: dict[int, int] = {}

    def make(self, size: int) -> int:
        block = next(self._numbers)
        self._sizes[block] = size
        self.events.append(Event("alloc", block, size))
        return block

    def free(self, *blocks: int) -> None:
        self.events += [Event("free", block, self._sizes[block]) for block in blocks]

    def layer(self, hidden: int, size: int) -> int:
        """`h = layer(h)` without gradients: the output replaces the input at its end."""
        attended = self.make(3 * size)
        wide = self.make(4 * size)
        self.free(attended)
        output = self.make(size)
        self.free(wide, hidden)
        return output

    def forward(self, size: int, layers: int = LAYERS) -> int:
        """A whole pass without gradients: embedding, layers and the output."""
        tokens = self.make(size // 100)
        hidden = self.make(size)
        for _ in range(layers):
            hidden = self.layer(hidden, size)
        output = self.make(size // 2)
        self.free(hidden, tokens)
        return output

    def training_step(self, size: int) -> None:
        """Forward lays up, backward takes down."""
        saved = [self.make(size * weight) for weight in (1, 4, 2, 4, 2, 1)]
        gradients = []
        while saved:
            gradients.append(self.make(size // 2))
            self.free(saved.pop())
        self.free(*gradients)

    def report(self, **given: object) -> TraceReport:
        trace = Trace(tuple(self.events), **given)  # type: ignore[arg-type]
        return judge(trace, {"native": native()}, bisect=False)


def passes(sizes: list[int], *, layers: int = LAYERS) -> Program:
    """`for x in batches: out = model(x)`; the loop holds an output until the next is there."""
    program = Program()
    program.make(50 * MIB)  # the weights
    held: list[int] = []
    for size in sizes:
        output = program.forward(size, layers)
        program.free(*held)
        held = [output]
    return program


def told(report: TraceReport) -> tuple[str, int, str]:
    return report.verdict, len(report.steps.boundaries), report.live.reason


def test_the_layers_of_one_pass_are_no_steps():
    assert told(passes([8 * MIB]).report()) == ("unclear", 0, NO_STEPS)


def test_layers_that_only_replace_each_others_output_are_no_steps():
    program = Program()
    hidden = program.make(8 * MIB)
    for _ in range(LAYERS):
        output = program.make(8 * MIB)
        program.free(hidden)
        hidden = output

    assert told(program.report()) == ("unclear", 0, NO_STEPS)


def test_a_pass_so_deep_that_its_ends_do_not_count_has_no_steps():
    assert told(passes([8 * MIB], layers=400).report()) == ("unclear", 0, NO_STEPS)


def test_layers_whose_reserved_bytes_grow_are_no_fragmentation():
    program = Program()
    hidden = program.make(8 * MIB)
    for number in range(LAYERS):
        work = program.make((24 + 4 * number) * MIB)  # each in a segment of its own
        output = program.make(8 * MIB)
        program.free(work, hidden)
        hidden = output

    assert told(program.report()) == ("unclear", 0, NO_STEPS)


@pytest.mark.parametrize("layers", [LAYERS, 200])
def test_ten_passes_are_ten_steps(layers: int):
    report = passes([8 * MIB] * 10, layers=layers).report()

    assert report.steps.found_by == "the repeating requests"
    assert told(report) == ("steady", 10, "flat")


@pytest.mark.parametrize("longer", [2, 7, 8])
def test_a_longer_pass_among_ten_is_no_fragmentation(longer: int):
    sizes = [16 * MIB if number == longer else 8 * MIB for number in range(10)]

    report = passes(sizes).report()

    assert told(report) == ("steady", 10, "flat")


def test_passes_that_keep_a_block_each_are_a_leak():
    program = Program()
    held: list[int] = []
    for _ in range(12):
        output = program.forward(8 * MIB)
        program.free(*held)
        program.make(2 * MIB)
        held = [output]

    report = program.report()

    assert report.verdict == "leak"
    assert report.live.per_step == 2 * MIB


def training(leaked_bytes: int = 0) -> Program:
    program = Program()
    program.make(50 * MIB)
    for _ in range(12):
        program.training_step(8 * MIB)
        if leaked_bytes:
            program.make(leaked_bytes)
    return program


def test_twelve_equal_training_steps_are_found():
    assert told(training().report()) == ("steady", 12, "flat")


def test_a_training_that_leaks_is_a_leak():
    report = training(leaked_bytes=2 * MIB).report()

    assert told(report) == ("leak", 12, "rises step after step")
    assert report.live.per_step == 2 * MIB


def test_the_layers_that_a_forward_keeps_for_its_backward_are_no_steps():
    program = Program()
    for _ in range(LAYERS):
        program.free(program.make(4 * MIB))
        program.make(8 * MIB)

    report = program.report()

    assert (report.verdict, report.steps.boundaries) == ("unclear", ())
    assert report.live.reason.startswith("live bytes grow 8.0 MiB each time the requests repeat")


def test_what_a_program_frees_at_its_end_hides_no_steps():
    program = Program()
    weights = [program.make(MIB) for _ in range(200)]
    for _ in range(10):
        program.training_step(8 * MIB)
    program.free(*weights)

    assert told(program.report()) == ("steady", 10, "flat")


@pytest.mark.parametrize("marked", [True, False], ids=["marked", "steps found"])
def test_steps_that_ask_for_more_than_any_free_block_holds_are_fragmentation(marked: bool):
    program, marks = Program(), []
    held: list[int] = []
    for step in range(12):
        program.training_step(8 * MIB)
        work = program.make((22 + 2 * step) * MIB)
        pin = program.make(MIB)
        program.free(work, *held)
        held = [pin]
        marks.append(Mark(len(program.events), "end", step))

    report = program.report(marks=tuple(marks) if marked else ())

    assert (report.verdict, report.excess.reason) == ("fragmentation", "reserved outgrows live")


@pytest.mark.parametrize("marked", [True, False], ids=["marked", "steps found"])
def test_recorded_steps_of_varying_size_are_fragmentation(
    twelve_steps: Callable[..., Trace], marked: bool
):
    trace = twelve_steps(varying=True)
    chosen = trace if marked else replace(trace, marks=())

    assert judge(chosen, {"native": native()}, bisect=False).verdict == "fragmentation"
