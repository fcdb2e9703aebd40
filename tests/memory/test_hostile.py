"""Broken and hostile files: one line, never a traceback, and nothing in them is run."""

from __future__ import annotations

import copy
import gzip
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from leakcheck.cli.bounded import bounded_memory
from leakcheck.errors import LeakcheckError
from leakcheck.memory.snapshot import load, snapshot_traces
from leakcheck.memory.verdict import judge
from leakcheck.report.picture import trace_svg

SEGMENT = 1 << 24
ODD = st.sampled_from(
    [
        *(None, -1, 0, 1, 511, 1 << 41, 1 << 63, 10**40, 1.5, float("nan"), float("inf"), True),
        *("", "active", "free_completed", "segment_free", "\x1b[31m", [], [[]], {}, {"0": 1}, b"x"),
    ]
).map(copy.deepcopy)  # one that was put into another is in no later example
MANY = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def valid_snapshot() -> dict[str, Any]:
    """Eight steps of two blocks in one segment, one of which stays until the next step."""
    entries: list[dict[str, Any]] = [{"action": "segment_alloc", "addr": SEGMENT, "size": 2 << 20}]
    for step in range(8):
        for offset, size in ((0, 4096), (4096, 700)):
            entries.append({"action": "alloc", "addr": SEGMENT + offset, "size": size})
        for offset, size in ((0, 4096), (4096, 700)):
            entries.append({"action": "free_completed", "addr": SEGMENT + offset, "size": size})
        entries[-1]["user_metadata"] = f"step {step % 2}"
    for time, entry in enumerate(entries):
        frames = [{"filename": "train.py", "line": 3, "name": "step"}]
        entry |= {"stream": 0, "time_us": time, "frames": frames}
    block = {"address": SEGMENT, "size": 2 << 20, "requested_size": 0, "state": "inactive"}
    segment = {"device": 0, "address": SEGMENT, "total_size": 2 << 20, "stream": 0}
    segment |= {"segment_type": "small", "segment_pool_id": (0, 0), "blocks": [block]}
    annotation = {"name": "Optimizer.step#Adam.step", "stage": "END", "time_us": 9, "device": 0}
    return {
        "segments": [segment],
        "device_traces": [entries],
        "allocator_settings": {"max_split_size": -1, "garbage_collection_threshold": 0.0},
        "external_annotations": [annotation],
    }


VALID = pickle.dumps(valid_snapshot())
STORED = json.dumps(
    {
        "run": {
            "events": [["S", SEGMENT, 2 << 20], ["a", SEGMENT, 4096, 0, [0, 0], 0], ["f", SEGMENT]],
            "init_segments": [[1 << 30, 2 << 20, True]],
            "init_blocks": [[1 << 30, 512, 4]],
            "marks": [[1, "step", 0], [3, "step", 1]],
            "sites": ["train.py:3 step"],
            "settings": {"expandable_segments": False},
        }
    }
).encode()


def told_or_judged(read: Callable[[], Any]) -> None:
    """What cannot be read is told in one line; what can be is judged and drawn."""
    traces, refusal = (), ""
    try:
        traces = read()
    except LeakcheckError as error:
        refusal = str(error)
    assert "\n" not in refusal
    for trace in traces:
        judge(trace, bisect=False)
        trace_svg(trace)


def mutated(content: bytes, changes: list[tuple[int, int, int]]) -> bytes:
    """Bytes replaced, removed or inserted."""
    broken = bytearray(content)
    for kind, place, byte in changes:
        at = place % (len(broken) + 1)
        if kind == 0:
            broken[at : at + 1] = bytes([byte])
        elif kind == 1:
            del broken[at : at + 1 + byte % 16]
        else:
            broken.insert(at, byte)
    return bytes(broken)


changes = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1 << 20), st.integers(0, 255)),
    min_size=1,
    max_size=4,
)


@MANY
@given(st.sampled_from([VALID, STORED, gzip.compress(STORED)]), changes)
def test_a_file_with_broken_bytes_is_read_or_refused(
    tmp_path: Path, content: bytes, changes: list[tuple[int, int, int]]
):
    path = tmp_path / "broken"
    path.write_bytes(mutated(content, changes))

    def read() -> Any:
        with bounded_memory(path):
            return load(path)

    told_or_judged(read)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a nested value."""
    found: list[tuple[Any, Any]] = []
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        found.append((value, key))
        if isinstance(value[key], (dict, list)):
            found += places(value[key])
    return found


@MANY
@given(st.integers(0, 10_000), ODD, st.integers(0, 10_000), ODD)
def test_a_snapshot_with_odd_values_is_read_or_refused(first: int, one: Any, then: int, other: Any):
    snapshot = copy.deepcopy(valid_snapshot())
    for number, value in ((first, one), (then, other)):
        found = places(snapshot)
        assume(found)
        container, key = found[number % len(found)]
        container[key] = value

    told_or_judged(lambda: snapshot_traces(snapshot))


@MANY
@given(st.integers(0, 10_000), ODD.filter(lambda value: not isinstance(value, bytes)))
def test_a_trace_file_with_odd_values_is_read_or_refused(tmp_path: Path, place: int, odd: Any):
    stored = json.loads(STORED)
    found = places(stored)
    container, key = found[place % len(found)]
    container[key] = odd
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(stored))

    told_or_judged(lambda: load(path))


class Calls:
    """Pickles into a call."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("place", ["segments", "device_traces", "allocator_settings"])
def test_nothing_in_a_pickle_is_called(tmp_path: Path, protocol: int, place: str):
    proof = tmp_path / "called"
    hostile = valid_snapshot() | {place: [Calls(Path.touch, proof), Calls(exec, f"open({proof})")]}
    path = tmp_path / "hostile.pickle"
    path.write_bytes(pickle.dumps(hostile, protocol=protocol))

    with pytest.raises(LeakcheckError, match="not a memory snapshot: it asks for "):
        load(path)

    assert not proof.exists()


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ('{"a": {"events": [["a", 1]], "marks": [[2, "x", 0]]}}', 'mark "x" is before event 2, of'),
        ('{"a": {"events": [["a"]]}}', "it has 1 fields, not two to six"),
        ('{"a": {"events": [[]]}}', "it has 0 fields, not two to six"),
        ('{"a": {"events": [["a", 1, NaN]]}}', "JSON is malformed"),
        ('{"a": {"events": [["a", 1, 2, 0, ' + "[" * 5000 + "]" * 5000 + "]]}}", "no allocation"),
    ],
    ids=["a mark behind the end", "too short", "empty", "no number", "deeply nested"],
)
def test_what_is_wrong_with_a_trace_is_said(tmp_path: Path, stored: str, message: str):
    path = tmp_path / "trace.json"
    path.write_text(stored)

    with pytest.raises(LeakcheckError, match=message) as raised:
        load(path)

    assert str(raised.value).startswith(f"{path}: ")
