"""How often functions were compiled again, by Dynamo's own counts."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from leakcheck.runtime.readings.compiled import Recompilation, recompilation, times_compiled


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    config = SimpleNamespace(recompile_limit=100, accumulated_recompile_limit=256)
    monkeypatch.setitem(sys.modules, "torch._dynamo.config", config)


def test_a_function_that_is_compiled_again_at_each_step_has_so_many_left():
    assert recompilation({0: 40}, {0: 60}, steps=20) == Recompilation(
        made=60, most=100, per_step=1.0, full_in_steps=40
    )


def test_of_several_functions_the_last_to_be_full_counts():
    assert recompilation({0: 40, 1: 10}, {0: 60, 1: 20}, steps=20) == Recompilation(
        made=80, most=200, per_step=1.5, full_in_steps=160
    )


def test_a_function_that_is_full_has_none_left():
    assert recompilation({0: 98}, {0: 101}, steps=20) == Recompilation(
        made=100, most=100, per_step=3 / 20, full_in_steps=0
    )


def test_where_nothing_is_compiled_there_is_nothing_to_tell():
    assert recompilation({0: 40}, {0: 40}, steps=20) is None
    assert recompilation({}, {}, steps=20) is None


def test_ever_new_functions_have_no_limit():
    made = dict.fromkeys(range(20), 1)

    assert recompilation({}, made, steps=20) is None
    assert recompilation({0: 1}, made | {0: 3}, steps=20) is None


def test_without_dynamo_nothing_was_compiled(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch._dynamo.convert_frame", raising=False)

    assert times_compiled() == {}
