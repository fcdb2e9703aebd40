from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

from leakcheck.runtime.readings import flight_recorder
from leakcheck.runtime.readings.watching import Watch


@pytest.fixture
def recorder(monkeypatch):
    """Let torch.distributed seem to be in use, its recorder holding so many entries."""

    def hold(entries: int | None, *, initialized: bool = True) -> None:
        distributed = SimpleNamespace(is_initialized=lambda: initialized)
        monkeypatch.setitem(sys.modules, "torch.distributed", distributed)
        dumps = {}
        if entries is not None:
            dumps["_dump_fr_trace_json"] = lambda: json.dumps({"entries": [{}] * entries})
        c10d = SimpleNamespace(**dumps)
        monkeypatch.setitem(sys.modules, "torch._C._distributed_c10d", c10d)

    monkeypatch.setattr(flight_recorder, "_last_seen", "empty")
    monkeypatch.delenv("TORCH_FR_BUFFER_SIZE", raising=False)
    monkeypatch.delenv("TORCH_NCCL_TRACE_BUFFER_SIZE", raising=False)
    return hold


@pytest.mark.parametrize(
    ("entries", "filling"), [(None, False), (0, False), (1, True), (1999, True), (2000, False)]
)
def test_a_recorder_fills_from_its_first_entry_to_its_last(recorder, entries, filling):
    recorder(entries)

    assert flight_recorder.filling() is filling


def test_its_size_may_be_set_in_the_environment(recorder, monkeypatch):
    recorder(40)
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "40")

    assert not flight_recorder.filling()


def test_nothing_fills_before_the_first_process_group(recorder):
    recorder(40, initialized=False)

    assert not flight_recorder.filling()


def test_the_last_answer_stands_once_the_process_group_is_gone(recorder):
    recorder(40)
    assert flight_recorder.filling()

    recorder(40, initialized=False)
    assert flight_recorder.filling()


def test_nothing_fills_in_a_program_without_torch(monkeypatch):
    monkeypatch.setattr(flight_recorder, "_last_seen", "empty")
    monkeypatch.setitem(sys.modules, "torch.distributed", None)
    monkeypatch.setitem(sys.modules, "torch._C._distributed_c10d", None)

    assert not flight_recorder.filling()


def test_a_checkpoint_notes_a_recorder_whose_process_group_is_gone_at_the_end(recorder):
    """The run that suspects the heap at its very end can ask no group any more."""
    recorder(40)
    Watch().checkpoint(10)

    recorder(40, initialized=False)
    assert flight_recorder.filling()
