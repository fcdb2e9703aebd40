from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[1] / "programs" / "children"


@pytest.fixture
def program(tmp_path):
    """Copy a program to where it runs, so that reports name it by its name alone."""

    def copied(name: str) -> str:
        shutil.copy(PROGRAMS / name, tmp_path)
        return name

    return copied


@pytest.fixture
def watched_children(leakcheck_run, program, tmp_path):
    """Run a program with its arguments; returns how it ended, and its report."""

    def run(name: str, *args: str, options: tuple[str, ...] = ()):
        asked = ("--json", "report.json", *options)
        done = leakcheck_run(*asked, program(name), *args, folder=tmp_path)
        return done, json.loads((tmp_path / "report.json").read_text())

    return run
