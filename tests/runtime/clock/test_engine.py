"""Backward passes are the steps where a library has its loop to itself, and no loader."""

from __future__ import annotations

import re
import textwrap
import traceback

import pytest

pytest.importorskip("torch")

import torch
from torch.autograd import Variable

from leakcheck.runtime.clock import engine, ticks
from leakcheck.runtime.clock.steps import StepClock
from leakcheck.runtime.guard import ErrorGuard
from leakcheck.runtime.sentinel import Sentinel

PASSES = "backward passes"


class Library:
    """Asks for gradients in loops that do not tick, as samplers and SciPy's optimizers do."""

    def sample(self, count, function, by_grad=False):
        at = torch.zeros(3)
        for _ in range(count):
            at = at.detach().requires_grad_()
            loss = function(at)
            if by_grad:
                (gradient,) = torch.autograd.grad(loss, at)
            else:
                loss.backward()
                gradient = at.grad
            at = at - 0.1 * gradient


def loss_of(at):
    return (at - 1).square().sum()


def run(source: str) -> tuple[str, int]:
    """Run a user's program; returns its clock and the number of steps."""
    sentinel = Sentinel()
    clock = StepClock(sentinel, lambda: None)
    weight = torch.zeros(3, requires_grad=True)
    names = {"library": Library(), "loss_of": loss_of, "weight": weight}
    namespace = names | {"stepped": clock.optimizer_stepped}
    ticks.give_names(namespace)
    code = ticks.compile_with_ticks(textwrap.dedent(source), f"{len(ticks.loops)}/program.py")
    ticks.listen(clock.ticked)
    engine.listen(clock)
    try:
        exec(code, namespace)
    finally:
        clock.stop()
        sentinel.stop()
    return re.sub(r"\d+/", "", sentinel.clock), sentinel.state[0]


@pytest.mark.parametrize("by_grad", [False, True])
def test_a_library_that_asks_for_gradients_in_a_loop_of_its_own(by_grad):
    clock, steps = run(f"library.sample(300, loss_of, {by_grad})")

    assert (clock, steps) == (PASSES, 300 - 64)


def test_a_loop_of_the_user_s_comes_first():
    clock, _ = run("""
        for _ in range(300):
            loss_of(weight).backward()
    """)

    assert clock == "iterations of the loop at program.py:2"


def test_an_optimizer_that_steps_comes_first():
    clock, steps = run("""
        class Optimizer: pass
        optimizer = Optimizer()
        def stepping(at):
            stepped(optimizer)
            return loss_of(at)
        library.sample(300, stepping)
    """)

    assert (clock, steps) == ("optimizer step", 300)


def test_a_loop_that_makes_no_graph_makes_way_for_the_library_that_does():
    clock, _ = run("""
        for _ in range(50):
            sum(range(3))
        library.sample(300, loss_of)
    """)

    assert clock == PASSES


class Counts:
    """Counts what it is told."""

    def __init__(self):
        self.guard, self.count = ErrorGuard(), 0

    def began_backward(self):
        self.count += 1


@pytest.fixture
def counts():
    listener = Counts()
    engine.listen(listener)
    yield listener
    engine.stop_listening(listener)


def test_the_engine_is_as_it_was_once_nobody_listens(counts):
    known = Variable._execution_engine
    assert type(vars(Variable)["_execution_engine"]) is not type(known)

    engine.stop_listening(counts)

    assert vars(Variable)["_execution_engine"] is known
    loss_of(torch.zeros(3, requires_grad=True)).backward()
    assert counts.count == 0


def test_a_callback_put_into_the_engine_s_queue_is_no_pass(counts):
    done = []
    at = torch.zeros(3, requires_grad=True)
    at.register_hook(
        lambda gradient: Variable._execution_engine.queue_callback(lambda: done.append(1))
    )

    loss_of(at).backward()

    assert (counts.count, done) == (1, [1])


def test_what_fails_in_backward_fails_without_a_line_of_ours(counts):
    loss = loss_of(torch.zeros(3, requires_grad=True))
    loss.backward()

    with pytest.raises(RuntimeError, match="backward through the graph a second time") as failed:
        loss.backward()

    files = [frame.filename for frame in traceback.extract_tb(failed.value.__traceback__)]
    assert not any("leakcheck/runtime" in path for path in files)
