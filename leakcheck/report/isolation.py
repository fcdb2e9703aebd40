"""The stages of `isolate` as a table, 80 columns wide, and as JSON; the conclusion last."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator

import msgspec

from leakcheck.experiments import Isolation, StageRun
from leakcheck.model import Report
from leakcheck.report.json import reason_as_json
from leakcheck.report.plain import one_line
from leakcheck.report.reasons import said
from leakcheck.units import format_bytes, format_count

FORMAT = 1
WIDTH = 80
HEADINGS = ("stage", "verdict", "steps", "what grows, or why it says nothing")


def render(isolation: Isolation, *, color: bool = False) -> str:
    """Write one row a stage, the reasons of those without a verdict, and the conclusion."""
    head = one_line(f"leakcheck: isolated {isolation.command} in {_runs(isolation)}")
    told = textwrap.wrap(one_line(said(isolation.conclusion)), WIDTH)
    return "\n".join([*textwrap.wrap(head, WIDTH), "", *_table(isolation), "", *told])


def _table(isolation: Isolation) -> Iterator[str]:
    rows = [HEADINGS, *(tuple(map(one_line, _cells(run))) for run in isolation.stages)]
    first, second, third = (max(len(row[at]) for row in rows) for at in range(3))
    for stage, verdict, steps, told in rows:
        label = f"{stage:<{first}}  {verdict:<{second}}  {steps:>{third}}  "
        indent = " " * len(label)
        lines = textwrap.wrap(told, WIDTH, initial_indent=label, subsequent_indent=indent)
        yield from lines or [label.rstrip()]


def render_json(isolation: Isolation) -> str:
    """Write everything: each stage with its whole report, and the conclusion."""
    stages = [
        {**msgspec.to_builtins(run), "reason": reason_as_json(run.reason)}
        for run in isolation.stages
    ]
    conclusion = reason_as_json(isolation.conclusion)
    written = {"command": isolation.command, "stages": stages, "conclusion": conclusion}
    return json.dumps({"format": FORMAT, **written}, indent=2)


def _runs(isolation: Isolation) -> str:
    count = sum(run.report is not None for run in isolation.stages)
    return "1 run" if count == 1 else f"{count} runs"


def _cells(run: StageRun) -> tuple[str, str, str, str]:
    steps = run.report.run.steps if run.report is not None and run.report.run is not None else 0
    told = _growth(run.report) if run.verdict == "growing" else said(run.reason)
    return run.stage, run.verdict, format_count(steps) if steps else "-", told


def _growth(report: Report | None) -> str:
    """Write each resource that grows with its rate; the exact counters come first."""
    growing = [trend for trend in report.trends if trend.verdict == "growing"] if report else []
    return ", ".join(
        f"{trend.resource} +"
        + (format_bytes(trend.per_step) if trend.unit == "B" else format_count(trend.per_step))
        for trend in growing
        if trend.resource != "host.rss"
    )
