"""The hooks we offer, run by pre-commit itself on a repository made for it, without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pre_commit")

ROOT = Path(__file__).parent.parent
LEAKY = """\
import torch

total = 0
for x in torch.rand(9, 9):
    loss = model(x)
    loss.backward()
    total += loss
"""

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="needs git"),
    pytest.mark.skipif(not (ROOT / ".pre-commit-hooks.yaml").is_file(), reason="needs a checkout"),
]


def git(*args: str, cwd: Path) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *args], cwd=cwd, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path) -> Path:
    """A repository with a file to check."""
    project = tmp_path / "project"
    project.mkdir()
    git("init", "-q", cwd=project)
    (project / "train.py").write_text(LEAKY)
    git("add", ".", cwd=project)
    return project


@pytest.fixture
def hooks(tmp_path) -> Path:
    """A repository with our hooks, run by this environment's leakcheck.

    pre-commit would build an environment from the package index for `language: python`; what is
    under test is the hook, so only that word is another here (`unsupported` is its newer name).
    """
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    (hooks / ".pre-commit-hooks.yaml").write_text(
        text.replace("language: python", "language: system")
    )
    git("init", "-q", cwd=hooks)
    git("add", ".", cwd=hooks)
    git("commit", "-qm", "Hooks", cwd=hooks)
    return hooks


def try_repo(project: Path, hooks: Path, hook: str) -> tuple[int, str]:
    scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PRE_COMMIT_HOME": str(hooks.parent / "home"), "PATH": scripts}
    command = [sys.executable, "-m", "pre_commit", "try-repo", str(hooks), hook, "--all-files"]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_the_hook_fails_a_commit_that_leaks_and_names_the_line(project, hooks):
    status, output = try_repo(project, hooks, "leakcheck")

    assert status == 1, output
    assert "train.py:7:5: undetached-accumulator" in output
    assert (project / "train.py").read_text() == LEAKY


def test_the_hook_passes_a_commit_that_does_not_leak(project, hooks):
    (project / "train.py").write_text(LEAKY.replace("+= loss", "+= loss.item()"))
    git("add", ".", cwd=project)

    status, output = try_repo(project, hooks, "leakcheck")

    assert (status, "Passed" in output) == (0, True), output


def test_the_hook_heeds_the_projects_exclusions(project, hooks):
    (project / "pyproject.toml").write_text('[tool.leakcheck]\nexclude = ["train.py"]\n')
    git("add", ".", cwd=project)

    assert try_repo(project, hooks, "leakcheck")[0] == 0


def test_the_fixing_hook_changes_the_file_and_fails_so_that_one_looks(project, hooks):
    unused = LEAKY.replace("+= loss", "+= 1  # leakcheck: ignore[undetached-accumulator]")
    (project / "train.py").write_text(unused)
    git("add", ".", cwd=project)

    status, output = try_repo(project, hooks, "leakcheck-fix")

    assert (status, "files were modified by this hook" in output) == (1, True), output
    assert (project / "train.py").read_text() == LEAKY.replace("+= loss", "+= 1")


def test_the_hooks_are_valid_and_install_without_torch():
    command = [sys.executable, "-m", "pre_commit", "validate-manifest", ".pre-commit-hooks.yaml"]

    subprocess.run(command, cwd=ROOT, check=True)

    text = (ROOT / "pyproject.toml").read_text()
    required = text[
        text.index("\ndependencies = [") : text.index("[project.optional-dependencies]")
    ]
    assert "torch" not in required
