from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from leakcheck.cli import leakcheck
from leakcheck.errors import LeakcheckError
from leakcheck.memory.prediction import Prediction
from leakcheck.memory.rounding import MIB
from leakcheck.memory.trace import Event, Mark, Trace
from leakcheck.memory.trace_file import write_traces

TOLD = """
measured (device 0: 8 events, a step by marks "after optimizer"):
  peak allocated  50.0 MiB; predicted 51.0 MiB, +2.00%, outside the interval
  peak reserved   50.0 MiB; predicted 50.0 MiB, +0.00%, inside the interval
"""


def estimate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(leakcheck, ["estimate", *map(str, arguments)])


@pytest.fixture(autouse=True)
def _predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    prediction = Prediction(
        device="t4",
        mode="fake",
        steps=3,
        peak_allocated_bytes=51 * MIB,
        peak_reserved_bytes=50 * MIB,
        context_bytes=0,
        memory_bytes=1 << 34,
    )
    monkeypatch.setattr("leakcheck.memory.predict.predict", lambda *_: prediction)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    events: list[Event] = []
    marks = []
    for step in range(4):
        events += [Event("alloc", step, 50 * MIB), Event("free", step)]
        marks.append(Mark(len(events), "after optimizer", step))
    path = tmp_path / "run.json.gz"
    write_traces(path, [Trace(tuple(events), marks=tuple(marks), name="device 0")])
    return path


def test_a_recording_is_told_beside_the_prediction(recording: Path):
    done = estimate("--measured", recording, "train.py")

    assert done.exit_code == 0
    assert done.output.endswith(TOLD)


def test_json_and_pictures_hold_the_same_comparison(recording: Path, tmp_path: Path):
    svg, page = tmp_path / "a.svg", tmp_path / "a.html"

    done = estimate("--json", "--measured", recording, "--svg", svg, "--html", page, "train.py")

    told = json.loads(done.output)["measured"]
    assert told["peak_allocated"] == {
        "measured_bytes": 50 * MIB,
        "predicted_bytes": 51 * MIB,
        "difference": pytest.approx(0.02),
        "inside_interval": False,
    }
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    assert "measured: device 0, one step" in page.read_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"{}", "holds no trace"),
        (b'{"a": {"events": []}}', "holds no event"),
        (b"\x80\x05cposix\nsystem\n.", "not a memory snapshot: it asks for posix.system"),
    ],
)
def test_a_file_that_is_no_recording_is_refused_in_one_line(
    content: bytes, message: str, tmp_path: Path
):
    path = tmp_path / "run.pickle"
    path.write_bytes(content)

    done = estimate("--measured", path, "train.py")

    assert isinstance(done.exception, LeakcheckError)
    assert f"{path}: {message}" in str(done.exception)
    assert "\n" not in str(done.exception)


def test_a_missing_recording_is_refused_before_anything_runs(tmp_path: Path):
    done = estimate("--measured", tmp_path / "none.pickle", "train.py")

    assert "cannot be read" in str(done.exception)


def test_one_run_is_not_compared_with_several_batch_sizes(recording: Path):
    sizes = ("--batch-size", "1", "--batch-size", "2")

    assert "give one --batch-size" in str(
        estimate("--measured", recording, *sizes, "a.py").exception
    )
