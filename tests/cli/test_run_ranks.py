from __future__ import annotations

import os
import subprocess
import sys

import pytest

from leakcheck.runtime.recording import read_recordings

pytest.importorskip("torch")
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
