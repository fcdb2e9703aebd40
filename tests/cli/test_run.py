from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("forked_python")
PYTHON = sys.executable  # itself: a fork has imported torch
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


CLEAN_BUT_WRAPS_ERRORS = """\
import torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
try:
    for step in range(50_000):
        optimizer.zero_grad(); model(torch.randn(4, 8)).sum().backward(); optimizer.step()
except BaseException as error:
    raise RuntimeError("training failed") from error
"""
TRAINING = """\
import hashlib, torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(4):
    for batch in range(80):
        loss = model(torch.randn(8, 20)).pow(2).mean()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(epoch, loss.item())
weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
print(hashlib.sha256(weights).hexdigest(), torch.rand(1).item())
"""


def test_output_weights_and_random_state_are_the_same_as_without(run, tmp_path):
    watched = run(TRAINING, "--to-end")
    alone = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )

    assert watched.stdout == alone.stdout
    assert (watched.returncode, alone.returncode) == (0, 0), watched.stderr


def test_a_failing_program_keeps_its_traceback_and_status(run, tmp_path):
    source = "def f(n):\n    for i in range(n):\n        1 / (9 - i)\nf(20)\n"

    watched = run(source)
    alone = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True
    )

    assert watched.returncode == alone.returncode == 1
    assert watched.stderr.startswith(alone.stderr)


def test_the_programs_own_exit_status_passes_through(run):
    assert run("import sys\nfor i in range(60): pass\nsys.exit(7)\n").returncode == 7


def test_a_syntax_error_looks_as_python_prints_it(run, tmp_path):
    watched = run("for i in range(3):\n    x = = 2\n")
    alone = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True
    )

    told = "leakcheck: the program failed (exit status 1) before a step was seen\n"
    assert (watched.returncode, watched.stderr) == (1, alone.stderr + told)


def test_the_program_sees_its_own_arguments_and_is_main(run):
    done = run("import sys\nprint(__name__, sys.argv[1:])\n", args=("--lr", "1", "-m"))

    assert done.stdout == "__main__ ['--lr', '1', '-m']\n"


def test_finally_and_atexit_of_a_stopped_program_run(run):
    source = (
        "import atexit, torch\n"
        "atexit.register(print, 'atexit')\n"
        "val = torch.rand(1)\n"
        "try:\n"
        "    while True:\n"
        "        val += torch.rand(1).requires_grad_()\n"
        "finally:\n"
        "    print('finally')\n"
    )

    done = run(source, "--exit-zero")

    assert done.stdout == "finally\natexit\n"
    assert done.returncode == 0


def test_a_program_that_fails_because_it_was_stopped_is_not_a_failure(run):
    done = run(CLEAN_BUT_WRAPS_ERRORS)

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("leakcheck: steady in")
    assert "Traceback" not in done.stderr


def test_a_program_without_a_loop_gets_one_clear_line(run):
    done = run("print('hello')\n")

    assert done.returncode == 2
    assert done.stderr == (
        "leakcheck: no steps seen in program.py; call leakcheck.Sentinel().step() in its loop, "
        "or pass --every-seconds 1\n"
    )


def test_a_program_whose_children_do_the_work_is_told_where_to_watch(run):
    source = (
        "import os, time\n"
        "enough_s = os.times().user + 1.0\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    exec('while time.process_time() < enough_s: pass')\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
    )

    done = run(source)

    assert done.returncode == 2
    assert done.stderr == (
        "leakcheck: no steps seen in program.py: its child processes did most of the work, and "
        "what `subprocess` starts is not watched; use leakcheck.Sentinel() in the "
        "function that they run, or start them with torchrun -m leakcheck run\n"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["missing.py"], "leakcheck: missing.py: no such file\n"),
        (["."], "leakcheck: .: a folder without __main__.py\n"),
        (["-m", "no.such.module"], "leakcheck: no module named no.such.module"),
        ([], "leakcheck: name a script to run, or a module with -m\n"),
        (["--stps", "60", __file__], "leakcheck: No such option '--stps'."),
        (["--json", "no/folder/x.json", __file__], "leakcheck: --json no/folder/x.json: No such"),
    ],
)
def test_wrong_usage_is_one_line_and_status_two(tmp_path, options, message):
    done = subprocess.run(
        [sys.executable, "-m", "leakcheck", "run", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert "Traceback" not in done.stderr


def test_a_module_runs_as_python_m_would(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "__main__.py").write_text(
        "from . import part\nimport sys\nprint(__name__, __package__, sys.argv[1:], part.total)\n"
    )
    (tmp_path / "pkg" / "part.py").write_text("total = 0\nfor i in range(100): total += i\n")

    done = subprocess.run(
        [sys.executable, "-m", "leakcheck", "run", "-m", "pkg", "--steps", "x"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.stdout == "__main__ pkg ['--steps', 'x'] 4950\n"
    assert done.returncode == 0, done.stderr


def test_a_plain_script_that_keeps_everything_is_growing_without_torch(run):
    done = run("kept = []\nwhile True:\n    kept.append(bytearray(2000))\n")

    assert done.returncode == 1
    assert "leakcheck: growing: 1 leak" in done.stderr
    assert "global `kept`" in done.stderr


def test_the_host_limit_stops_the_program_with_a_report(run):
    done = run("while True:\n    pass\n", "--host-limit", "1 MiB")

    assert done.returncode == 2
    assert "over the limit of 1.0 MiB" in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_page_that_cannot_be_written_costs_one_line_and_the_status(run):
    done = run("for i in range(100):\n    pass\n", "--html", "/dev/full", "--exit-zero")

    first, second, *_ = done.stderr.splitlines()
    assert first == "leakcheck: /dev/full: cannot be written: no space left on device"
    assert " steps of program.py" in second
    assert done.returncode == 2


@pytest.mark.parametrize("option", ["--json", "--html", "--refs"])
def test_no_report_is_written_over_a_program(run, tmp_path, option):
    (tmp_path / "other.py").write_text("kept = 1\n")

    done = run("for i in range(100):\n    pass\n", option, "other.py")

    assert done.stderr == f"leakcheck: {option} other.py: this would overwrite a program\n"
    assert (done.returncode, (tmp_path / "other.py").read_text()) == (2, "kept = 1\n")


def test_leaving_by_os_exit_still_reports(run):
    done = run("import os\nfor i in range(100): pass\nprint('out', flush=True)\nos._exit(0)\n")

    assert done.stdout == "out\n"
    assert "leakcheck: steady in" in done.stderr
    assert done.returncode == 0


def test_sigterm_reports_and_dies_of_it(tmp_path):
    (tmp_path / "program.py").write_text(
        "import time\nprint('ready', flush=True)\nn = 0\n"
        "while n < 10**6:\n    n += 1\n    time.sleep(0.01)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "leakcheck", "run", "program.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.terminate()

    _, stderr = process.communicate(timeout=60)

    assert process.returncode == -signal.SIGTERM
    assert "leakcheck:" in stderr


def test_ctrl_c_ends_the_program_with_the_report_so_far(tmp_path):
    (tmp_path / "program.py").write_text(
        "import time\nkept = []\nn = 0\n"
        "while n < 10**6:\n    n += 1\n    kept.append(bytearray(5000))\n    time.sleep(0.001)\n"
        "    if n == 100: print('ready', flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "leakcheck", "run", "--to-end", "program.py"],
        cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's & ignores it
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)

    _, stderr = process.communicate(timeout=60)

    report, _, trace = stderr.partition("Traceback (most recent call last):\n")
    program = tmp_path / "program.py"
    assert process.returncode == -signal.SIGINT
    assert report.startswith("leakcheck: ")
    assert report.endswith("  ended    Ctrl-C\n")
    assert trace.startswith(f'  File "{program}", line ')
    assert trace.endswith("\nKeyboardInterrupt\n")
    assert trace.count("File") == 1


def test_without_torch_installed_host_memory_is_watched_all_the_same(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('there is no torch here')\n")
    (tmp_path / "program.py").write_text(
        "kept = []\nwhile True:\n    kept.append(bytearray(2000))\n"
    )
    command = [PYTHON, "-m", "leakcheck", "run", "--json", "report.json", "program.py"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    report = json.loads((tmp_path / "report.json").read_text())
    assert done.returncode == 1, done.stderr
    assert report["run"]["torch"] is None
    assert report["suspects"][0]["holder"] == "global `kept`"


def test_a_run_killed_in_the_middle_leaves_a_readable_recording(run, tmp_path):
    source = "import os\nfor i in range(300):\n    if i == 200: os.kill(os.getpid(), 9)\n"

    done = run(source, "--record", "recorded")

    from leakcheck.runtime.recording import read_recordings

    (recording,) = read_recordings(tmp_path / "recorded")
    assert done.returncode == -signal.SIGKILL
    assert recording.report is None
    assert recording.run.steps > 150


def test_worker_processes_of_both_kinds_run_untouched(run):
    source = (
        "import multiprocessing as mp\n"
        "def square(x):\n"
        "    total = 0\n"
        "    for i in range(x): total += x\n"
        "    return total\n"
        "if __name__ == '__main__':\n"
        "    for kind in ('fork', 'spawn'):\n"
        "        with mp.get_context(kind).Pool(2) as pool:\n"
        "            print(pool.map(square, range(5)))\n"
    )

    done = run(source)

    assert done.stdout == "[0, 1, 4, 9, 16]\n" * 2
