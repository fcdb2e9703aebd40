"""Has the program left the calls that were around a step?"""

from __future__ import annotations

import sys
from sysconfig import get_path

import pytest

from leakcheck.runtime.clock import ticks
from leakcheck.runtime.clock.calls import calls_around

HELPER = """
def asked(ask):
    return ask()
def fit(step, callback):
    step()
    return callback()
"""
library: dict[str, object] = {}
exec(compile(HELPER, f"{get_path('purelib')}/helper.py", "exec"), library)
asked, fit = library["asked"], library["fit"]


def train(ask):
    return asked(ask)


def serve(ask):
    return asked(ask)


@pytest.mark.parametrize(("now", "left"), [(serve, True), (train, False)])
def test_calls_are_left_where_the_loops_of_the_last_that_still_runs_are_seen(
    now, left, monkeypatch
):
    """A function of a library that both call, as deep inside, is not the same call."""
    monkeypatch.setattr(ticks, "files", {__file__, pytest.__file__, *_files_of_this_stack()})
    before = train(lambda: calls_around(sys._getframe()))

    assert now(lambda: before.are_left(sys._getframe())) is left


def test_a_trainer_of_the_program_whose_loops_are_not_seen_may_make_more_steps(monkeypatch):
    """As of a package beside the script's folder, found by PYTHONPATH."""
    monkeypatch.setattr(ticks, "files", set())
    before = train(lambda: calls_around(sys._getframe()))

    assert serve(lambda: before.are_left(sys._getframe())) is False


def _files_of_this_stack():
    frame = sys._getframe()
    while frame is not None:
        yield frame.f_code.co_filename
        frame = frame.f_back


def test_a_trainer_of_a_library_that_goes_on_may_make_more_steps(monkeypatch):
    seen = []

    def ask():
        return seen[0].are_left(sys._getframe())

    monkeypatch.setattr(ticks, "files", {__file__, *_files_of_this_stack()})

    assert fit(lambda: seen.append(calls_around(sys._getframe())), ask) is False
    assert ask() is True
