from __future__ import annotations

from dataclasses import replace

import pytest

from leakcheck.model import Report
from leakcheck.report import render

EXPECTED = """\
### leakcheck: growing: 1 leak in 1,000 steps of train.py

**the autograd graph of past steps stays reachable** (Tensor () with grad_fn AddBackward0)

- grows 11 Nodes a step, 7.6 KiB a step
- line `train.py:26  total_loss += loss`
- held by local `total_loss` in main()
- fix: `total_loss += loss.item()`
- rule undetached-accumulator, proved by this run at train.py:26

| place | rule | finding |
|---|---|---|
| `train.py:26` | undetached-accumulator | {message} (proved by the run) |

| resource | verdict | what was seen |
|---|---|---|
| `graph.nodes` | growing | +11 a step (95 %: 11 to 11) over 960 steps, 39,600/h |
| `tensors` | steady | 34 all the way |

- reference cycles wait for the garbage collector, which \
freed 3.5 MiB (3.6 KiB a step): not a leak"""


def test_the_comment_for_a_pull_request_tells_everything_in_markdown(growing_run):
    expected = EXPECTED.format(message=growing_run.findings[0].message)

    assert render(growing_run, "markdown") == expected


def test_odd_names_break_neither_code_nor_table(growing_run):
    odd = replace(growing_run.trends[0], resource="a|`b``c\u202e")

    lines = render(replace(growing_run, trends=(odd,)), "markdown").splitlines()

    assert r"| ``` a\|`b``c\u202e ``` | growing | +11 a step" in "\n".join(lines)


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_a_program_that_failed_is_told_in_every_form(growing_run, form):
    run = replace(growing_run.run, ended="failed", exit_status=3)

    assert "failed (exit status 3)" in render(replace(growing_run, run=run), form)
    assert "failed (exit status" not in render(growing_run, form)


def test_what_a_check_found_is_told_with_its_summary(growing_run):
    (finding,) = growing_run.findings
    report = Report(findings=(replace(finding, proved=False),), checked_files=3)

    assert render(report, "markdown") == (
        "### leakcheck: 1 finding in 1 of 3 files\n\n"
        "| place | rule | finding |\n|---|---|---|\n"
        f"| `train.py:26` | undetached-accumulator | {finding.message} |"
    )
