"""The stages of `isolate` as a table, 80 columns wide, and as JSON; the conclusion last."""

from __future__ import annotations

import io
import json
import textwrap

import msgspec

from leakcheck.model import Isolation, Report, StageRun
from leakcheck.report.plain import one_line
from leakcheck.units import format_bytes, format_count

FORMAT = 1
WIDTH = 80


def render(isolation: Isolation, *, color: bool = False) -> str:
    """Write one row a stage, the reasons of those without a verdict, and the conclusion."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("stage", "verdict"):
        table.add_column(name, no_wrap=True)
    table.add_column("steps", justify="right", no_wrap=True)
    table.add_column("what grows, or why it says nothing")
    for run in isolation.stages:
        table.add_row(*(Text(one_line(cell)) for cell in _cells(run)))
    output = io.StringIO()
    Console(file=output, width=WIDTH, color_system=None).print(table)
    rows = [line.rstrip() for line in output.getvalue().splitlines()]
    head = one_line(f"leakcheck: isolated {isolation.command} in {_runs(isolation)}")
    told = textwrap.wrap(one_line(isolation.conclusion), WIDTH)
    return "\n".join([*textwrap.wrap(head, WIDTH), "", *rows, "", *told])


def render_json(isolation: Isolation) -> str:
    """Write everything: each stage with its whole report, and the conclusion."""
    written = {"format": FORMAT, **msgspec.to_builtins(isolation)}
    return json.dumps(written, indent=2)


def _runs(isolation: Isolation) -> str:
    count = sum(run.report is not None for run in isolation.stages)
    return "1 run" if count == 1 else f"{count} runs"


def _cells(run: StageRun) -> tuple[str, str, str, str]:
    steps = run.report.run.steps if run.report is not None and run.report.run is not None else 0
    told = _growth(run.report) if run.verdict == "growing" else run.reason
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
