"""Where surviving device blocks were made, recorded in a short window."""

from __future__ import annotations

import pytest
import torch

from leakcheck.memory.ledger import explain
from leakcheck.memory.watch import Ledger
from leakcheck.memory.window import allocation_stacks

pytestmark = pytest.mark.cuda


def record(**options: object) -> None:
    torch.cuda.memory._record_memory_history(**options)


def test_survivors_are_grouped_by_the_line_that_made_them():
    ledger, kept = Ledger(), []
    torch.zeros(1, device="cuda")

    with allocation_stacks() as recorded:
        assert recorded
        before = ledger.take("end", 0)
        kept += [torch.zeros(1024, device="cuda") for _ in range(10)]  # nothing to round up
        after = ledger.take("end", 10)

    (grown,) = explain(before, after)
    assert grown.bytes_per_step == 4096
    assert grown.site.startswith("test_device_history.py:")


def test_the_window_leaves_no_recording_behind():
    torch.zeros(1, device="cuda")
    with allocation_stacks():
        pass

    kept = torch.zeros(1000, device="cuda")
    frames = [b.get("frames") for s in torch.cuda.memory_snapshot() for b in s["blocks"]]

    assert kept.numel() == 1000
    assert not torch._C._cuda_isHistoryEnabled()
    assert torch.cuda.memory._snapshot()["device_traces"][0] == []
    assert frames


def test_a_program_that_records_by_itself_goes_on_recording():
    torch.zeros(1, device="cuda")
    record(enabled="all", context=None, max_entries=1000)
    try:
        with allocation_stacks():
            kept = torch.zeros(1000, device="cuda")
        later = torch.zeros(2000, device="cuda")
        sizes = [entry["size"] for entry in torch.cuda.memory._snapshot()["device_traces"][0]]
    finally:
        record(enabled=None)

    assert sizes[-2:] == [kept.nbytes, later.nbytes]
