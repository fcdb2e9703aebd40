"""Gradients are read, but not while another thread may be giving them up."""

from __future__ import annotations

import gc
import queue
import threading
from contextlib import contextmanager, suppress

import pytest

from leakcheck.runtime.introspection.gradients import gradients_of, have_gradients

torch = pytest.importorskip("torch")


@contextmanager
def beside(work):
    """Run `work(stop)` in another thread meanwhile, which says when it has begun."""
    begun, stop = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (begun.set(), work(stop)))
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def trained():
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.grad = torch.ones(2)
    return weight


def spin(stop):
    while not stop._flag:  # is_set() is a function of threading, where threads wait
        sum(range(100))


def wait(stop):
    stop.wait()


def wait_for_work(stop):
    with suppress(queue.Empty):
        queue.Queue().get(timeout=0.5)
    stop.wait()


def test_parameters_have_gradients_after_the_first_backward_until_they_are_set_to_none():
    model = torch.nn.Linear(2, 1)
    seen = [have_gradients(model.parameters())]
    model(torch.ones(1, 2)).sum().backward()
    seen.append(have_gradients(model.parameters()))
    model.zero_grad()
    seen.append(have_gradients(model.parameters()))

    assert seen == [False, True, False]


@pytest.mark.parametrize("work", [wait, wait_for_work])
def test_beside_a_thread_that_waits_gradients_are_read(work):
    weight, other = trained(), torch.nn.Parameter(torch.zeros(1))

    with beside(work):
        assert gradients_of([weight, other]) == [weight.grad, None]


def test_reading_them_leaves_no_reference_cycle():
    gc.collect()
    gc.disable()
    try:
        gradients_of([trained()])
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_beside_a_thread_that_runs_they_are_not_and_are_taken_to_be_there():
    weight, other = trained(), torch.nn.Parameter(torch.zeros(1))

    with beside(spin):
        assert gradients_of([weight, other]) == [None, None]
        assert have_gradients([other])
