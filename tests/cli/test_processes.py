"""A trial in a fork is what it is in a fresh process; where it may not be, nothing is forked."""

from __future__ import annotations

import textwrap

import pytest

from leakcheck.cli.forkserver import Opening
from leakcheck.cli.processes import Processes, processes
from leakcheck.cli.trials import Trials
from leakcheck.report.reasons import said

PROGRAM = """\
import atexit, os, random, sys
import helper

class Last:
    def __del__(self): print("deleted")

last = Last()
atexit.register(print, "at exit")
print(__name__, sys.argv, sys.path[0] == os.path.dirname(os.path.abspath(__file__)))
print(sys.modules["__main__"].__dict__ is globals(), sys.stdin.read() == "", random.random())
print(helper.imported_as, os.getsid(0) == os.getpid(), sorted(os.listdir("/proc/self/fd"))[:3])
for step in range(20):
    pass
sys.stderr.write("told")
sys.exit(3)
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Write a program, beside an installed module that it imports; returns how it is run."""
    installed, folder = tmp_path / "installed", tmp_path / "project"
    installed.mkdir()
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(installed), prepend=":")
    monkeypatch.chdir(folder)

    def program(text: str, helper: str = ""):
        (installed / "helper.py").write_text(f"imported_as = __name__\n{textwrap.dedent(helper)}")
        (folder / "train.py").write_text(text)
        return Opening(("train.py", "--lr", "1"))

    return program


def ended(opening: Opening, each: Processes, folder, timeout_s: float = 60.0):
    folder.mkdir()
    trials = Trials(opening.args, None, 30, 1024, timeout_s, 20.0, folder, lambda count: None, each)
    return trials.run({}, 30)


def test_a_fork_prints_and_ends_as_a_fresh_process_does(program, tmp_path):
    opening = program(PROGRAM)
    with processes(opening, 60) as forked:
        assert forked.forks
        first, second = (ended(opening, forked, tmp_path / name) for name in ("one", "two"))
    fresh = ended(opening, Processes(None), tmp_path / "fresh")

    assert fresh.results.stdout.splitlines()[:2] == [
        "__main__ ['train.py', '--lr', '1'] True",
        "True True 0.8444218515250481",
    ]
    assert fresh.results.stdout.splitlines()[-2:] == ["at exit", "deleted"]
    assert [each.results for each in (first, second)] == [fresh.results] * 2
    assert [each.status for each in (first, second)] == [fresh.status] * 2 == [3, 3]


@pytest.mark.parametrize(
    "helper",
    [
        "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()",
        "raise ImportError",
        "import os; os._exit(4)",
    ],
)
def test_what_is_not_safe_to_fork_is_run_in_a_fresh_process(program, tmp_path, helper):
    with processes(program("import helper\n", helper), 60) as each:
        assert not each.forks


def test_a_module_of_the_users_that_an_installed_one_imports_is_not_shared(program, tmp_path):
    (tmp_path / "project" / "plugin.py").write_text("")

    with processes(program("import helper\n", "import plugin\n"), 60) as each:
        assert not each.forks


def test_a_fork_that_hangs_is_ended_and_the_next_one_runs(program, tmp_path):
    waits = program("import time, sys\nif len(sys.argv) == 3: time.sleep(99)\nprint('ran')\n")
    with processes(waits, 60) as each:
        hangs = ended(waits, each, tmp_path / "one", timeout_s=1.0)
        runs = ended(Opening(("train.py",)), each, tmp_path / "two")

    assert hangs.status != 0
    assert runs.results.stdout == "ran\n"


def test_a_fork_that_is_killed_tells_so(program, tmp_path):
    opening = program("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    with processes(opening, 60) as each:
        failure = ended(opening, each, tmp_path / "one").failure
        assert said(failure) == "the program was killed by SIGKILL"
