"""Where a program is found, how it ends, and who can read the report: as without leakcheck."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
EVALUATOR = """
import torch

class Evaluator:
    def __init__(self):
        self.model = torch.nn.Linear(64, 64)
        self.seen = []

    def run(self, batches):
        for _ in range(batches):
            y = self.model(torch.randn(8, 64))
            self.seen.append(y)
"""


@pytest.mark.parametrize("form", ["script", "module"])
def test_no_folder_comes_before_those_of_the_environment_if_python_is_told_so(tmp_path, form):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "helper.py").write_text("place = 'elsewhere'\n")
    (tmp_path / "helper.py").write_text("place = 'beside the program'\n")
    (tmp_path / "elsewhere" / "program.py").write_text("import helper\nprint(helper.place)\n")
    path = os.pathsep.join([str(tmp_path / "elsewhere"), os.environ.get("PYTHONPATH", "")])
    environment = {**ENVIRONMENT, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    program = ["elsewhere/program.py"] if form == "script" else ["-m", "program"]

    outputs = [
        subprocess.run(
            [sys.executable, *ours, *program],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        ).stdout
        for ours in ([], ["-m", "leakcheck", "run"])
    ]

    assert outputs[0] == outputs[1] != ""


def test_loops_of_the_projects_package_are_steps_wherever_the_script_is(tmp_path):
    for name in ("tools", "package"):
        (tmp_path / name).mkdir()
    (tmp_path / "setup.py").touch()
    (tmp_path / "package" / "evaluator.py").write_text(EVALUATOR)
    script = "from package.evaluator import Evaluator\nEvaluator().run(600)\n"
    (tmp_path / "tools" / "evaluate.py").write_text(script)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    run = [sys.executable, "-m", "leakcheck", "run", "--json", "report.json", "tools/evaluate.py"]

    subprocess.run(run, cwd=tmp_path, env={**ENVIRONMENT, "PYTHONPATH": path}, check=False)

    report = json.loads((tmp_path / "report.json").read_text())
    (suspect,) = report["suspects"]
    place = suspect["locations"][0]
    assert (os.path.basename(place["path"]), place["line"]) == ("evaluator.py", 12)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
def test_a_report_that_nobody_can_read_costs_neither_the_status_nor_the_files(tmp_path, stderr):
    (tmp_path / "program.py").write_text("for step in range(2000):\n    bytearray(100)\n")
    command = f"{sys.executable} -m leakcheck run --json report.json program.py {stderr}"

    done = subprocess.run(command, shell=True, cwd=tmp_path, env=ENVIRONMENT, capture_output=True)

    assert (done.returncode, done.stdout) == (0, b"")
    assert json.loads((tmp_path / "report.json").read_text())["verdict"] == "steady"


@pytest.mark.parametrize("status", [0, 1, 7])
def test_the_status_of_os_exit_is_kept_and_answers_git_bisect(run, status):
    source = f"import os\nfor step in range(2000):\n    bytearray(100)\nos._exit({status})\n"

    assert run(source, "--to-end").returncode == status
    assert run(source, "--to-end", "--bisect").returncode == (125 if status else 0)


@pytest.mark.usefixtures("forked_python")
@pytest.mark.parametrize("error", ["MemoryError", "torch.OutOfMemoryError"])
def test_what_grows_until_memory_is_exhausted_is_named_though_a_condition_guards_it(
    run, tmp_path, error
):
    source = (
        "import torch\n"
        "model = torch.nn.Linear(8, 8)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "kept = []\n"
        "for step in range(300):\n"
        "    model(torch.randn(4, 8)).sum().backward(); optimizer.step()\n"
        "    if step < 1000:\n"
        "        kept.append(torch.ones(1 << 14))\n"
        f"raise {error}('no more')\n"
    )

    done = run(source, "--json", "report.json")
    report = json.loads((tmp_path / "report.json").read_text())

    assert (done.returncode, report["verdict"]) == (1, "growing")
    assert report["suspects"][0]["holder"] == "global `kept`"
    assert report["run"]["stopped_by"] == "running out of memory"


# the first are not counted: they tell which loop it is
STEPS = "for step in range({steps}):\n    bytearray(100)\n"


def ending(folder) -> tuple[str, int, str]:
    run = json.loads((folder / "report.json").read_text())["run"]
    return run["ended"], run["exit_status"], run["stopped_by"]


@pytest.mark.parametrize(
    ("end", "status", "ended", "last"),
    [
        ("", 0, ("finished", 0, ""), ""),
        ("import sys; sys.exit(3)", 3, ("failed", 3, ""), "the program failed (exit status 3)"),
        ("import sys; sys.exit('no data')", 1, ("failed", 1, ""),
         "the program failed (exit status 1)"),
        ("import os; os._exit(256 + 9)", 9, ("failed", 9, ""),
         "the program failed (exit status 9)"),
        ("1 / 0", 1, ("failed", 1, "an error"), "the program failed (exit status 1)"),
    ],
)  # fmt: skip
def test_a_program_that_fails_keeps_its_status_and_is_told_from_one_that_grows(
    run, tmp_path, end, status, ended, last
):
    done = run(STEPS.format(steps=100) + end, "--json", "report.json", "--to-end")
    footer = done.stderr[done.stderr.index("watched 92 steps") :].splitlines()

    assert done.returncode == status
    assert ending(tmp_path) == ended
    assert ([""] + [line for line in footer if "failed" in line])[-1] == last
    assert not last or footer[-1] == last


def test_a_program_that_grows_and_is_stopped_has_not_failed(run, tmp_path):
    done = run(
        "kept = []\nwhile True:\n    kept.append(bytearray(2000))\n", "--json", "report.json"
    )

    assert done.returncode == 1
    assert ending(tmp_path) == ("stopped", 0, "the verdict is certain")
    assert "failed" not in done.stderr


def test_a_program_that_fails_before_its_first_step_says_so_last(run):
    done = run("import sys\nsys.exit(2)\n")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "leakcheck: the program failed (exit status 2) before a step was seen\n"


@pytest.mark.parametrize(
    "rid",
    [
        "import io, sys; sys.stderr = io.StringIO()",
        "import sys; sys.stderr = None",
        "import sys; sys.stderr.close()",
        "import os; os.close(2)",
        "import os; os.dup2(os.open('log.txt', os.O_WRONLY | os.O_CREAT), 2)",
    ],
)
def test_the_report_comes_out_whatever_the_program_does_with_standard_error(run, tmp_path, rid):
    done = run(f"{rid}\n{STEPS.format(steps=100)}", "--to-end")

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("leakcheck: steady in 92 steps of program.py\n")


def test_a_report_never_goes_into_a_file_that_the_program_opened_under_our_number(run, tmp_path):
    source = (
        "import os\nos.closerange(2, 4096)\n"
        "files = [os.open('data', os.O_WRONLY | os.O_CREAT | os.O_APPEND) for _ in range(300)]\n"
    )

    done = run(source + STEPS.format(steps=100), "--to-end", "--record", "recorded")

    assert done.returncode == 0
    assert (tmp_path / "data").read_text() == ""


def test_a_child_that_outlives_the_program_does_not_keep_the_readers_of_the_report_waiting(run):
    source = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.closerange(0, 3)\n"  # as a daemon does
        "    time.sleep(600)\n"
    )

    done = run(source + STEPS.format(steps=100), "--to-end")  # reads until the pipe is closed

    assert done.stderr.startswith("leakcheck: steady in 92 steps")


STEPS_IN_TASKS = """
import asyncio
import torch

async def answer(model):
    for _ in range(4):
        model(torch.randn(2, 4))
        await asyncio.sleep(0)

async def main():
    model = torch.nn.Linear(4, 4)
    for turn in range(3000):
        await asyncio.gather(answer(model), answer(model))
        {also}

asyncio.run(main())
"""


@pytest.mark.usefixtures("forked_python")
def test_asyncio_tells_nothing_of_the_tasks_that_the_stop_ended(run):
    done = run(STEPS_IN_TASKS.format(also=""))

    assert (done.returncode, done.stdout) == (0, "")
    assert "Traceback" not in done.stderr
    assert "never retrieved" not in done.stderr


@pytest.mark.usefixtures("forked_python")
def test_asyncio_tells_of_a_task_that_failed_by_itself(run):
    fails = "turn == 9 and asyncio.ensure_future(answer(None))"

    assert "exception was never retrieved" in run(STEPS_IN_TASKS.format(also=fails)).stderr


@pytest.mark.usefixtures("forked_python")
def test_a_queue_that_nobody_reads_does_not_keep_a_run_from_ending(run):
    done = run(
        "import multiprocessing, torch\n"
        "model = torch.nn.Linear(16, 8)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.01)\n"
        "queue = multiprocessing.Queue()\n"
        "for step in range(600):\n"
        "    loss = model(torch.randn(4, 16)).pow(2).mean()\n"
        "    optimizer.zero_grad(); loss.backward(); optimizer.step()\n"
        "    queue.put([0.0] * 200)\n"
        "queue.cancel_join_thread()\n"
        "print('the end')\n"
    )

    assert done.stdout == "the end\n"  # where it is stopped, Python would wait for a reader
    assert done.returncode == 1
    assert "`Queue._buffer`, from global `queue`" in " ".join(done.stderr.split())


@pytest.mark.usefixtures("forked_python")
def test_a_child_that_waits_for_the_program_does_not_keep_a_run_from_ending(run):
    done = run(
        "import multiprocessing, torch\n"
        "if __name__ == '__main__':\n"
        "    ours, theirs = multiprocessing.Pipe()\n"
        "    context = multiprocessing.get_context('fork')\n"
        "    child = context.Process(target=theirs.recv)\n"
        "    child.start()\n"
        "    model = torch.nn.Linear(16, 8)\n"
        "    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)\n"
        "    losses = []\n"
        "    for step in range(200):\n"
        "        loss = model(torch.randn(4, 16)).pow(2).mean()\n"
        "        optimizer.zero_grad(); loss.backward(); optimizer.step()\n"
        "        losses.append(loss)\n"
        "    ours.send('the end')\n"
        "    child.join()\n"
        "    print('joined')\n"
    )

    assert (done.stdout, done.returncode) == ("joined\n", 1)
    assert "growing: 1 leak in 200 steps" in done.stderr
