"""What threads and handlers of signals do beside leakcheck comes out as it does alone.

A handful of the programs and a short form of the stress of tests/benchmarks/harm, which has both
at full length. A failure by chance is a failure: none is repeated.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HARM = Path(__file__).parents[1] / "benchmarks" / "harm"
LOOKS = 14  # each of the seven ways twice
SHORTER = {"interrupts_caught": ("60",)}
RISKIEST = (
    "prefetch_queue",
    "sets_and_strings",
    "generator_shared",
    "nonlocal_flag",
    "locals_as_config",
    "collector_off",
    "own_tracers",
    "trainer_thread",
    "alarms_in_collections",
    "interrupts_caught",
    "failing_imports",
)

pytestmark = pytest.mark.slow


def alone(python: str, *command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [python, *command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("name", RISKIEST)
def test_a_program_does_beside_a_closer_look_what_it_does_alone(
    forked, leakcheck_run, tmp_path, name
):
    pytest.importorskip("torch")
    program = (str(HARM / "programs" / f"{name}.py"), *SHORTER.get(name, ()))

    expected = alone(forked.python, *program, folder=tmp_path)
    options = ("--to-end", "--exit-zero")
    watched = leakcheck_run(*options, *program, folder=tmp_path, whole_heap=True)

    assert (watched.stdout, watched.returncode) == (expected.stdout, expected.returncode)


def test_looks_at_the_heap_disturb_no_thread_and_no_thread_disturbs_them(tmp_path):
    pytest.importorskip("torch")

    done = alone(sys.executable, str(HARM / "stress.py"), "--looks", str(LOOKS), folder=tmp_path)

    assert done.stdout.splitlines()[-1:] == ["0 errors"], done.stdout + done.stderr
    assert done.returncode == 0
