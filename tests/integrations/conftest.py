from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from leakcheck.model import Report

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


@pytest.fixture(autouse=True)
def one_thread():
    """Two threads a process make a busy machine slow."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Write a script and start it by a command in which {script} stands for its path."""

    def run(source: str, *command: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "train.py").write_text(source, encoding="utf-8")
        return subprocess.run(
            [sys.executable, "-m", *(command or ("leakcheck", "run", "train.py"))],
            cwd=tmp_path,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


@pytest.fixture
def leaking_lines() -> Callable[[Report], list[str]]:
    """Say which source lines a report names first for each of its suspects."""

    def lines(report: Report) -> list[str]:
        return [suspect.locations[0].code.strip() for suspect in report.suspects]

    return lines
