"""Which of a program's own loops is taken for the step, and which waits for an optimizer's."""

from __future__ import annotations

import re
import textwrap
import threading
from collections.abc import Callable, Iterator
from sysconfig import get_path

import pytest

from leakcheck.runtime.clock import ticks
from leakcheck.runtime.clock.steps import StepClock
from leakcheck.runtime.sentinel import Sentinel


def run(source: str, **names: object) -> Sentinel:
    """Run a program whose loops tick; `stepped(optimizer)` is called as torch does."""
    sentinel = Sentinel()
    listener = StepClock(sentinel, lambda: None)
    namespace = {"sentinel": sentinel, "stepped": listener.optimizer_stepped, **names}
    ticks.give_names(namespace)
    path = f"{len(ticks.loops)}/program.py"  # loops of earlier programs are still known
    code = ticks.compile_with_ticks(textwrap.dedent(source), path)
    ticks.listen(listener.ticked)
    try:
        exec(code, namespace)
    finally:
        listener.stop()
        sentinel.stop()
    return sentinel


@pytest.fixture
def clock_of() -> Iterator[object]:
    """Run a program whose loops tick, and return the clock that its steps are counted by."""
    yield lambda source: re.sub(r"\d+/", "", run(source).clock)
    ticks.stop_listening()


def test_batches_within_epochs_are_the_steps(clock_of):
    clock = clock_of("""
        for epoch in range(20):
            for batch in range(50):
                pass
    """)
    assert clock == "iterations of the loop at program.py:3"


def test_a_few_iterations_within_each_of_an_outer_loop_are_not(clock_of):
    clock = clock_of("""
        for step in range(100):
            for part in range(3):
                pass
    """)
    assert clock == "iterations of the loop at program.py:2"


SAMPLES = """
    import time
    for batch in range({batches}):
        for sample in range(32):
            {work}
"""


def test_many_iterations_of_less_than_a_millisecond_are_parts_of_the_loop_around_them(clock_of):
    clock = clock_of(SAMPLES.format(batches=200, work="pass"))

    assert clock == "iterations of the loop at program.py:3"


def test_but_not_if_that_one_turns_too_rarely_to_be_judged(clock_of):
    clock = clock_of(SAMPLES.format(batches=40, work="pass"))

    assert clock == "iterations of the loop at program.py:4"


def test_nor_if_they_take_longer(clock_of):
    clock = clock_of(SAMPLES.format(batches=70, work="time.sleep(0.0011)"))

    assert clock == "iterations of the loop at program.py:4"


def test_nor_are_they_in_a_function_that_the_outer_loop_calls(clock_of):
    clock = clock_of("""
        def work():
            for part in range(3):
                pass
        for step in range(100):
            work()
    """)
    assert clock == "iterations of the loop at program.py:5"


def test_the_main_thread_s_loop_comes_before_that_of_a_helper_thread(clock_of):
    clock = clock_of("""
        import threading
        def help():
            for part in range(100):
                pass
        for step in range(100):
            helper = threading.Thread(target=help)
            helper.start()
            helper.join()
    """)
    assert clock == "iterations of the loop at program.py:6"


def test_it_comes_before_the_endless_loop_of_a_thread_that_prefetches(clock_of):
    clock = clock_of("""
        import threading
        batches = []
        def prefetch():
            while True:
                if len(batches) == 50:
                    return
                batches.append(1)
        helper = threading.Thread(target=prefetch)
        helper.start()
        helper.join()
        for step in range(300):
            pass
    """)
    assert clock == "iterations of the loop at program.py:12"


def test_an_optimizer_that_steps_while_a_thread_chooses_its_loop_counts(monkeypatch):
    sentinel = Sentinel()
    clock = StepClock(sentinel, lambda: None)
    optimizer = Optimizer()
    enclosing = ticks.enclosing

    def enclosing_and_step(frame):
        if clock._optimizer is None:
            monkeypatch.setattr(ticks, "enclosing", enclosing)
            helper = threading.Thread(target=clock.optimizer_stepped, args=[optimizer])
            helper.start()
            helper.join()
        return enclosing(frame)

    namespace: dict[str, object] = {}
    ticks.give_names(namespace)
    code = ticks.compile_with_ticks("for _ in range(100):\n    pass\n", "race/program.py")
    ticks.listen(clock.ticked)
    monkeypatch.setattr(ticks, "enclosing", enclosing_and_step)
    exec(code, namespace)
    clock.stop()
    sentinel.stop()

    assert sentinel.clock == "optimizer step"


class Optimizer:
    """Steps, as far as the clock is told."""


def waits_of(source: str) -> list[str]:
    """Run a program that steps `optimizer` by `step()`; return what was waited for at each step."""
    sentinel = Sentinel()
    clock = StepClock(sentinel, lambda: waits.append(str(sentinel._course.loop.waits)))
    waits: list[str] = []
    optimizer = Optimizer()
    namespace: dict[str, object] = {"step": lambda: clock.optimizer_stepped(optimizer)}
    ticks.give_names(namespace)
    code = ticks.compile_with_ticks(textwrap.dedent(source), f"{len(ticks.loops)}/waits.py")
    ticks.listen(clock.ticked)
    exec(code, namespace)
    clock.stop()
    sentinel.stop()
    return waits


def test_an_optimizer_that_goes_on_in_loops_within_loops_waits_for_the_outer_one():
    waits = waits_of("""
        for warm_up in range(10):
            step()
        for epoch in range(2):
            for batch in range(3):
                step()
    """)

    assert waits == ["nothing"] * 10 + ["all but graphs"] * 6


def test_a_loop_within_the_step_changes_nothing():
    waits = waits_of("""
        for batch in range(40):
            for part in range(3):
                pass
            step()
    """)

    assert waits == ["nothing"] * 40


NUMBERS = """
        def numbers():
            n = 0
            while True:
                yield n
                n += 1"""


def test_a_loop_that_takes_items_from_a_generator_comes_before_the_generator_s(clock_of):
    clock = clock_of(
        NUMBERS
        + """
        for _, n in zip(range(100), numbers()):
            pass
    """
    )
    assert clock == "iterations of the loop at program.py:7"


def test_a_generator_s_loop_counts_where_no_loop_takes_its_items(clock_of):
    clock = clock_of(
        NUMBERS
        + """
        source = numbers()
        [next(source) for _ in range(100)]
    """
    )
    assert clock == "iterations of the loop at program.py:4"


def test_what_a_generator_makes_is_in_doubt_as_long_as_the_program_runs():
    pytest.importorskip("torch")
    stages: list[str] = []
    run(
        """
        import torch
        def batches():
            while True:
                yield torch.zeros(1000)
        source = batches()
        seen = [next(source) for _ in range(500)]
        stages.append(sentinel.state[1])
        """,
        stages=stages,
    )

    assert stages == ["waiting"]


def test_the_loop_around_a_generator_that_steps_is_not_the_one_that_takes_its_items(monkeypatch):
    monkeypatch.setattr(Sentinel, "phase", lambda self, depth: phases.append(None))
    phases: list[None] = []
    run(
        """
        def training():
            for batch in range(50):
                stepped(optimizer)
                yield batch
        for epoch in range(4):
            for loss in training():
                pass
        """,
        optimizer=Optimizer(),
    )

    assert len(phases) == 3


TRAINER = """
def fit(step, callback):
    for _ in range(60):
        step()
    callback()
"""
SERVED = """
    def step():
        stepped(optimizer)
    def train():
        for batch in range(60):
            step()
    def serve():
        for request in range(3000):
            pass
"""
AFTER_TRAINING = {
    "train(); serve()": "iterations of the loop at program.py:8",
    "for batch in range(60): step()\n    serve()": "iterations of the loop at program.py:8",
    "for epoch in range(2): train(); serve()": "optimizer step",
    "fit(step, serve)": "optimizer step",
    "fit(step, print); serve()": "iterations of the loop at program.py:8",
}


@pytest.mark.parametrize(("program", "clock"), AFTER_TRAINING.items())
def test_a_long_loop_is_watched_once_the_calls_and_loops_that_trained_are_left(program, clock):
    library: dict[str, Callable[..., None]] = {}
    exec(compile(TRAINER, f"{get_path('purelib')}/trainer.py", "exec"), library)
    sentinel = run(f"{SERVED}\n    {program}", optimizer=Optimizer(), fit=library["fit"])

    assert re.sub(r"\d+/", "", sentinel.clock) == clock
