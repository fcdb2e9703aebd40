"""Which of a program's own loops is taken for the step, when no optimizer says so."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import pytest

from leakcheck.runtime import ticks
from leakcheck.runtime.sentinel import Sentinel
from leakcheck.runtime.steps import StepClock


@pytest.fixture
def clock_of() -> Iterator[object]:
    """Run a program whose loops tick, and return the clock that its steps are counted by."""

    def clock(source: str) -> str:
        sentinel = Sentinel()
        listener = StepClock(sentinel, lambda: None)
        namespace: dict[str, object] = {}
        ticks.give_names(namespace)
        code = ticks.compile_with_ticks(textwrap.dedent(source), "program.py")
        ticks.listen(listener.ticked)
        try:
            exec(code, namespace)
        finally:
            listener.stop()
            sentinel.stop()
        return sentinel.clock

    yield clock
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
