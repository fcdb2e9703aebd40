"""Which optimizer, or which of a program's own loops, is taken for the step."""

from __future__ import annotations

import re
import textwrap
import threading
from collections.abc import Iterable, Iterator

import pytest

from leakcheck.runtime.clock import ticks
from leakcheck.runtime.clock.optimizers import an_optimizer_waits
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


def waits_of(source: str) -> list[str]:
    """Run a program that steps `optimizer` by `step()`; return what was waited for at each step."""
    sentinel = Sentinel()
    clock = StepClock(sentinel, lambda: waits.append(str(sentinel._course.waits)))
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


class Optimizer:
    """Raises when it is compared or hashed: a foreign object may."""

    __slots__ = ("__weakref__",)

    def __eq__(self, other: object) -> bool:
        raise NotImplementedError

    __hash__ = None  # type: ignore[assignment]


def counted_steps(stepping: Iterable[object]) -> list[bool]:
    """Return for each step of an optimizer whether it counted."""
    sentinel = Sentinel()
    counted: list[None] = []
    clock = StepClock(sentinel, lambda: counted.append(None))
    steps = []
    for optimizer in stepping:
        before = len(counted)
        clock.optimizer_stepped(optimizer)
        steps.append(len(counted) > before)
    sentinel.stop()
    return steps


def test_each_of_a_row_of_optimizers_that_are_all_kept_counts_from_its_first_step():
    kept = [Optimizer() for _ in range(50)]

    assert counted_steps(each for each in kept for _ in range(10)) == [True] * 500


def test_of_a_gan_s_two_optimizers_one_counts_after_the_first_round():
    critic, generator = Optimizer(), Optimizer()

    assert counted_steps([critic, generator] * 20) == [True, True] + [True, False] * 19


def test_of_three_that_alternate_one_counts_after_the_first_round():
    first, second, third = Optimizer(), Optimizer(), Optimizer()

    counted = counted_steps([first, second, third] * 20)

    assert counted == [True] * 3 + [True, False, False] * 19


def test_of_twenty_that_alternate_one_counts_after_a_few_rounds():
    agents = [Optimizer() for _ in range(20)]

    assert counted_steps(agents * 10)[60:] == ([True] + [False] * 19) * 7


def test_five_steps_of_a_critic_and_then_one_of_the_generator_are_five_steps():
    critic, generator = Optimizer(), Optimizer()

    counted = counted_steps([*[critic] * 5, generator] * 20)

    assert counted == [True] * 6 + [*[True] * 5, False] * 19


def test_one_step_of_the_generator_and_then_five_of_a_critic_are_one_step():
    critic, generator = Optimizer(), Optimizer()

    counted = counted_steps([generator, *[critic] * 5] * 20)

    assert counted == [True] * 6 + [True, *[False] * 5] * 19


def test_pairs_of_optimizers_that_are_replaced_and_kept_count_once_a_round():
    pairs = [[Optimizer(), Optimizer()] for _ in range(10)]

    counted = counted_steps(each for pair in pairs for each in pair * 10)

    assert counted == ([True, True] + [True, False] * 9) * 10


def test_new_optimizers_within_each_round_of_one_that_stays_do_not_count_in_the_end():
    outer = Optimizer()
    inner = [Optimizer() for _ in range(10)]

    counted = counted_steps(each for one in inner for each in (outer, one, one, one))

    assert counted == [True] * 8 + [True, False, False, False] * 8


def test_a_companion_takes_over_when_the_one_that_counts_does_not_step_any_more():
    counting, companion = Optimizer(), Optimizer()
    both = [counting, companion, counting]

    counted = counted_steps([*both, *[companion] * 300, counting, companion])

    assert counted == [True] * 3 + [False] * 199 + [True] * 101 + [False, True]


def test_a_companion_takes_over_at_once_when_the_one_that_counts_is_gone():
    companion = Optimizer()

    def stepping() -> Iterator[object]:
        counting = Optimizer()
        yield from (counting, companion, counting, companion)
        del counting
        yield companion

    assert counted_steps(stepping()) == [True, True, True, False, True]


def test_only_the_very_first_optimizer_restarts_the_watch(monkeypatch):
    restarts = []
    monkeypatch.setattr(Sentinel, "restart", lambda *_, **__: restarts.append(None))

    counted_steps([Optimizer() for _ in range(3)] * 3)

    assert len(restarts) == 1


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


@pytest.mark.parametrize("broken", [{"params": ["no tensor"]}, {}, None])
def test_an_optimizer_whose_groups_the_program_broke_disturbs_nobody(broken):
    torch = pytest.importorskip("torch")
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    optimizer.param_groups.append(broken)

    assert an_optimizer_waits() is False
