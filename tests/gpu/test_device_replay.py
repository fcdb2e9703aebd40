"""What the device's allocator did, block for block, under each of its settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from leakcheck.memory.replay import reproduce
from leakcheck.memory.trace_file import read_traces
from leakcheck.memory.verdict import recorded_config

pytestmark = pytest.mark.cuda

SECTIONS = (
    "trace-native", "trace-expandable", "trace-max-split", "trace-roundup", "trace-gc",
    "trace-streams", "trace-graph", "trace-oom",
)  # fmt: skip


@pytest.mark.parametrize("section", SECTIONS)
def test_a_captured_trace_is_reproduced(section: str, captured: Callable[[str], Path]):
    (trace,) = read_traces(captured(section))

    fidelity = reproduce(trace, recorded_config(trace))

    assert fidelity.blocks > 10
    assert fidelity.exact
    assert fidelity.reserved_bytes == trace.final_reserved_bytes
