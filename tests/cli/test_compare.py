"""`leakcheck compare` on whole programs, commits, recordings and reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("forked_python")
TRAINING = """\
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(16, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses = []
for step in range(300):
    loss = model(torch.randn(4, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append({kept})
"""
LEAKING, FIXED = TRAINING.format(kept="loss"), TRAINING.format(kept="loss.item()")
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    **{f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


@pytest.fixture
def compare(tmp_path):
    """Compare in a folder with both programs; returns the finished process."""
    (tmp_path / "leaking.py").write_text(LEAKING)
    (tmp_path / "fixed.py").write_text(FIXED)

    def compare(*arguments: str, command: str = "compare"):
        return subprocess.run(
            [sys.executable, "-m", "leakcheck", command, *arguments],
            cwd=tmp_path,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return compare


def test_a_fix_cures_and_its_removal_starts_the_leak(compare, tmp_path):
    done = compare("--pairs", "1", "--json", "out.json", "leaking.py", "fixed.py")
    answer = json.loads((tmp_path / "out.json").read_text())

    assert (done.returncode, answer["outcome"]) == (0, "cures"), done.stderr
    assert done.stdout.startswith("leakcheck: the change cures the leak\n")
    moved = {each["resource"]: each["outcome"] for each in answer["changes"]}
    assert (moved["graph.nodes"], moved["tensors"]) == ("ends", "ends")
    assert [leak["told"].rpartition(", ")[2] for leak in answer["gone"]] == [
        "held by global `losses`"
    ]


def test_a_baseline_fails_once_a_leak_starts(compare):
    compare("--json", "baseline.json", "fixed.py", command="run")
    options = ("--pairs", "1", "--against-baseline", "baseline.json")

    assert compare(*options, "fixed.py").returncode == 0
    done = compare(*options, "leaking.py")
    assert done.returncode == 1, done.stderr
    assert "the change starts a leak" in done.stdout


def test_two_recordings_are_compared_without_a_run(compare):
    for name in ("leaking", "fixed"):
        compare("--record", name, f"{name}.py", command="run")

    done = compare("fixed", "leaking")
    assert done.returncode == 1, done.stderr
    assert "before  fixed: steady" in done.stdout


def test_two_commits_run_in_worktrees_that_are_gone_afterwards(compare, tmp_path):
    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "data.py").write_text("KEPT = True\n")
    text = "from package.data import KEPT\n" + TRAINING.format(kept="loss if KEPT else loss.item()")
    (tmp_path / "train.py").write_text(text)
    git("init", "-q")
    git("add", "train.py", "package")
    git("commit", "-qm", "leaks")
    (tmp_path / "package" / "data.py").write_text("KEPT = False\n")
    git("commit", "-qam", "fixed")

    done = compare("--pairs", "1", "--commits", "HEAD~1..HEAD", "train.py")
    assert done.returncode == 0, done.stderr
    assert "the change cures the leak" in done.stdout
    assert len(git("worktree", "list").splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "compare takes A and B, each with its arguments in one word; got 0"),
        (
            ("leaking.py", "fixed.py", "--pairs", "1"),
            "compare takes A and B, each with its arguments in one word; got 4; --pairs comes "
            "before A",
        ),
        (("leaking.py", "nowhere.py"), "nowhere.py: no such file"),
        (("leaking.py", "'"), "': No closing quotation"),
        (
            ("empty.json", "fixed.py"),
            "empty.json: the report of a check, not of a run: it has no verdict",
        ),
        (("broken.json", "fixed.py"), "broken.json: no report of `leakcheck run --json`: "),
        (
            ("--commits", "HEAD", "fixed.py"),
            "--commits HEAD: write it as A..B, two commits of this repository",
        ),
        (("--commits", "a..b", "fixed.py"), "--commits: "),
        (
            ("--commits", "a..b", "--against-baseline", "empty.json", "fixed.py"),
            "--commits and --against-baseline do not go together",
        ),
        (("--against-baseline", "empty.json"), "name a script to run, or a module with -m"),
    ],
)
def test_what_cannot_be_compared_is_said_in_one_line(compare, tmp_path, arguments, told):
    (tmp_path / "empty.json").write_text('{"format": 1}')
    (tmp_path / "broken.json").write_text("{")

    done = compare(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"leakcheck: {told}")
    assert done.stderr.count("\n") == 1


def test_a_program_that_fails_is_told_and_nothing_is_said_of_the_change(compare, tmp_path):
    (tmp_path / "broken.py").write_text("raise SystemExit(3)\n")

    done = compare("--pairs", "1", "broken.py", "fixed.py")

    assert done.returncode == 2
    assert "before the change: the program failed: it left with status 3" in " ".join(
        done.stdout.split()
    )
