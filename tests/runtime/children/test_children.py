"""Trainings in child processes are watched there, and told in one report."""

from __future__ import annotations

import json
import re

import pytest

from leakcheck.runtime.recording import read_recordings

pytest.importorskip("torch")
pytestmark = pytest.mark.slow
SPAWNED, HOGWILD = ("SpawnProcess-1", "SpawnProcess-2"), ("Process-1", "Process-2")
FORKED = ("fork 1", "fork 2")
# arguments -> the processes of the leaking program that leak, the line and the holder
LEAKS = {
    ("spawned.py",): (SPAWNED, 20, "local `losses` in train()"),
    ("ddp.py",): (("rank 1",), 25, "local `losses` in train()"),
    ("hogwild.py", "fork"): (HOGWILD, 20, "global `losses`"),
    ("hogwild.py", "spawn"): (HOGWILD, 20, "global `losses`"),
    ("forked.py",): (FORKED, 22, "global `losses`"),
    ("forked.py", "exit"): (FORKED, 22, "global `losses`"),
    ("pool.py", "executor", "forkserver"): (("ForkServerProcess-1",), 23, "global `losses`"),
    ("pool.py", "left", "fork"): (("ForkProcess-1",), 23, "global `losses`"),
    ("pool.py", "pool", "fork"): (("ForkPoolWorker-1",), 23, "global `losses`"),
}
OF_DDP = """\
leakcheck: growing: 1 leak in 150 steps of ddp.py leaks

leak (graph): the autograd graph of past steps stays reachable
  what     Tensor (scalar) float32, keeping Nodes of past steps: MeanBackward0,
           PowBackward0, AddmmBackward0, TBackward0
  grows    4 Nodes a step, * KiB a step
  in       rank 1
  line     ddp.py:25  losses.append(loss if leaks and rank == 1 else
           loss.item())
  line     ddp.py:21  loss = model(torch.randn(32, 20)).square().mean()
  line     ddp.py:19  losses = []
  held by  local `losses` in train()
           local `losses` in train()
           ╰→ [x]: Tensor (scalar) float32
              ~~~
  fix      store .detach() of the tensor, or .item() for a number
  rule     undetached-collection, proved by this run at ddp.py:25
  id       68f6bacf33f0
"""


@pytest.mark.parametrize("arguments", LEAKS, ids=" ".join)
def test_a_leak_in_children_is_told_once_with_line_holder_and_processes(
    watched_children, arguments
):
    processes, line, holder = LEAKS[arguments]

    done, report = watched_children(*arguments, "leaks")

    (leak,) = report["suspects"]
    told = (leak["kind"], leak["locations"][0]["line"], leak["holder"], tuple(leak["processes"]))
    assert (done.returncode, report["verdict"]) == (1, "growing"), done.stderr
    assert told == ("graph", line, holder, processes)
    assert leak["objects_per_step"] == pytest.approx(4.0)
    assert leak["rules"] == ["undetached-collection"]
    assert done.stdout.startswith("trained")


@pytest.mark.parametrize("arguments", LEAKS, ids=" ".join)
def test_the_same_training_without_the_leak_is_steady(watched_children, arguments):
    done, report = watched_children(*arguments)

    assert (done.returncode, report["verdict"], report["reason"]) == (0, "steady", None), (
        done.stderr
    )
    assert (report["suspects"], report["run"]["ended"]) == ([], "finished")
    assert done.stdout.startswith("trained")


def test_the_report_of_ranks_that_a_script_launches_is_whole(
    watched_children, leakcheck_run, tmp_path
):
    options = ("--record", "recorded", "--html", "page.html")

    done, report = watched_children("ddp.py", "leaks", options=options)

    text = re.sub(r"[\d.]+ KiB a step", "* KiB a step", done.stderr)
    assert text.startswith(f"{OF_DDP}\n")
    assert "\nnote: rank 1 growing; rank 0 steady\nnote: ranks diverge" in text
    ranks = [
        (each["run"]["rank"], each["run"]["process"], each["verdict"]) for each in report["ranks"]
    ]
    assert ranks == [(0, SPAWNED[0], "steady"), (1, SPAWNED[1], "growing")]
    recorded = {each.run.process: each for each in read_recordings(tmp_path / "recorded")}
    assert recorded[SPAWNED[1]].report.verdict == "growing"
    page = (tmp_path / "page.html").read_text()
    assert '<tr><td>1</td><td class="growing">growing</td><td>150</td>' in page
    assert json.loads((tmp_path / "report.json").read_text()) == report


def test_nothing_is_left_of_the_recordings(watched_children, tmp_path, monkeypatch):
    watched_children("hogwild.py", "fork")

    assert {each.name for each in tmp_path.iterdir()} == {
        "hogwild.py",
        "report.json",
        "stdout.txt",
        "stderr.txt",
    }
