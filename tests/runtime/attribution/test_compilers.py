"""What torch.compile keeps for each new shape has a limit; functions made anew have none."""

from __future__ import annotations

import gc
from itertools import count

import pytest
import torch
from torch._subclasses import FakeTensorMode  # noqa: F401  # who imports it does not hold its cache

from leakcheck.model import Reason
from leakcheck.report.reasons import told
from leakcheck.runtime.attribution import inquest, window
from tests.runtime.attribution.windows import through_a_window

LAYER = torch.nn.Linear(4, 1)


@pytest.fixture(autouse=True)
def many_graphs():
    gc.unfreeze()  # graphs are kept in the globals of this module
    limits = {"recompile_limit": 1000, "accumulated_recompile_limit": 10_000}
    with torch._dynamo.config.patch(limits):
        yield
    torch._dynamo.reset()
    gc.freeze()


@pytest.fixture
def by_length():
    """Take a step with a length that none had before."""
    lengths = count(2)

    @torch.compile(backend="eager", dynamic=False)
    def work(x):
        return LAYER(x).pow(2).mean()

    return lambda: work(torch.ones(next(lengths), 4))


@pytest.fixture(params=["none-probed", "all-looked-at"])
def tables(request, monkeypatch):
    """Have none of the tables probed, or all of them: which are is the order of the heap."""
    if request.param == "none-probed":
        monkeypatch.setattr(window, "MOST_PROBES", 0)
    else:
        for module, name in (
            (window, "MOST_PROBES"),
            (inquest, "MOST_GROWERS"),
            (inquest, "MOST_PASSES"),
        ):
            monkeypatch.setattr(module, name, 10_000)


@pytest.mark.usefixtures("tables")
def test_a_graph_for_each_new_length_only_fills_up(by_length):

    suspects, notices = through_a_window(by_length)

    assert suspects == (), [str(s) for s in suspects]
    (notice,) = notices
    assert notice.kind == "bounded"
    assert told(notice) == (
        "torch.compile keeps a graph of a function for each new shape or number: 64 of at most "
        "1,000 so far and is full in 936 steps"
    )


def test_what_the_program_keeps_beside_it_is_named_all_the_same(by_length):
    losses = []

    (suspect,), _ = through_a_window(lambda: losses.append(by_length()))

    assert suspect.holder.name == "losses"


def test_functions_made_anew_at_each_step_are_a_leak_and_to_be_compiled_once():
    numbers = count()

    def step():
        scope = {"layer": LAYER}
        exec(f"def work(x):\n    return layer(x).mean() + {next(numbers)}", scope)
        torch.compile(scope["work"], backend="eager")(torch.ones(2, 4))

    (suspect, *_), _ = through_a_window(step)

    assert suspect.fix == Reason("compile-once"), suspect


def test_compiled_modules_that_a_list_keeps_are_the_programs_own():
    kept = []

    def step():
        kept.append(torch.compile(torch.nn.Linear(4, 1), backend="eager"))
        kept[-1](torch.ones(2, 4))

    (suspect, *_), _ = through_a_window(step)

    assert suspect.holder.name == "kept"
    assert suspect.fix != Reason("compile-once")
