"""Where a program is found, how it ends, and who can read the report: as without leakcheck."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


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
        "    if step >= 10:\n"
        "        kept.append(torch.ones(1 << 14))\n"
        f"raise {error}('no more')\n"
    )

    done = run(source, "--json", "report.json")
    report = json.loads((tmp_path / "report.json").read_text())

    assert (done.returncode, report["verdict"]) == (1, "growing")
    assert report["suspects"][0]["holder"] == "global `kept`"
    assert report["run"]["stopped_by"] == "running out of memory"
