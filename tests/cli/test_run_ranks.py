from __future__ import annotations

import os
import re
import resource
import subprocess
import sys

import pytest

from leakcheck.runtime.recording import read_recordings

pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("forked_python")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
LEAKY = """\
import torch
val = torch.rand(1)
for i in range(400):
    val += torch.rand(1).requires_grad_()
"""


@pytest.mark.parametrize(
    ("rank", "told"),
    [
        (0, "leakcheck: recorded; `leakcheck report leakcheck-abc` tells which ranks grow\n"),
        (1, ""),
    ],
)
def test_ranks_get_a_recording_and_a_page_and_keep_their_status(tmp_path, rank, told):
    (tmp_path / "program.py").write_text(LEAKY)
    ranks = {"WORLD_SIZE": "2", "RANK": str(rank), "TORCHELASTIC_RUN_ID": "abc"}
    environment = {**ENVIRONMENT, **ranks}

    done = subprocess.run(
        [sys.executable, "-m", "leakcheck", "run", "--html", "page.html", "program.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )

    (recording,) = read_recordings(tmp_path / "leakcheck-abc")
    assert (done.returncode, done.stderr) == (0, told)
    assert (tmp_path / f"page-rank-0000{rank}.html").read_text().startswith("<!doctype html>")
    assert recording.report is not None
    assert (recording.run.rank, recording.report.verdict) == (rank, "growing")


CLEAN = "import torch\nfor i in range(400):\n    torch.rand(1).requires_grad_()\n"
FULL_AT = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))\n"  # in bytes


def full_from_the_start() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))


def rank_of(tmp_path, rank: int, source: str, *options: str, full: bool = False):
    (tmp_path / "program.py").write_text(source)
    ranks = {"WORLD_SIZE": "2", "RANK": str(rank), "TORCHELASTIC_RUN_ID": "abc"}
    return subprocess.run(
        [sys.executable, "-m", "leakcheck", "run", *options, "program.py"],
        cwd=tmp_path,
        env={**ENVIRONMENT, **ranks},
        preexec_fn=full_from_the_start if full else None,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("rank", [0, 1])
def test_a_recording_that_cannot_begin_costs_a_launch_one_line(tmp_path, rank):
    (tmp_path / "leakcheck-abc").write_text("a file where the folder should be")

    done = rank_of(tmp_path, rank, CLEAN)

    path = f"leakcheck-abc/rank-0000{rank}.jsonl"
    told = f"leakcheck: rank {rank}: recording stopped at step 0: {path}: file exists\n"
    assert (done.returncode, done.stderr) == (0, told)


def test_a_disk_that_is_full_from_the_start_costs_a_launch_one_line(tmp_path):
    done = rank_of(tmp_path, 1, CLEAN, full=True)

    path = "leakcheck-abc/rank-00001.jsonl"
    told = f"leakcheck: rank 1: recording stopped at step 0: {path}: file too large\n"
    assert (done.returncode, done.stderr) == (0, told)


def test_a_recording_that_was_asked_for_and_cannot_begin_is_told_before_the_program_runs(tmp_path):
    (tmp_path / "there").write_text("")

    done = rank_of(tmp_path, 0, "print('ran')\n", "--record", "there/below")

    told = "leakcheck: there/below/rank-00000.jsonl: Not a directory\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)


@pytest.mark.parametrize(("source", "status"), [(CLEAN, 0), (LEAKY, 1)])
def test_a_disk_that_fills_while_it_is_recorded_costs_a_note_and_not_the_verdict(
    run, tmp_path, source, status
):
    full = FULL_AT.format(8000)
    recorded = run(full + source, "--to-end", "--record", "recorded")
    plain = run(full + source, "--to-end")

    (recording,) = read_recordings(tmp_path / "recorded")
    last = recording.samples[-1].step
    (note,) = [line for line in recorded.stderr.splitlines() if line.startswith("note: rec")]
    path = "recorded/rank-00000.jsonl"
    assert recorded.returncode == plain.returncode == status
    assert recorded.stderr.splitlines()[0] == plain.stderr.splitlines()[0]
    stopped = int(re.search(r"at step (\d+):", note)[1])
    assert stopped >= last  # what else is recorded belongs to the step before
    assert f"note: recording stopped at step {stopped}: {path}: file too large".startswith(note)
    assert recording.report is None
