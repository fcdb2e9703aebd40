from __future__ import annotations

import json
import pickle
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from html import unescape
from pathlib import Path

import pytest
from click.testing import CliRunner

from leakcheck.cli import leakcheck
from leakcheck.memory.rounding import MIB
from leakcheck.memory.trace import Event, Mark, Trace
from leakcheck.memory.trace_file import write_traces


def replay(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "leakcheck", "replay", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def looping(leaked_bytes: int = 0) -> Trace:
    events: list[Event] = []
    marks = []
    for step in range(10):
        events.append(Event("alloc", step, 30 * MIB))
        if leaked_bytes:
            events.append(Event("alloc", 100 + step, leaked_bytes, site=0))
        events.append(Event("free", step))
        marks.append(Mark(len(events), "after optimizer", step))
    return Trace(tuple(events), marks=tuple(marks), sites=("train.py:7 step",), name="loop")


@pytest.fixture
def steady(tmp_path: Path) -> Path:
    write_traces(tmp_path / "steady.json", [looping()])
    return tmp_path / "steady.json"


@pytest.fixture
def leaking(tmp_path: Path) -> Path:
    write_traces(tmp_path / "leaking.json.gz", [looping(2 * MIB)])
    return tmp_path / "leaking.json.gz"


def test_a_steady_trace_exits_0(steady: Path):
    done = replay(steady, "--policy", "native", "--policy", "ideal")

    assert done.stdout == (
        'loop: 20 events, 10 steps by marks "after optimizer"\n'
        "steady: live bytes at equal phase: flat, 8 settled steps\n"
        "\n"
        "policy        peak reserved  peak allocated  smallest limit\n"
        "native             30.0 MiB        30.0 MiB        30.0 MiB\n"
        "ideal              30.0 MiB        30.0 MiB        30.0 MiB\n"
        "\n"
        "at the peak of the live bytes:\n"
        "    30.0 MiB  no recorded place\n"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_leak_exits_1_and_names_its_place(leaking: Path):
    done = replay(leaking, "--policy", "native", "--limit", "40MiB")

    assert done.stdout == (
        'loop: 30 events, 10 steps by marks "after optimizer"\n'
        "leak: live bytes grow 2.0 MiB a step at equal phase, 8 settled steps\n"
        "   2.0 MiB a step: train.py:7 step\n"
        "\n"
        "policy        peak reserved  peak allocated  smallest limit   under 40.0 MiB\n"
        "native             50.0 MiB        50.0 MiB        50.0 MiB   does not fit\n"
        "\n"
        "at the peak of the live bytes:\n"
        "    30.0 MiB  no recorded place\n"
        "    20.0 MiB  train.py:7 step\n"
    )
    assert done.returncode == 1


def test_a_page_holds_picture_and_text_and_asks_nothing_of_the_network(
    leaking: Path, tmp_path: Path
):
    page = tmp_path / "page.html"

    done = replay(leaking, "--html", page)

    text = page.read_text()
    assert "<svg" in text
    assert done.stdout.strip() in unescape(text)
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_a_steady_trace_that_does_not_fit_exits_1(steady: Path):
    assert replay(steady, "--limit", "20MiB").returncode == 1
    assert replay(steady, "--limit", "80MiB", "--fraction", "0.5").returncode == 0


def test_json_holds_the_same(leaking: Path):
    done = replay(leaking, "--json", "--max-split", "128MiB", "--roundup", "4")

    told = json.loads(done.stdout)
    assert told["format"] == 1
    (trace,) = told["traces"]
    assert trace["verdict"] == "leak"
    assert trace["live"]["per_step"] == 2 * MIB
    assert [row["policy"] for row in trace["rows"]] == [
        "native",
        "expandable",
        "autogrowth",
        "ideal",
    ]


def test_a_picture_is_drawn(leaking: Path, tmp_path: Path):
    replay(leaking, "--svg", tmp_path / "loop.svg")

    drawn = ElementTree.parse(tmp_path / "loop.svg")
    texts = [node.text for node in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert "train.py:7 step" in texts
    assert "reserved (native)" in texts


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--limit", "much"], '--limit: "much" is not a size; write it as "512 B"'),
        (["--gc-threshold", "0.5"], "--fraction and --gc-threshold are shares of --limit"),
        (["--gc-threshold", "1.5", "--limit", "1g"], "gc_threshold must lie in [0, 1)"),
        (["--max-split", "1MiB"], "max_split_size must be more than 20 MiB"),
        (["--roundup", "3"], "3 is not a power of two"),
        (["--trace", "other"], "no trace named other"),
        (["--svg", "/absent/x.svg"], "/absent/x.svg: cannot be written: no such file or directory"),
    ],
)
def test_a_wrong_option_is_one_line_and_exits_2(arguments: list[str], message: str, steady: Path):
    done = replay(steady, *arguments)

    assert message in done.stderr
    assert done.stderr.startswith("leakcheck: ")
    assert done.stderr.count("\n") == 1
    assert (done.returncode, done.stdout) == (2, "")


def test_a_truncated_snapshot_is_one_line_and_exits_2(tmp_path: Path):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": []})[:-9])

    done = replay(path)

    assert done.stderr.startswith(f"leakcheck: {path}: not a memory snapshot: ")
    assert done.stderr.count("\n") == 1
    assert done.returncode == 2


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on address space")
def test_a_few_bytes_that_ask_for_gigabytes_are_refused(tmp_path: Path):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(b"\x80\x02Nr\xff\xff\xff\x7f.")  # memo slot 2**31 - 1

    done = replay(path)

    assert done.stderr.startswith(f"leakcheck: {path}: not a memory snapshot: ")
    assert done.returncode == 2


def test_too_few_steps_exit_2_and_still_print_the_table(tmp_path: Path):
    write_traces(tmp_path / "one.json", [Trace((Event("alloc", 1, MIB),), name="one")])

    done = replay(tmp_path / "one.json")

    assert "unclear: the trace shows no steps" in done.stdout
    assert "smallest limit" in done.stdout
    assert done.returncode == 2


def test_one_pass_of_equal_layers_exits_2_with_its_numbers(tmp_path: Path):
    events = [Event("alloc", 0, 8 * MIB)]
    for layer in range(24):
        events += [Event("alloc", layer + 1, 8 * MIB), Event("free", layer)]
    write_traces(tmp_path / "pass.json", [Trace(tuple(events), name="pass")])

    done = replay(tmp_path / "pass.json", "--policy", "native")

    assert done.stdout == (
        "pass: 49 events, no steps found\n"
        "unclear: the requests repeat, and what each time makes lives on through much of the next: "
        "the layers of one pass, or steps that keep their output; mark the steps to tell\n"
        "\n"
        "policy        peak reserved  peak allocated  smallest limit\n"
        "native             20.0 MiB        16.0 MiB        20.0 MiB\n"
    )
    assert done.returncode == 2


@pytest.mark.parametrize("option", ["--gc-threshold", "--fraction"])
@pytest.mark.parametrize("share", ["nan", "inf"])
def test_a_share_that_is_no_share_is_refused(option: str, share: str):
    result = CliRunner().invoke(leakcheck, ["replay", option, share, "trace.json"])
    assert result.exit_code == 2
    assert option in result.output
