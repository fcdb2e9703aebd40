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


def test_other_ranks_get_a_recording_and_a_page_and_keep_their_status(tmp_path):
    (tmp_path / "program.py").write_text(LEAKY)
    environment = {**ENVIRONMENT, "WORLD_SIZE": "2", "RANK": "1", "TORCHELASTIC_RUN_ID": "abc"}

    done = subprocess.run(
        [sys.executable, "-m", "leakcheck", "run", "--html", "page.html", "program.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )

    (recording,) = read_recordings(tmp_path / "leakcheck-abc")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "page-rank-00001.html").read_text().startswith("<!doctype html>")
    assert recording.report is not None
    assert (recording.run.rank, recording.report.verdict) == (1, "growing")
