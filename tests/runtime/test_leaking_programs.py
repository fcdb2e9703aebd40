"""Each program under programs/leaking leaks one thing, and is told what, where and who holds it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCOREBOARD = HERE.parent / "benchmarks" / "runtime_scoreboard.py"
PROGRAMS = sorted((HERE / "programs" / "leaking").glob("*.py"))
# what leaks is no Python object
NO_HOLDER = {"native_heap", "small_blocks", "mapped_past_malloc", "threads", "open_files"}
RATE_OFF_BY = {"": 0.05, "B": 0.1}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def scoreboard():
    spec = importlib.util.spec_from_file_location("runtime_scoreboard", SCOREBOARD)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_leak_is_found_with_its_kind_line_holder_and_rate(program, scoreboard):
    expected = scoreboard.expected_of(program)

    report = scoreboard.watched(program, timeout_s=300)

    assert report["verdict"] == "growing", report["reason"]
    assert report["exit_status"] == 1
    suspect = report["suspects"][0]
    assert suspect["kind"] == expected.kind
    assert scoreboard.right_line(report, expected), suspect["locations"]
    assert program.stem in NO_HOLDER or scoreboard.right_holder(report, expected), suspect["holder"]
    error = scoreboard.rate_error(report, expected)
    assert error is None or error <= RATE_OFF_BY[expected.unit], suspect
