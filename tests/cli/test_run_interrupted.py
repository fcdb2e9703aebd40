"""Ctrl-C: the report, the program's own traceback, and death by the signal, as without us."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
LOOP = "for step in range(100):\n    bytearray(100)\n"
CTRL_C = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"


def interruptible() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's & ignores it


def ended(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=ENVIRONMENT,
        preexec_fn=interruptible,
        start_new_session=True,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def run(tmp_path):
    """Run a program under leakcheck in a session of its own."""

    def run(source: str, *options: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "program.py").write_text(source)
        command = [sys.executable, "-m", "leakcheck", "run", *options, "program.py"]
        return ended(command, tmp_path)

    return run


@pytest.mark.parametrize("end", [CTRL_C, "raise KeyboardInterrupt\n"])
@pytest.mark.parametrize("options", [(), ("--exit-zero",), ("--bisect",)])
def test_an_interrupted_program_dies_of_the_signal_after_its_report(run, tmp_path, end, options):
    alone = f"import atexit\natexit.register(print, 'at exit')\n{LOOP}{end}"
    done = run(alone, "--to-end", "--json", "report.json", *options)
    without = ended([sys.executable, "program.py"], tmp_path)

    assert done.returncode == without.returncode == -signal.SIGINT
    assert done.stdout == without.stdout == "at exit\n"
    assert done.stderr.startswith("leakcheck: steady in 92 steps of program.py\n")
    assert done.stderr.endswith(f"\n  ended    Ctrl-C\n{without.stderr}")
    written = json.loads((tmp_path / "report.json").read_text())["run"]
    assert (written["ended"], written["exit_status"]) == ("interrupted", 130)


def test_no_frame_of_ours_is_shown_when_ctrl_c_comes_in_the_middle_of_our_work(run):
    source = (
        "import os, signal\n"
        "from leakcheck.runtime.sentinel import Sentinel\n"
        "Sentinel.step = lambda self: os.kill(os.getpid(), signal.SIGINT)\n"
        "def train():\n"
        "    while True:\n"
        "        bytearray(100)\n"
        "train()\n"
    )

    done = run(source, "--to-end")

    shown = re.findall(r'File "(.*)", line \d+, in (.*)', done.stderr)
    assert [(Path(path).name, name) for path, name in shown] == [
        ("program.py", "<module>"),
        ("program.py", "train"),
    ]


def test_the_programs_own_hook_shows_what_interrupted_it(run):
    hook = "import sys\nsys.excepthook = lambda kind, *_: print('hooked', kind.__name__)\n"

    done = run(hook + LOOP + CTRL_C, "--to-end")

    assert (done.returncode, done.stdout) == (-signal.SIGINT, "hooked KeyboardInterrupt\n")
    assert done.stderr.endswith("\n  ended    Ctrl-C\n")


def test_a_hook_that_exits_decides_the_status_as_it_does_without_us(run, tmp_path):
    hook = "import sys\nsys.excepthook = lambda *_: sys.exit(5)\n"

    done = run(hook + LOOP + CTRL_C, "--to-end")

    assert done.returncode == ended([sys.executable, "program.py"], tmp_path).returncode == 5


def test_a_program_that_catches_ctrl_c_ends_as_it_likes(run):
    source = f"import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\n{{}}{LOOP}{{}}"

    caught = "except KeyboardInterrupt:\n    pass\n"
    done = run(source.format(caught, "raise SystemExit(3)\n"), "--to-end")

    assert done.returncode == 3
    assert "Traceback" not in done.stderr


def test_a_second_ctrl_c_ends_the_report(run):
    source = (
        "import os, signal\n"
        "from leakcheck.cli.session import Session\n"
        "Session._print = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
    )

    done = run(source + LOOP + CTRL_C, "--to-end")

    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_loop_of_the_shell_ends_with_the_first_ctrl_c(tmp_path):
    (tmp_path / "program.py").write_text(LOOP + "import os, signal\nos.kill(0, signal.SIGINT)\n")
    loop = f"for i in 1 2 3; do echo $i; {sys.executable} -m leakcheck run program.py; done"

    done = ended(["bash", "-c", loop], tmp_path)

    assert (done.returncode, done.stdout) == (-signal.SIGINT, "1\n")


@pytest.mark.parametrize("command", ["check", "baseline", "isolate", "report", "replay"])
def test_every_command_dies_of_ctrl_c_without_a_word(tmp_path, command):
    source = (
        "import click, os, signal, sys\nfrom leakcheck.cli import main\n"
        "click.Command.invoke = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
        f"sys.argv = ['leakcheck', {command!r}, 'program.py']\nmain()\n"
    )

    done = ended([sys.executable, "-c", source], tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


HANDLES = """
import os, signal
previous = signal.getsignal(signal.SIGTERM)
def save(number, frame):
    print("saved", flush=True)
print(previous, signal.signal(signal.SIGTERM, save))
os.kill(os.getpid(), signal.SIGTERM)
print(signal.signal(signalnum=signal.SIGTERM, handler=previous) is save)
print(signal.getsignal(signal.SIGTERM))
"""


def test_a_program_finds_the_default_handler_of_sigterm_and_may_take_its_place(run, tmp_path):
    (tmp_path / "alone.py").write_text(HANDLES)
    alone = ended([sys.executable, "alone.py"], tmp_path)

    watched = run(HANDLES)

    assert watched.stdout == alone.stdout
    assert "saved" in alone.stdout


def test_sigterm_reports_again_once_the_program_has_given_back_the_default(run, tmp_path):
    kill = "os.kill(os.getpid(), signal.SIGTERM)\n"

    done = run(LOOP + HANDLES + kill, "--to-end", "--json", "report.json")

    assert done.returncode == -signal.SIGTERM
    assert json.loads((tmp_path / "report.json").read_text())["run"]["ended"] == "terminated"


def test_sigterm_is_told_from_a_program_that_ended_well(run, tmp_path):
    kill = "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n"

    done = run(LOOP + kill, "--to-end", "--json", "report.json")

    assert done.returncode == -signal.SIGTERM
    written = json.loads((tmp_path / "report.json").read_text())["run"]
    assert (written["ended"], written["exit_status"]) == ("terminated", 143)
