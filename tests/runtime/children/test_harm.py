"""Child processes print, fail and end under leakcheck as they do alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked_python")]
BOTH = "ForkProcess-1, ForkProcess-2"
KILLED = "was killed, and is judged by its recording"
# how children end and begin -> what is told of them; "" where none came to train
TOLD = {
    ("process_raises", "fork"): "ForkProcess-1 steady; ForkProcess-1 failed",
    ("process_raises", "spawn"): "SpawnProcess-1 steady; SpawnProcess-1 failed",
    ("process_killed", "fork"): f"ForkProcess-1 steady; ForkProcess-1 {KILLED}",
    ("own_class", "spawn"): "Own-1 steady; Own-1 failed",
    ("cannot_be_pickled", "spawn"): "",
    ("leaves", "fork"): f"{BOTH} steady; {BOTH} failed",
    ("exits", "fork"): f"{BOTH} steady; {BOTH} failed",
    (
        "terminated",
        "fork",
    ): f"{BOTH} steady; {BOTH} were killed, and are judged by their recordings",
    ("interrupted", "fork"): f"{BOTH} steady",
    ("in_thread", "fork"): f"{BOTH} steady",
    ("nested", "fork"): "ForkProcess-1, Process-1:1, ForkProcess-2, Process-2:1 steady",
    ("not_joined", "spawn"): "SpawnProcess-1 steady",
    ("daemon", "fork"): f"ForkProcess-1 steady; ForkProcess-1 {KILLED}",
    ("one_task_each", "fork"): "ForkPoolWorker-1, ForkPoolWorker-2, ForkPoolWorker-3 steady",
}


@pytest.fixture
def ended(program, tmp_path):
    """Run a program; returns stdout, stderr without our report, and the exit status."""

    def run(*command: str) -> tuple[str, str, int]:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return done.stdout, done.stderr.partition("leakcheck: ")[0], done.returncode

    return run


@pytest.mark.parametrize("ending", TOLD, ids=" ".join)
def test_children_end_as_they_do_alone_and_their_ends_are_told(ended, program, tmp_path, ending):
    script = program("endings.py")

    alone = ended(script, *ending)
    options = ("--exit-zero", "--json", "report.json")
    watched = ended("-m", "leakcheck", "run", *options, script, *ending)

    assert watched == alone
    report = json.loads((tmp_path / "report.json").read_text())
    told = [each["said"] for each in report["notices"][:1]]
    assert (report["run"]["steps"], told) == ((60, [TOLD[ending]]) if TOLD[ending] else (0, []))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_loader_see_of_a_watch_what_they_see_alone(ended, program, method):
    script = program("loader_workers.py")

    alone = ended(script, method)
    watched = ended("-m", "leakcheck", "run", "--to-end", script, method)

    assert watched == alone


def test_a_script_without_a_guard_fails_as_it_does_alone(ended, program):
    script = program("no_guard.py")

    alone = ended(script)
    watched = ended("-m", "leakcheck", "run", "--exit-zero", script)

    assert "freeze_support()" in alone[1]
    assert watched == alone
