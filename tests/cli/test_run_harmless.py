"""A program under leakcheck prints, computes, warns and ends as it does alone.

Most of the programs leak, so that everything leakcheck ever does to a process is done to them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent.parent / "runtime" / "programs" / "harmless"
PLAIN = sorted(PROGRAMS.glob("plain_*.py"))
TRAINING = sorted(set(PROGRAMS.glob("*.py")) - set(PLAIN))
REPORT = re.compile(
    r"^leakcheck: (growing|steady|unclear|the program failed)\b.*", re.MULTILINE | re.DOTALL
)
ADDRESS = re.compile(r"0x[0-9a-f]{8,}")


def ended(command: list[str], program: Path, folder: Path) -> tuple[str, str, int]:
    """Run a program; returns stdout, stderr without our report and addresses, and the status."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, str(program)],
        cwd=folder,
        env=environment,
        input="given\n",
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    return done.stdout, ADDRESS.sub("0x", REPORT.sub("", done.stderr)), done.returncode


def assert_the_same_alone_and_watched(
    program: Path, folder: Path, python: str, whole_heap: str
) -> None:
    alone = ended([python], program, folder)
    watching = [whole_heap, "-m", "leakcheck", "run", "--to-end", "--exit-zero"]
    watched = ended(watching, program, folder)

    assert watched == alone


@pytest.mark.parametrize("program", PLAIN, ids=lambda program: program.stem)
def test_a_program_ends_as_it_does_alone(program, tmp_path):
    assert_the_same_alone_and_watched(program, tmp_path, sys.executable, sys.executable)


@pytest.mark.slow
@pytest.mark.parametrize("program", TRAINING, ids=lambda program: program.stem)
def test_a_training_computes_what_it_does_alone(forked, program, tmp_path):
    pytest.importorskip("torch")
    if program.stem == "inductor" and shutil.which("g++") is None:
        pytest.skip("inductor compiles C++")

    assert_the_same_alone_and_watched(program, tmp_path, forked.python, forked.python_whole_heap)
