from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="needs git"),
    pytest.mark.usefixtures("forked_python"),
]

COMMITS = 10
BROKEN = 5  # git bisect looks at it: 1 is good, 10 is bad, 5 is in the middle
FIRST_BAD = 7

TRAIN = """\
import torch
from torch import nn

RATE = 0.{commit:02}

def train():
    torch.manual_seed(0)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    total = 0.0
    for step in range(2000):
        loss = model(torch.randn(4, 8)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += {added}

train()
"""


def source(commit: int) -> str:
    text = TRAIN.format(commit=commit, added="loss" if commit >= FIRST_BAD else "loss.item()")
    return text.replace("def train():", "def train(:") if commit == BROKEN else text


@pytest.fixture
def git(tmp_path):
    """Run git in the repository, with nobody's configuration."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "HOME": str(tmp_path),
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_NAME": "A" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "a@example.org" for who in ("AUTHOR", "COMMITTER")},
    }

    def git(*args: str) -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    return git


@pytest.mark.slow
def test_git_bisect_run_finds_the_commit_that_brought_the_leak(git, tmp_path):
    git("init", "--quiet")
    commits = {}
    for commit in range(1, COMMITS + 1):
        (tmp_path / "train.py").write_text(source(commit))
        git("add", "train.py")
        git("commit", "--quiet", "-m", f"Change {commit}")
        commits[git("rev-parse", "HEAD")] = commit
    git("bisect", "start", "HEAD", "HEAD~9")

    command = [sys.executable, "-m", "leakcheck", "run", "--bisect", "--steps", "100", "train.py"]
    told = git("bisect", "run", *command)

    assert commits[git("rev-parse", "refs/bisect/bad")] == FIRST_BAD, told
    assert "is the first bad commit" in told
    skipped = git("for-each-ref", "--format=%(objectname)", "refs/bisect/skip-*")
    assert [commits[name] for name in skipped.split()] == [BROKEN]


def test_a_commit_without_the_program_is_skipped(leakcheck):
    status, out, err = leakcheck("run", "--bisect", "no/such/train.py")

    assert (status, out) == (125, "")
    assert err == "leakcheck: no/such/train.py: no such file\n"


@pytest.mark.parametrize(
    "option", ["--tolerence", "--steps=5", "--host-limit=lots", "--json=/no/x"]
)
def test_a_wrong_option_ends_the_bisection_instead_of_blaming_a_commit(leakcheck, tmp_path, option):
    (tmp_path / "train.py").write_text("")

    status, out, _ = leakcheck("run", "--bisect", option, str(tmp_path / "train.py"))

    assert (status, out) == (128, "")  # git stops at 128 and above; 1 to 127 but 125 are bad
