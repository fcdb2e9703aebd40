from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("forked_python")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
QUICK = ("--steps", "200")

TRAINING = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

{globals}

class Rows(Dataset):
    def __init__(self):
        self.rows = torch.randn(160, 8)
        self.seen = []

    def __len__(self):
        return 160

    def __getitem__(self, index):
        row = self.rows[index] + torch.randn(8)
        {in_dataset}
        return row, row.sum()

def train():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    loader = DataLoader(Rows(), batch_size=4)
    for epoch in range(100):
        for x, y in loader:
            loss = (model(x).squeeze(1) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            {in_step}

train()
"""
LOGGER = """\
class LossLogger:
    def __init__(self):
        self.losses = []

    def write(self, loss):
        self.losses.append(loss)

logger = LossLogger()
"""


def training(globals: str = "", in_dataset: str = "", in_step: str = "") -> str:
    return TRAINING.format(globals=globals, in_dataset=in_dataset, in_step=in_step)


@pytest.fixture
def isolate(tmp_path):
    """Write a program and isolate its leak; returns the finished process."""

    def isolate(source: str, *options: str):
        (tmp_path / "program.py").write_text(source)
        command = [sys.executable, "-m", "leakcheck", "isolate", *options, "program.py"]
        return subprocess.run(
            command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=300
        )

    return isolate


def verdicts(folder) -> dict[str, str]:
    written = json.loads((folder / "out.json").read_text())
    assert written["format"] == 1
    return {run["stage"]: run["verdict"] for run in written["stages"]}


def conclusion(folder) -> str:
    told: str = json.loads((folder / "out.json").read_text())["conclusion"]["said"]
    return told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "expected", "told"),
    [
        (
            training(in_dataset="self.seen.append(row.clone())"),
            ("growing", "steady", "growing", "does not apply"),
            "leaks with data only: the loader, the dataset or its transforms keep what they make; "
            "held by attribute `Rows.seen`",
        ),
        (
            training(globals="losses = []", in_step="losses.append(loss)"),
            ("steady", "growing", "growing", "does not apply"),
            "stops with data only, grows with a fixed batch and without backward: the forward pass "
            "or the loop keeps something of every step; held by global `losses`",
        ),
        (
            training(globals=LOGGER, in_step="logger.write(loss)"),
            ("steady", "growing", "growing", "steady"),
            "stops without logging and callbacks: one of them keeps what it is given; "
            "held by attribute `LossLogger.losses`",
        ),
        (
            training(
                globals="cache = {}",
                in_step="cache[tuple(x.flatten().tolist())] = x.clone()",
            ),
            ("steady", "steady", "growing", "does not apply"),
            "stops with a fixed batch: it grows with the data seen, as a cache keyed by data or a "
            "list of batches does; held by global `cache`",
        ),
    ],
    ids=["dataset", "graph", "logger", "cache"],
)
def test_the_part_that_leaks_is_found(isolate, tmp_path, source, expected, told):
    done = isolate(source, *QUICK, "--json", "out.json")

    found = verdicts(tmp_path)
    assert tuple(found.values()) == ("growing", *expected), done.stdout
    assert conclusion(tmp_path).startswith(told)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.slow
def test_what_backward_makes_is_told_apart(isolate, tmp_path):
    source = training(
        globals="kept = []",
        in_step="kept.extend(p.grad.clone() for p in model.parameters() if p.grad is not None)",
    )

    done = isolate(source, *QUICK, "--stage", "no-backward", "--json", "out.json")

    assert verdicts(tmp_path) == {"as-it-is": "growing", "no-backward": "steady"}, done.stdout
    assert conclusion(tmp_path).startswith("leaks only with backward or the optimizer")


def test_a_program_that_holds_steady_runs_once(isolate, tmp_path):
    done = isolate(training(), *QUICK, "--json", "out.json")

    assert verdicts(tmp_path) == {"as-it-is": "steady"}, done.stdout
    assert done.stdout.startswith("leakcheck: isolated program.py in 1 run\n")
    assert "there is nothing to isolate" in done.stdout
    assert done.returncode == 0


def test_a_loop_without_a_loader_is_told_so(isolate, tmp_path):
    source = (
        "import torch\n"
        "model = torch.nn.Linear(4, 1)\n"
        "total = 0\n"
        "while True:\n"
        "    loss = model(torch.randn(2, 4)).mean()\n"
        "    total += loss\n"
        "    loss.backward()\n"
    )

    done = isolate(source, *QUICK, "--json", "out.json")

    assert tuple(verdicts(tmp_path).values()) == (
        "growing", "does not apply", "does not apply", "growing", "does not apply",
    ), done.stdout  # fmt: skip
    assert conclusion(tmp_path).startswith("grows without backward: the forward pass or the loop")
    assert "no torch DataLoader feeds the steps" in done.stdout


def test_a_program_without_torch_gets_no_guess(isolate, tmp_path):
    done = isolate(
        "kept = []\nwhile True:\n    kept.append(bytearray(2000))\n", *QUICK, "--json", "out.json"
    )

    assert set(list(verdicts(tmp_path).values())[1:]) == {"does not apply"}, done.stdout
    assert conclusion(tmp_path).startswith(
        "unclear where: no stage told more than the unchanged run; held by global `kept`"
    )


def test_a_stage_the_program_fails_in_is_unclear_and_says_why(isolate, tmp_path):
    source = training(
        globals="kept = []",
        in_step="kept.append(model[0].weight.grad.clone())",
    )

    done = isolate(source, *QUICK, "--stage", "no-backward", "--json", "out.json")

    assert verdicts(tmp_path) == {"as-it-is": "growing", "no-backward": "unclear"}, done.stdout
    assert "the program failed: AttributeError: 'NoneType'" in " ".join(done.stdout.split())
    assert "last output of no-backward:\n" in done.stderr


def test_the_output_of_the_program_stays_in_its_log(isolate):
    done = isolate("import sys\nprint('hello')\nsys.exit('bad luck')\n")

    assert "hello" not in done.stdout
    assert "unclear: the unchanged run gives no verdict: the program failed" in done.stdout
    assert done.stderr == "\nlast output of as-it-is:\n  hello\n  bad luck\n"
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["missing.py"], "leakcheck: missing.py: no such file\n"),
        (["-m", "no.such.module"], "leakcheck: no module named no.such.module"),
        ([], "leakcheck: name a script to run, or a module with -m\n"),
        (["--stps", "60", __file__], "leakcheck: No such option '--stps'."),
        (["--json", "no/folder/x.json", __file__], "leakcheck: --json no/folder/x.json: No such"),
        (["--stage", "nothing", __file__], "leakcheck: Invalid value for '--stage'"),
    ],
)
def test_wrong_usage_is_one_line_and_status_two(tmp_path, options, message):
    done = subprocess.run(
        [sys.executable, "-m", "leakcheck", "isolate", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


def test_one_of_many_ranks_is_refused(monkeypatch, leakcheck):
    monkeypatch.setenv("WORLD_SIZE", "2")

    status, out, err = leakcheck("isolate", __file__)

    assert (status, out) == (2, "")
    assert err == (
        "leakcheck: isolate watches one process: run it without torchrun or another launcher\n"
    )


def test_a_stage_over_its_time_is_stopped(isolate):
    done = isolate("import time\nwhile True:\n    time.sleep(1)\n", "--timeout", "3")

    assert "stopped after 3 s (--timeout)" in done.stdout
    assert done.returncode == 2


def test_ctrl_c_ends_the_running_stage(tmp_path):
    (tmp_path / "program.py").write_text(
        "import os, time\n"
        "open('pid.part', 'w').write(str(os.getpid()))\nos.rename('pid.part', 'pid')\n"
        "while True:\n    time.sleep(0.1)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "leakcheck", "isolate", "program.py"],
        cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's & ignores it
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "pid").exists():
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)

    _, stderr = process.communicate(timeout=60)

    assert (process.returncode, stderr) == (-signal.SIGINT, "")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
