"""Whole clean programs, run unmodified: none raises an alarm."""

from __future__ import annotations

import json
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
    *("rare_classes", "rare_words", "removed_by_callback", "timers_soon_due", "transformer"),
    *("visited_states", "weak_learners"),
    "drained_by_main_thread",  # which may come late, and not at all before the training ends
}
pytestmark = pytest.mark.slow


CLEAN = sorted((PROGRAMS / "clean").glob("*.py"))
WITHOUT_TORCH = [program for program in CLEAN if "torch" not in program.read_text()]


@pytest.mark.parametrize(
    "program", [each for each in CLEAN if each not in WITHOUT_TORCH], ids=lambda p: p.stem
)
def test_a_clean_program_raises_no_alarm(program, watched):
    report = watched(program)

    assert report["suspects"] == [], report["stderr"]
    if program.stem in STILL_FILLING and report["verdict"] == "unclear":
        return
    assert report["verdict"] == "steady", report["stderr"]
    assert report["exit_status"] == 0


@pytest.mark.parametrize("program", WITHOUT_TORCH, ids=lambda p: p.stem)
def test_a_clean_program_without_torch_raises_no_alarm_and_none_is_imported(program, tmp_path):
    command = [sys.executable, "-m", "leakcheck", "run", "--json", "report.json", str(program)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)

    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["verdict"], report["suspects"]) == ("steady", []), done.stderr
    assert report["run"]["torch"] is None
