from __future__ import annotations

import re
from dataclasses import replace

from leakcheck.model import Holder, Overhead, Reason, Report, Run, Suspect
from leakcheck.report import terminal

GROWING = """\
leakcheck: growing: 1 leak in 1,000 steps of train.py

leak (graph): the autograd graph of past steps stays reachable
  what     Tensor () with grad_fn AddBackward0
  grows    11 Nodes a step, 7.6 KiB a step
  line     train.py:26  total_loss += loss
  held by  local `total_loss` in main()
           frame of main(), train.py
           ├─ total_loss: Tensor
           │  ~~~~~~~~~~
           ╰→ .grad_fn: AddBackward0, 7.1 MiB in all
  fix      total_loss += loss.item()
  rule     undetached-accumulator, proved by this run at train.py:26
  id       {fingerprint}

graph.nodes  growing  +11 a step (95 %: 11 to 11) over 960 steps, 39,600/h
tensors      steady   34 all the way
note: reference cycles wait for the garbage collector, which freed 3.5 MiB (3.6
      KiB a step): not a leak
watched 1,000 steps (the last 960 judged, optimizer step)
  cost     9 us a step
  ended    stopped: the verdict is certain"""


def test_a_leak_is_told_with_line_holder_rate_and_fix(growing_run):
    expected = GROWING.format(fingerprint=growing_run.suspects[0].fingerprint)

    assert terminal.render(growing_run) == expected


def test_colour_changes_nothing_but_the_colour(growing_run):
    styled = terminal.render(growing_run, color=True)

    assert "\x1b[" in styled
    assert re.sub(r"\x1b\[[0-9;]*m", "", styled) == terminal.render(growing_run)


def test_long_texts_stay_within_eighty_columns(growing_run):
    root = Holder("local", "meter_of_the_validation", function="train_one_epoch_of_the_fold")
    holder = Holder("attribute", "sum_of_losses", "AverageMeterOfTheValidation", root=root)
    suspect = replace(growing_run.suspects[0], holder=holder)
    report = replace(growing_run, suspects=(suspect,))

    assert max(map(len, terminal.render(report).split("\n"))) <= 80


def test_an_unclear_run_says_why_first():
    run = Run("train.py", 12, 1.0)
    report = Report(
        run=run, verdict="unclear", reason=Reason.of("too-few-steps", steps=12, needed=30)
    )

    first = terminal.render(report).split("\n")[0]

    assert (
        first
        == "leakcheck: unclear in 12 steps of train.py: only 12 steps were seen; 30 are needed"
    )


def test_control_characters_of_the_program_never_reach_the_terminal(growing_run):
    suspect = replace(growing_run.suspects[0], holder=Holder("local", "\x1b[2Jx", function="main"))

    text = terminal.render(replace(growing_run, suspects=(suspect,)))

    assert "\x1b" not in text


def test_steady_resources_share_a_line(growing_run):
    calm = tuple(replace(trend, verdict="steady", reason="") for trend in growing_run.trends)

    text = terminal.render(replace(growing_run, trends=calm))

    assert "\nsteady: graph.nodes, tensors\n" in text


def test_closer_looks_are_told_apart_from_what_each_step_costs(growing_run):
    short = replace(growing_run, overhead=Overhead(50, 0.35))

    assert "  cost     50 us a step; looking closer took 10.9 s of 31.2 s" in (
        " ".join(terminal.render(short, width=200).splitlines())
    )


def test_of_what_nothing_more_is_known_is_said_once():
    suspect = Suspect("tensor", "", objects_per_step=2)

    assert terminal.render(Report(verdict="growing", suspects=(suspect,))) == (
        "leakcheck: growing: 1 leak\n"
        "\n"
        "leak (tensor): tensors pile up\n"
        "  grows    2 tensors a step\n"
        f"  id       {suspect.fingerprint}"
    )


def test_what_comes_rarely_is_told_with_the_steps_between():
    suspect = Suspect("tensor", "", objects_per_step=1 / 300, bytes_per_step=4096.0)

    assert terminal.growth_text(suspect) == "1 tensor in 300 steps, 4.0 KiB a step"


def test_a_program_that_failed_is_told_last(growing_run):
    run = replace(growing_run.run, ended="failed", exit_status=1, stopped_by="an error")

    text = terminal.render(replace(growing_run, run=run))

    assert text.endswith("\n  ended    an error\nthe program failed (exit status 1)")


def test_a_program_that_failed_before_its_first_step_is_told_so():
    assert terminal.failure_text(Run("train.py", 0, 1.0, exit_status=2, ended="failed")) == (
        "the program failed (exit status 2) before a step was seen"
    )
    assert terminal.failure_text(Run("train.py", 0, 1.0, exit_status=2, ended="finished")) == ""
