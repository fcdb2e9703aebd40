"""Real launches of two processes that train together over gloo on the CPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from leakcheck.cli import leakcheck
from leakcheck.runtime.recording import read_recording

torch = pytest.importorskip("torch")
if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("torch was built without gloo", allow_module_level=True)
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked_python")]
LAUNCH = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2")
WATCHED = (*LAUNCH, "-m", "leakcheck", "run", "--record", "records", "train.py")

DDP = """\
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
model = {wrap}(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses = []
for step in range({steps}):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()
    if rank == 1 and {leaky}:
        losses.append(loss)
print(f"rank {{rank}} is done\\n", end="", flush=True)  # at once, or two ranks mix
del model  # as in examples/ddp_train.py
dist.destroy_process_group()
"""


SHARDED = """\
from torch.distributed.fsdp import fully_shard
mesh = dist.init_device_mesh("cpu", (2,))
sharded = lambda model: fully_shard(model, mesh=mesh) or model
rank = dist"""


def script(wrap="DistributedDataParallel", steps=200, leaky=False):
    return DDP.format(wrap=wrap, steps=steps, leaky=leaky)


def report(folder: Path):
    return CliRunner().invoke(leakcheck, ["report", str(folder)])


def test_the_rank_that_grows_is_named_and_the_launch_exits_zero(run, tmp_path):
    done = run(script(leaky=True), *WATCHED)

    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["rank 0 is done", "rank 1 is done"]
    told = report(tmp_path / "records")
    assert told.exit_code == 1
    assert "rank 1 growing; rank 0 steady" in told.output
    assert "losses.append(loss)" in told.output
    assert "ranks diverge, growing on 1 of 2" in told.output


def test_collectives_that_torch_keeps_a_record_of_are_no_leak(run, tmp_path):
    run(script(steps=1300), *WATCHED)  # the record is full after 2,000

    told = report(tmp_path / "records")
    assert "growing" not in told.output


def test_two_clean_ranks_are_steady(run, tmp_path):
    done = run(script(), *WATCHED)

    told = report(tmp_path / "records")
    assert (done.returncode, told.exit_code) == (0, 0), done.stderr
    assert "ranks 0, 1 steady" in told.output


def test_the_status_of_the_program_is_the_launch_s(run):
    # without a process group: torch aborts in one of many exits that follow its end at once
    plain = run("import sys, torch\nsys.exit(7)\n", *LAUNCH, "train.py")
    watched = run("import sys, torch\nsys.exit(7)\n", *WATCHED)

    assert watched.returncode == plain.returncode != 0
    assert "exitcode  : 7" in plain.stderr
    assert "exitcode  : 7" in watched.stderr


def test_a_sharded_model_is_watched_too(run, tmp_path):
    source = script(wrap="sharded", leaky=True).replace("rank = dist", SHARDED)
    plain = run(source.replace("range(200)", "range(3)"), *LAUNCH, "train.py")
    if plain.returncode:
        pytest.skip("this torch does not shard on the CPU")

    done = run(source, *WATCHED)

    assert done.returncode == 0, done.stderr
    told = report(tmp_path / "records")
    assert "note: rank 1 growing; rank 0 " in told.output
    assert "losses.append(loss)" in told.output


def killed(folder: Path, awaited: Callable[[str], bool], *, leaky: bool) -> Path:
    """Kill a watched program once its recording is as awaited; return the recording's path."""
    source = script(wrap="", steps=10**9, leaky=leaky).replace("rank == 1 and ", "")
    source = source.replace('dist.init_process_group("gloo")', "").replace("dist.get_rank()", "0")
    (folder / "train.py").write_text(source)
    command = [sys.executable, "-m", "leakcheck", "run", "--to-end", "--record", "records"]
    path = folder / "records" / "rank-00000.jsonl"
    with subprocess.Popen(
        [*command, "train.py"], cwd=folder, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            deadline_s = time.monotonic() + 120
            while not (path.exists() and awaited(path.read_text())):
                assert time.monotonic() < deadline_s, "the recording does not come to that"
                time.sleep(0.1)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    return path


def test_a_rank_killed_without_warning_leaves_a_recording_that_is_judged(tmp_path):
    path = killed(tmp_path, lambda text: text.count('"sample"') >= 300, leaky=False)

    recording = read_recording(path)
    assert recording.report is None
    assert recording.run.steps >= 300
    told = report(path)
    assert told.exit_code == 0
    assert "the recording was cut off; it is judged by its samples" in told.output


def test_a_leak_that_was_known_before_the_kill_is_named(tmp_path):
    path = killed(tmp_path, lambda text: '"type": "leak"' in text, leaky=True)

    told = report(path)
    assert told.exit_code == 1
    assert told.output.startswith("leakcheck: growing: 1 leak in ")
    assert " steps of train.py" in told.output.splitlines()[0]
    assert "losses.append(loss)" in told.output
    assert "ended    cut off" in told.output
