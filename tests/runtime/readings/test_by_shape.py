"""What libraries made for new shapes is told where they count it, and judged nowhere."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from leakcheck.report.reasons import told
from leakcheck.runtime.readings import by_shape
from leakcheck.runtime.readings.by_shape import GRAPHS
from leakcheck.runtime.readings.series import Series


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Stands in for torch: two devices, of which the second has made three plans."""
    cuda = SimpleNamespace(is_initialized=lambda: True, device_count=lambda: 2)
    counters: dict[str, dict[str, int]] = {"stats": {"unique_graphs": 7}}
    stand_ins = {
        "torch.cuda": cuda,
        "torch": SimpleNamespace(_cufft_get_plan_cache_size=[0, 3].__getitem__),
        "torch._dynamo.utils": SimpleNamespace(counters=counters),
    }
    for name, module in stand_ins.items():
        monkeypatch.setitem(sys.modules, name, module)
    return {"cuda": cuda, "counters": counters}


def counted(*counts: int) -> Series:
    series = Series(64)
    for step, count in enumerate(counts):
        series.append(10 * step, float(step), {GRAPHS: count})
    return series


def test_what_was_made_is_counted_and_what_was_not_is_left_out(libraries):
    assert by_shape.read() == {GRAPHS: 7, "cuda:1.fft-plans": 3}

    libraries["counters"].clear()
    assert by_shape.read() == {"cuda:1.fft-plans": 3}


def test_a_device_that_the_program_has_not_is_not_asked(libraries):
    libraries["cuda"].is_initialized = lambda: False

    assert by_shape.read() == {GRAPHS: 7}


def test_a_torch_without_cufft_tells_of_no_plans(libraries, monkeypatch):
    def refuse(number: int) -> int:
        raise RuntimeError("Cannot access cuFFT plan cache without ATen_cuda library")

    torch = SimpleNamespace(_cufft_get_plan_cache_size=refuse)
    monkeypatch.setitem(sys.modules, "torch", torch)

    assert by_shape.read() == {GRAPHS: 7}


def test_counts_that_rise_after_the_warm_up_are_told():
    (notice,) = by_shape.notices(counted(8, 8, 20, 28), after=5)

    assert told(notice) == "torch.compile made graphs for new shapes or numbers in 20 steps: 20"


def test_what_one_function_keeps_by_default_is_worth_no_word():
    assert by_shape.notices(counted(0, 1, 8, 8), after=5) == ()
    assert by_shape.notices(counted(0, 40, 41, 41), after=5) == ()
