from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from leakcheck.cli import leakcheck
from leakcheck.errors import LeakcheckError
from leakcheck.model import Report, Run


def write_rank(folder: Path, rank: int, nodes_per_step: int, *, torn: bool = False) -> Path:
    """Write a recording that was cut off: a header and 200 samples, no report."""
    header = {"type": "run", "format": 1, "command": "train.py", "rank": rank, "world_size": 2}
    lines = [json.dumps(header)]
    for step in range(1, 201):
        readings = {"graph.nodes": 40 + nodes_per_step * step, "host.rss": 300 << 20}
        sample = {"type": "sample", "step": step, "elapsed_s": step / 100, "readings": readings}
        lines.append(json.dumps(sample))
    path = folder / f"rank-{rank:05d}.jsonl"
    path.write_text("\n".join(lines) + ('\n{"type": "sam' if torn else "\n"))
    return path


HEAD = '{"type": "run", "format": 1, "command": "train.py", "rank": 0, "world_size": 1}\n'


def sample_line(step: int, elapsed_s: float) -> str:
    return f'{{"type": "sample", "step": {step}, "elapsed_s": {elapsed_s}, "readings": {{}}}}\n'


def report(*arguments: str | Path) -> Result:
    return CliRunner().invoke(leakcheck, ["report", *map(str, arguments)])


def test_a_steady_recording_exits_zero(tmp_path):
    done = report(write_rank(tmp_path, 0, 0))

    assert done.exit_code == 0
    assert done.output.startswith("leakcheck: steady in 200 steps of train.py\n")


def test_ranks_are_merged_and_the_one_that_grows_is_named(tmp_path):
    write_rank(tmp_path, 0, 0)
    write_rank(tmp_path, 1, 11)

    done = report(tmp_path)

    assert done.exit_code == 1
    assert "note: rank 1 growing; rank 0 steady" in done.output
    assert "ranks diverge, growing on 1 of 2: graph.nodes up to 11 Nodes a step" in done.output


def test_the_ranks_on_which_the_program_failed_are_named(tmp_path):
    for rank, ended in enumerate(["finished", "failed", "failed"]):
        run = Run("train.py", 200, 1.0, rank=rank, world_size=3, exit_status=1, ended=ended)
        told = {"type": "report", "report": msgspec.to_builtins(Report(verdict="steady", run=run))}
        with write_rank(tmp_path, rank, 0).open("a") as file:
            file.write(json.dumps(told) + "\n")

    done = report(tmp_path)

    assert done.exit_code == 0
    assert "note: ranks 0, 1, 2 steady; the program failed on ranks 1, 2\n" in done.output


def test_a_recording_torn_by_a_kill_is_read_up_to_the_tear(tmp_path):
    done = report(write_rank(tmp_path, 0, 11, torn=True))

    assert done.exit_code == 1
    assert "the recording was cut off; it is judged by its samples" in done.output


def cut_off(folder: Path, blocks_per_step: int, **header: int) -> Path:
    """Write a recording that was cut off after 300 steps in which Python blocks grew."""
    lines = [json.dumps({**json.loads(HEAD), **header})]
    for step in range(1, 301):
        readings = {"python.blocks": 10**6 + blocks_per_step * step, "host.rss": 300 << 20}
        sample = {"type": "sample", "step": step, "elapsed_s": step / 100, "readings": readings}
        lines.append(json.dumps(sample))
    path = folder / "rank-00000.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("blocks_per_step", "header", "status", "message"),
    [
        (1, {}, 0, "about 64 B a step, below the tolerance of 1.0 KiB a step"),
        (1, {"tolerance_bytes": 32}, 2, "python.blocks grew, and the run was cut off before"),
        (40, {}, 2, "python.blocks grew, and the run was cut off before"),
        (40, {"tolerance_bytes": 4096}, 0, "below the tolerance of 4.0 KiB a step"),
    ],
)
def test_what_was_cut_off_is_judged_by_the_tolerance_of_its_run(
    tmp_path, blocks_per_step, header, status, message
):
    done = report(cut_off(tmp_path, blocks_per_step, **header))

    assert done.exit_code == status
    assert message in " ".join(done.output.split())
    assert "the recording was cut off; it is judged by its samples" in done.output


def test_every_format_is_written(tmp_path):
    path = write_rank(tmp_path, 0, 11)
    page, plot = tmp_path / "page.html", tmp_path / "plot.svg"

    done = report(path, "--output-format", "json", "--html", page, "--svg", plot, "--exit-zero")

    assert done.exit_code == 0
    assert json.loads(done.output)["verdict"] == "growing"
    assert page.read_text().startswith("<!doctype html>")
    assert plot.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a leakcheck recording"),
        ("hello\n", "not a leakcheck recording"),
        ('{"type": "run", "format": 99}\n', "written in format 99, not 1"),
        ('{"type": "run", "format": 1}\nbroken\n{}\n', "damaged line"),
        (HEAD + "[" * 5000 + "\n{}\n", "rank-00000.jsonl:2: damaged line"),
        (HEAD + '{"type": "sample", "step": 1, "elapsed_s": NaN}\n{}\n', ":2: damaged line"),
        (HEAD + '{"type": "sample", "step": 1' + "0" * 400 + "}\n{}\n", ":2: damaged line"),
        (HEAD + sample_line(2, 0.1) + sample_line(1, 0.2), "damaged: its steps do not rise"),
        (HEAD + sample_line(1, 1e18), "damaged: its clock is impossible"),
    ],
)
def test_what_is_no_recording_is_refused_in_one_line(tmp_path, text, message):
    path = tmp_path / "rank-00000.jsonl"
    path.write_text(text)

    done = report(path)

    assert isinstance(done.exception, LeakcheckError)
    assert done.exception.exit_code == 2
    assert message in str(done.exception)
    assert str(path) in str(done.exception)


def test_a_missing_file_and_an_empty_folder_say_so(tmp_path):
    assert str(report(tmp_path / "nope.jsonl").exception).endswith("No such file or directory")
    assert "no recording (rank-*.jsonl) in there" in str(report(tmp_path).exception)


def test_an_output_that_cannot_be_written_is_one_line(tmp_path):
    path = write_rank(tmp_path, 0, 0)

    done = report(path, "--html", tmp_path / "missing" / "page.html")

    assert "cannot be written: no such file or directory" in str(done.exception)
