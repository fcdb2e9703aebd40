"""Replays what gpu_capture.py recorded on a device; skipped while nothing was."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from leakcheck.memory.allocator import round_size
from leakcheck.memory.replay import reproduce
from leakcheck.memory.trace_file import read_traces
from leakcheck.memory.verdict import recorded_config
from leakcheck.memory.workspaces import cublas_bytes, cublaslt_bytes

FOLDER = Path(__file__).parents[1] / "data" / "gpu"
TRACES = sorted(FOLDER.glob("trace-*.json.gz"))
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="nothing was captured on a device")


def captured(section: str) -> Any:
    path = FOLDER / f"{section}.json"
    if not path.exists():
        pytest.skip(f"{section} was not captured")
    return json.loads(path.read_text())


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_a_captured_trace_is_reproduced(path: Path):
    (trace,) = read_traces(path)

    assert reproduce(trace, recorded_config(trace)).exact


def test_captured_pages_sum_to_what_torch_said():
    loops = captured("ledgers")["captured"]

    for rows in loops.values():
        for allocated, page in rows:
            assert (
                allocated == page["allocated_bytes"] == sum(r["size_bytes"] for r in page["rows"])
            )


def test_the_captured_seed_values_follow_from_the_rules():
    told = captured("seeds")
    major, minor = told["capability"]
    cublas = cublas_bytes((major, minor), {})
    cublaslt = cublaslt_bytes(cublas, {})
    weights = round_size(256_000) + round_size(1000)

    assert [row[1] for row in told["captured"]["linear"]] == [
        weights,
        weights + 1024,
        weights + 2048 + cublas + cublaslt,
        2 * weights + 2048 + 2 * cublas + cublaslt,
        2 * cublas + cublaslt,
    ]


def test_nothing_captured_names_a_place_on_somebodys_disk():
    for path in FOLDER.glob("*.json"):
        text = path.read_text()
        assert "/home/" not in text
        assert not re.search(r'"/\w', text)
        assert '.py"' not in text
