from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("forked_python")
TRAINING = """\
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(16, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
{before}
for step in range(400):
    loss = model(torch.randn(4, 16)).pow(2).mean()
    optimizer.zero_grad()
    {middle}
    {backward}
    optimizer.step()
    {after}
print({told})
"""


def training(before="", after="pass", told="'done'", middle="pass", backward="loss.backward()"):
    return TRAINING.format(before=before, after=after, told=told, middle=middle, backward=backward)


@pytest.fixture
def fix(tmp_path):
    """Write a program and fix its leak; returns the finished process and what `--json` says."""

    def fix(source: str, *options: str):
        (tmp_path / "train.py").write_text(source)
        command = [sys.executable, "-m", "leakcheck", "fix", "--json", "out.json", *options]
        ended = subprocess.run(
            [*command, "train.py"],
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        file = tmp_path / "out.json"
        return ended, json.loads(file.read_text()) if file.exists() else ended.stderr

    return fix


def outcomes(answer):
    return {each["candidate"]: each["outcome"] for each in answer["attempts"]}


TOTAL = training(before="total = 0", after="total += loss  # the sum", told="float(total)")


def test_a_total_is_fixed_in_memory_and_offered_as_a_patch_that_git_takes(fix, tmp_path):
    ended, answer = fix(TOTAL, "--patch", "fix.patch", "--tries", "2")

    chosen = answer["attempts"][answer["chosen"]]
    assert ended.returncode == 0, ended.stderr
    assert (chosen["candidate"], chosen["outcome"]) == ("detach", "proved")
    assert [each["what"] for each in chosen["differences"]] == []
    assert chosen["after"]["compared"] == {
        "stdout_lines": 1,
        "stderr_lines": 0,
        "losses": 400,
        "weights": 2,
        "modules": 2,
        "gradients": 2,
        "files": 0,
    }
    assert "-    total += loss  # the sum\n+    total += loss.detach()  # the sum\n" in ended.stdout
    assert "losses         bit-identical (400 calls of backward)" in ended.stdout
    assert (tmp_path / "train.py").read_text() == TOTAL
    subprocess.run(["git", "apply", "fix.patch"], cwd=tmp_path, check=True)
    assert "total += loss.detach()  # the sum\n" in (tmp_path / "train.py").read_text()


def test_a_program_that_fails_and_leaks_nothing_is_not_said_to_need_no_fix(fix):
    ended, _ = fix("for step in range(100):\n    pass\nraise ValueError('boom')\n")

    assert ended.returncode == 2
    assert ended.stdout == "could not tell: train.py: the program failed (exit status 1)\n"


def test_write_puts_the_proved_edit_into_the_file_and_then_nothing_is_left_to_fix(fix, tmp_path):
    source = training(before="log = []", after="log.append(loss)", told="len(log)")

    fix(source, "--write", "--tries", "1")
    written = (tmp_path / "train.py").read_text()
    again, _ = fix(written)

    assert written == source.replace("log.append(loss)", "log.append(loss.item())")
    assert again.returncode == 0
    assert again.stdout.splitlines()[0] == "steady: train.py: there is nothing to fix"


# the mean is part of what is learned from: its graph is wanted
LEARNED_FROM = training(
    before="mean = 0",
    middle="mean = 0.9 * mean + 0.1 * loss",
    backward="(loss + mean).backward(retain_graph=True)",
)


def test_where_the_obvious_edit_changes_what_is_learned_it_says_so_and_writes_nothing(
    fix, tmp_path
):
    ended, answer = fix(LEARNED_FROM, "--write", "--tries", "1")

    assert ended.returncode == 1, ended.stdout
    assert answer["chosen"] is None
    assert outcomes(answer) == {"item": "changes"}
    assert [each["what"] for each in answer["attempts"][0]["differences"]] == [
        "losses",
        "weights",
        "modules",
        "gradients",
    ]
    assert "not proved: the leak is gone, but the results differ" in ended.stdout
    assert "leakcheck: no edit is proved: nothing was written" in ended.stderr
    assert (tmp_path / "train.py").read_text() == LEARNED_FROM


def test_a_window_is_the_owners_choice_and_is_tried_when_the_size_is_given(fix):
    source = training(before="kept = []", after="kept.append(torch.randn(512))")

    without, offered = fix(source, "--tries", "1")
    given, answer = fix(source, "--size", "9", "--tries", "1")

    assert without.returncode == 1
    assert [each["title"] for each in offered["choices"]] == [
        "keep the last ones only",
        "drop the oldest ones",
    ]
    assert {each["asks"] for each in offered["choices"]} == {"how many to keep"}
    assert "+kept = collections.deque(maxlen=...)" in offered["choices"][0]["diff"]
    assert given.returncode == 0
    assert "+kept = collections.deque(maxlen=9)" in answer["attempts"][answer["chosen"]]["diff"]


def test_a_window_that_changes_what_is_printed_is_not_proved(fix):
    told = "if step % 200 == 199: print(len(list(kept)))"
    source = training("kept = []", f"kept.append(torch.randn(512))\n    {told}")

    ended, answer = fix(source, "--size", "9", "--tries", "1")

    assert ended.returncode == 1
    assert outcomes(answer)["deque"] == "changes"
    assert "differs in 2 of 3 lines; first at line 1: '200' -> '9'" in ended.stdout


def test_how_much_is_kept_may_be_printed_and_is_no_result(fix):
    source = training("kept = []", "kept.append(torch.randn(512))", "len(kept)")

    ended, answer = fix(source, "--size", "9", "--tries", "1")

    chosen = answer["attempts"][answer["chosen"]]
    assert ended.returncode == 0, ended.stdout
    assert (chosen["candidate"], chosen["outcome"]) == ("deque", "proved")
    assert [(each["what"], each["sizes"]) for each in chosen["differences"]] == [("stdout", True)]
    assert (
        "stdout         the same but for how much is kept, in 1 of 1 lines; "
        "first at line 1: '400' -> '9'"
    ) in ended.stdout


def test_what_a_branch_that_did_not_run_may_need_is_not_proved_away(fix):
    warm_up = "curve.append(loss)\n    if step > 500:\n        loss = loss + curve[-1]"

    ended, answer = fix(training(before="curve = []", middle=warm_up), "--tries", "2")

    assert ended.returncode == 2
    assert outcomes(answer) == {"item": "unclear", "detach": "unclear"}
    assert (
        "`loss = loss + curve[-1]` (train.py:13) may need the graph, and the run did"
        in ended.stdout
    )


def test_of_a_program_that_never_prints_the_same_it_cannot_tell(fix):
    source = training("import os; log = []", "log.append(loss)", "os.urandom(8).hex()")

    ended, answer = fix(source, "--tries", "1")

    assert ended.returncode == 2, ended.stdout
    assert [each["reason"] for each in answer["attempts"]] == [
        {
            "code": "differs-without-the-edit",
            "fields": {"results": ["stdout"]},
            "said": "stdout: differs without the edit",
        }
    ]


def test_a_time_that_is_printed_is_no_result(fix):
    source = training("import time; log = []", "log.append(loss)", "time.perf_counter()")

    ended, answer = fix(source, "--tries", "1")

    chosen = answer["attempts"][answer["chosen"]]
    assert ended.returncode == 0, ended.stdout
    assert [(each["what"], each["varies"]) for each in chosen["differences"]] == [("stdout", True)]
    assert (
        "stdout         the same but for what differs in each run, in 1 of 1 lines; "
    ) in ended.stdout


PREPARED = """\
import queue
import threading
import torch

torch.manual_seed(0)
batches = queue.Queue(4)


def prepare():
    generator = torch.Generator().manual_seed(1)
    for _ in range(400):
        batches.put(torch.randn(8, 4, generator=generator))


threading.Thread(target=prepare).start()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
total = float()
for step in range(400):
    optimizer.zero_grad()
    loss = model(batches.get()).square().mean()
    loss.backward()
    optimizer.step()
    total = total + loss
print(float(total))
"""


def test_an_edited_program_ends_though_its_thread_would_wait_for_it(fix):
    ended, answer = fix(PREPARED, "--timeout", "3600")

    assert ended.returncode == 0, ended.stdout
    assert "fails" in {each["outcome"] for each in answer["attempts"]}


def test_a_program_that_fails_before_it_is_judged_cannot_be_fixed(fix):
    ended, answer = fix("raise ValueError('no data')\n")

    assert ended.returncode == 2
    assert answer["before"]["failure"] == {
        "code": "raised",
        "fields": {"error": "ValueError: no data"},
        "said": "ValueError: no data",
    }


def test_a_program_that_is_not_there_is_a_usage_error(leakcheck):
    assert leakcheck("fix", "nowhere.py") == (2, "", "leakcheck: nowhere.py: no such file\n")
