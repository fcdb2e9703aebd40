from __future__ import annotations

import gzip
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from leakcheck.errors import RecordingError
from leakcheck.memory.replay import reproduce
from leakcheck.memory.rounding import MIB
from leakcheck.memory.snapshot import load, snapshot_traces
from leakcheck.memory.trace import Event, Mark, Trace
from leakcheck.memory.trace_file import read_traces, write_traces

Dump = Callable[[Trace], dict[str, object]]


@pytest.mark.parametrize("name", ["kk_128_fullstep_", "kk_256_fullstep_", "kk_512_forward_mixed"])
def test_the_state_before_the_recording_is_worked_out(
    name: str, recorded: dict[str, Trace], snapshot_of: Dump
):
    trace = recorded[name]

    (read,) = snapshot_traces(snapshot_of(trace))

    assert read.initial == trace.initial
    assert read.final_allocated_bytes == trace.final_allocated_bytes
    assert reproduce(read).exact


def test_a_recording_that_began_late_is_reproduced_too(
    recorded: dict[str, Trace], snapshot_of: Dump
):
    dump = snapshot_of(recorded["kk_128_fullstep_"])
    (entries,) = dump["device_traces"]  # type: ignore[misc]
    dump["device_traces"] = [entries[len(entries) // 2 :]]

    (read,) = snapshot_traces(dump)
    fidelity = reproduce(read)

    assert fidelity.blocks > 1000
    assert fidelity.exact


def test_a_pickled_snapshot_is_read(tmp_path: Path, recorded: dict[str, Trace], snapshot_of: Dump):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot_of(recorded["kk_128_forward_"])))

    (read,) = load(path)

    assert read.name == "device 0"
    assert len(read.events) == len(recorded["kk_128_forward_"].events)


class Hostile:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch pwned",)


def test_a_hostile_pickle_is_refused_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [[Hostile()]]}))

    with pytest.raises(RecordingError, match=r"not a memory snapshot: it asks for \w+\.system"):
        load(path)

    assert not (tmp_path / "pwned").exists()


WHOLE = pickle.dumps({"segments": [], "device_traces": [[{"action": "alloc", "addr": 1}]]})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (WHOLE[:40], "not a memory snapshot"),
        (b"\x80\x04", "not a memory snapshot"),
        (b"hello", "not a memory snapshot"),
        (bytes(range(256)), "not a memory snapshot"),
        (pickle.dumps([1, 2]), "Expected `object`, got `array`"),
        (pickle.dumps({"segments": 3}), r"Expected `array`, got `int` - at `\$.segments`"),
        (
            pickle.dumps({"segments": [{"address": "x"}]}),
            r"got `str` - at `\$.segments\[0\].address`",
        ),
        (pickle.dumps({"segments": []}), "holds no segment and no event"),
        (b"{not json", "no allocation trace"),
        (b'{"a": {"events": [["q", 1, 2]]}}', 'unknown event kind "q"'),
        (b'{"a": {"events": [["a", "b", 2]]}}', "needs whole numbers"),
        (b'{"a": {"events": [[]]}}', "cannot be read"),
        (b'{"a": {}}', "missing required field `events`"),
        (b"{}", "holds no trace"),
        (gzip.compress(b'{"a": {"events": []}}', mtime=0)[:20], "broken gzip file"),
        (b"\x1f\x8bnot gzip at all", "broken gzip file"),
    ],
)
def test_a_broken_file_is_one_line(content: bytes, reason: str, tmp_path: Path):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(content)

    with pytest.raises(RecordingError, match=reason) as failure:
        load(path)

    assert "\n" not in str(failure.value)


def test_a_missing_file_and_a_folder_are_one_line(tmp_path: Path):
    with pytest.raises(RecordingError, match="cannot be read: No such file"):
        load(tmp_path / "absent")
    with pytest.raises(RecordingError, match="cannot be read: Is a directory"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_traces_are_written_and_read_back(name: str, tmp_path: Path, recorded: dict[str, Trace]):
    made = Trace(
        events=(
            Event("alloc", 1, 100, 7, (1, 2), 0),
            Event("free", 1, 100),
            Event("empty_cache", 0),
        ),
        marks=(Mark(2, "after optimizer", 0),),
        sites=("train.py:3 step",),
        name="made",
        settings={"expandable_segments": True},
    )
    traces = (recorded["kk_128_forward_"], made)

    write_traces(tmp_path / name, traces)

    assert read_traces(tmp_path / name) == traces


def entry(
    action: str, address: int, size: int, time_us: int = 0, **more: object
) -> dict[str, object]:
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time_us} | more


def block(address: int, size: int, state: str, requested: int | None = None) -> dict[str, object]:
    return {"address": address, "size": size, "requested_size": requested or size, "state": state}


def test_frames_annotations_and_metadata_become_sites_and_marks():
    frames = [
        {"filename": "??", "line": 0, "name": "at::empty"},
        {"filename": "/venv/site-packages/torch/nn/linear.py", "line": 3, "name": "forward"},
        {"filename": "/home/me/train.py", "line": 41, "name": "step"},
    ]
    dump = {
        "segments": [],
        "device_traces": [
            [
                entry("alloc", 1024, 512, 10, frames=frames, user_metadata="forward"),
                entry("free_requested", 1024, 512, 20, user_metadata="backward"),
                entry("free_completed", 1024, 512, 21, user_metadata="backward"),
                entry("alloc", 1024, 512, 30, frames=frames, user_metadata="forward"),
            ]
        ],
    }

    (read,) = snapshot_traces(dump)

    assert read.sites == ("train.py:41 step",)
    assert [event.site for event in read.events] == [0, -1, 0]
    assert read.marks == (Mark(0, "forward", 0), Mark(1, "backward", 0), Mark(2, "forward", 1))


def test_the_optimizers_annotations_mark_the_steps():
    dump = {
        "segments": [],
        "device_traces": [[entry("alloc", 512 * n, 512, 10 * n) for n in range(1, 5)]],
        "external_annotations": [
            {"name": "Optimizer.step#SGD.step", "stage": "START", "time_us": 12, "device": 0},
            {"name": "Optimizer.step#SGD.step", "stage": "END", "time_us": 25, "device": 0},
        ],
    }

    (read,) = snapshot_traces(dump)

    assert read.marks == (Mark(2, "after optimizer", 0),)


def test_pages_mapped_while_recording_are_undone(tmp_path: Path):
    base, page = 1 << 40, 20 * MIB
    dump = {
        "segments": [
            {
                "device": 0,
                "address": base,
                "total_size": 2 * page,
                "stream": 0,
                "segment_type": "large",
                "is_expandable": True,
                "blocks": [
                    block(base, 15 * MIB, "active_allocated"),
                    block(base + 15 * MIB, 15 * MIB, "active_allocated"),
                    block(base + 30 * MIB, 10 * MIB, "inactive"),
                ],
            }
        ],
        "device_traces": [
            [entry("segment_map", base + page, page), entry("alloc", base + 15 * MIB, 15 * MIB)]
        ],
    }

    (read,) = snapshot_traces(dump)

    write_traces(tmp_path / "mapped.json", [read])
    (stored,) = read_traces(tmp_path / "mapped.json")
    assert stored == read
    assert read.expandable
    assert [(b.size, b.state) for b in read.initial[0].blocks[:2]] == [
        (15 * MIB, "used"),
        (5 * MIB, "free"),
    ]
    assert reproduce(read).exact


def test_two_growing_segments_keep_their_recorded_addresses():
    low, high, page = 1 << 40, (1 << 40) + (160 << 30), 20 * MIB
    events = (
        Event("segment_alloc", high, 2 * MIB),
        Event("alloc", high, 512),
        Event("segment_alloc", low, page),
        Event("alloc", low, 15 * MIB),
        Event("segment_alloc", low + page, page),
        Event("alloc", low + 15 * MIB, 15 * MIB),
    )

    fidelity = reproduce(Trace(events, settings={"expandable_segments": True}))

    assert fidelity.exact
    assert fidelity.reserved_bytes == 42 * MIB
