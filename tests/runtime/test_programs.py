"""Whole clean programs, run unmodified: none raises an alarm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
PROGRAMS = Path(__file__).parent / "programs"
# they end while something with a limit still fills, or before a suspicion could be confirmed:
# "unclear" is as true as "steady"
STILL_FILLING = {
    *("budget_of_bytes", "cache_that_fills", "limited_cache", "longer_episodes", "replay_buffer"),
    *("rare_classes", "rare_words", "removed_by_callback", "transformer", "visited_states"),
}
pytestmark = pytest.mark.slow


def run(program: Path, folder: Path) -> tuple[subprocess.CompletedProcess[str], dict]:
    command = [sys.executable, "-m", "leakcheck", "run", "--json", "report.json", str(program)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    return done, json.loads((folder / "report.json").read_text())


@pytest.mark.parametrize("program", sorted((PROGRAMS / "clean").glob("*.py")), ids=lambda p: p.stem)
def test_a_clean_program_raises_no_alarm(program, tmp_path):
    done, report = run(program, tmp_path)

    assert report["suspects"] == [], done.stderr
    if program.stem in STILL_FILLING and report["verdict"] == "unclear":
        return
    assert report["verdict"] == "steady", done.stderr
    assert done.returncode == 0
