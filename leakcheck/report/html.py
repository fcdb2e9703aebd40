"""The report of a run as one self-contained HTML page that makes no request.

The page holds the report's text as HTML and its charts as JSON, drawn by uPlot in the browser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from html import escape as verbatim
from pathlib import Path
from string import Template

from leakcheck import __version__
from leakcheck.model import DeviceMemory, Finding, Notice, Report, Suspect, Trend
from leakcheck.processes import RANK, are_ranks, names_of
from leakcheck.report import terminal
from leakcheck.report.charts import Chart, charts_of, is_beside
from leakcheck.report.device import memory_lines
from leakcheck.report.next_steps import next_text
from leakcheck.report.plain import escape
from leakcheck.report.reasons import said, told
from leakcheck.report.terminal import (
    TITLES,
    cost_text,
    failure_text,
    growth_text,
    headline,
    link_text,
    place_text,
    processes_text,
    rate_text,
    rule_text,
    slope_text,
)
from leakcheck.units import format_count, format_duration

FILES = Path(__file__).with_name("html")
MOST_RANKS = 32  # drawn; more make the page large, and nobody looks at them
RANK_POINTS = 200


def render(report: Report, *, color: bool = False) -> str:
    """Write the whole page."""
    charts, panels = _charts(report)
    verdict = report.verdict or "unclear"
    return Template(_file("page.html")).substitute(
        version=__version__,
        title=escape(f"leakcheck: {verdict}"),
        uplot_css=_file("uPlot.min.css"),
        page_css=_file("page.css"),
        uplot_js=_file("uPlot.iife.min.js"),
        page_js=_file("page.js"),
        verdict=verdict,
        headline=_marked(headline(report).removeprefix(f"leakcheck: {verdict}").lstrip(": ")),
        facts=_facts(report),
        suspects="".join(_suspect(suspect, report.findings) for suspect in report.suspects),
        findings=_section("In the source", [_finding(f) for f in report.findings]),
        trends=_trends(report.trends),
        memory="".join(_memory(memory) for memory in report.memory),
        charts=panels,
        ranks=_ranks(report, charts),
        notices=_section("Notices", [_notice(notice) for notice in report.notices]),
        text=verbatim(terminal.render(report)),
        data=_embedded(charts),
    )


def _file(name: str) -> str:
    return (FILES / name).read_text(encoding="utf-8")


def _embedded(charts: list[dict[str, object]]) -> str:
    # "</script>" inside a label would end the block, so "<" never stands in it
    text = json.dumps({"charts": charts}, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _marked(text: str) -> str:
    """Escape a text, with what stands between backticks drawn as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _facts(report: Report) -> str:
    run, overhead = report.run, report.overhead
    if run is None:
        return ""
    facts = {
        "steps": format_count(run.steps),
        "not judged": format_count(run.warmup_steps),
        "time": format_duration(run.seconds),
        "clock": run.clock,
        "rank": _rank_fact(report),
        "torch": run.torch or "",
        "device": run.device or "",
        "cost": cost_text(run, overhead) if overhead else "",
        "ended": run.stopped_by,
        "next": next_text(report),
        "program": failure_text(run).removeprefix("the program "),
    }
    return "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in facts.items()
        if value
    )


def _suspect(suspect: Suspect, findings: tuple[Finding, ...]) -> str:
    places = "".join(
        f'<div class="source"><code>{escape(place_text(place))}</code></div>'
        for place in suspect.locations[:3]
    )
    rows = {
        "what": _marked(suspect.what),
        "grows": escape(growth_text(suspect)),
        "in": escape(processes_text(suspect.processes)),
        "line": places,
        "held by": _marked(str(suspect.holder)),
        "fix": f"<code>{escape(said(suspect.fix))}</code>" if suspect.fix else "",
        "rule": ", ".join(escape(rule_text(rule, findings)) for rule in suspect.rules),
        "evidence": _marked(said(suspect.evidence)),
        "id": f"<code>{suspect.fingerprint}</code>",
    }
    owner = "Library leak" if suspect.library else "Leak"
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows.items() if value)
    title = f"{owner}: {TITLES[suspect.kind]}"
    body = f"<h2>{escape(title)}</h2><dl>{listed}</dl>{_trace(suspect)}"
    return f'<section class="panel">{body}</section>'


def _trace(suspect: Suspect) -> str:
    if suspect.trace is None or not suspect.trace.links:
        return ""
    lines = [_marked(suspect.trace.root)]
    for depth, link in enumerate(suspect.trace.links):
        edge, rest = escape(link.edge), escape(link_text(link).removeprefix(link.edge))
        edge = f'<span class="suspect">{edge}</span>' if link.suspect else edge
        lines.append(f"{'  ' * depth}╰→ {edge}{rest}")
    text = "\n".join(lines)
    return f'<pre class="trace" tabindex="0" aria-label="leak trace">{text}</pre>'


def _finding(finding: Finding) -> str:
    where = f"{finding.location.path}:{finding.location.line}"
    proved = " <strong>proved by this run</strong>" if finding.proved else ""
    return (
        f'<div class="panel"><p><code>{escape(where)}</code> {escape(finding.rule)}{proved}</p>'
        f'<p class="source"><code>{escape(finding.context.strip())}</code></p>'
        f"<p>{_marked(finding.message)}</p><p>{_marked(finding.help)}</p></div>"
    )


def _notice(notice: Notice) -> str:
    return f'<p class="panel">{_marked(told(notice))}</p>'


def _trends(trends: tuple[Trend, ...]) -> str:
    if not trends:
        return ""
    rows = "".join(
        f"<tr><td>{escape(trend.resource)}</td>{_verdict(trend)}"
        f'<td class="reason">{_marked(slope_text(trend))}</td></tr>'
        for trend in sorted(trends, key=_last)
        if trend.verdict != "steady" or trend.reason
    )
    quiet = ", ".join(t.resource for t in trends if t.verdict == "steady" and not t.reason)
    steady = f'<p><strong class="steady">steady</strong> {escape(quiet)}</p>' if quiet else ""
    if not rows:
        return f"<h2>Resources</h2>{steady}"
    return (
        '<h2>Resources</h2><div class="scroll" tabindex="0" role="region" aria-label="Resources">'
        "<table><thead><tr><th>resource</th><th>verdict</th><th>what was seen</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>{steady}"
    )


def _last(trend: Trend) -> tuple[bool, bool]:
    return is_beside(trend.resource), trend.verdict != "growing"


def _verdict(trend: Trend) -> str:
    if is_beside(trend.resource):
        return f'<td class="beside">{trend.verdict}, not judged</td>'
    return f'<td class="{trend.verdict}">{trend.verdict}</td>'


def _memory(memory: DeviceMemory) -> str:
    text = "\n".join(map(escape, memory_lines(memory)))
    return f'<pre class="panel trace wrapped" tabindex="0" aria-label="device memory">{text}</pre>'


def _charts(report: Report) -> tuple[list[dict[str, object]], str]:
    charts = [asdict(chart) for chart in charts_of(report)]
    panels = "".join(
        _panel(index, str(chart["title"]), str(chart["unit"])) for index, chart in enumerate(charts)
    )
    run = report.run
    of = f" of {_worst_name(report)}" if report.ranks and run else ""
    title = f"<h2>Over the steps{of}</h2>"
    return charts, f'{title}<div class="charts">{panels}</div>' if panels else ""


def _ranks(report: Report, charts: list[dict[str, object]]) -> str:
    if not report.ranks:
        return ""
    names = names_of(report.ranks)
    each, title = ("rank", "Ranks") if are_ranks(names) else ("process", "Processes")
    named = zip(names, report.ranks, strict=True)
    order = sorted(named, key=lambda pair: pair[1].verdict != "growing")
    rows = "".join(_rank_row(name.removeprefix(RANK), rank) for name, rank in order)
    drawn = _rank_charts(order, charts, title.lower())
    return (
        f'<h2>{title}</h2><div class="scroll" tabindex="0" role="region" aria-label="{title}">'
        f"<table><thead><tr><th>{each}</th><th>verdict</th><th>steps</th><th>what grows</th>"
        f"<th>id</th></tr></thead><tbody>{rows}</tbody></table></div>{drawn}"
    )


def _rank_row(name: str, rank: Report) -> str:
    grows = (t for t in rank.trends if t.verdict == "growing" and not is_beside(t.resource))
    ids = ", ".join(f"<code>{suspect.fingerprint}</code>" for suspect in rank.suspects)
    verdict = rank.verdict or "unclear"
    what = ", ".join(f"{trend.resource} {rate_text(trend)}" for trend in grows)
    what = what or said(rank.reason) or "nothing"
    return (
        f'<tr><td>{escape(name)}</td><td class="{verdict}">{verdict}</td>'
        f"<td>{format_count(rank.run.steps) if rank.run else ''}</td>"
        f'<td class="reason">{_marked(what)}</td><td>{ids}</td></tr>'
    )


def _rank_charts(
    order: Sequence[tuple[str, Report]], charts: list[dict[str, object]], noun: str
) -> str:
    if not charts:
        return ""
    title = str(charts[0]["title"])  # the same of every rank, and on one scale, to be compared
    drawn = [
        (f"{name}: {rank.verdict or 'unclear'}", chart)
        for name, rank in order[:MOST_RANKS]
        for chart in charts_of(rank)
        if chart.title == title
    ]
    values = [
        v for _, chart in drawn for curve in chart.series for v in curve.values if v is not None
    ]
    panels = []
    for name, chart in drawn:
        panels.append(_panel(len(charts), f"{name}, {title}", chart.unit))
        charts.append({**asdict(_small(chart)), "small": [min(values), max(values)]})
    more = len(order) - MOST_RANKS
    rest = f"<p>{more} more {noun} are not drawn; growing ones come first.</p>" if more > 0 else ""
    return f'<div class="charts ranks">{"".join(panels)}</div>{rest}' if panels else ""


def _worst_name(report: Report) -> str:
    """Name the process that the page shows: the report has its run, with how the program ended."""
    assert report.run is not None
    shown = (report.run.process, report.run.rank)
    each = zip(names_of(report.ranks), report.ranks, strict=True)
    alike = (name for name, rank in each if rank.run and (rank.run.process, rank.run.rank) == shown)
    return next(alike, "one of them")


def _rank_fact(report: Report) -> str:
    run = report.run
    if run is None or run.rank is None or run.world_size is None:
        return ""
    return f"{run.rank} of {run.world_size}{', the worst, is shown' if report.ranks else ''}"


def _small(chart: Chart) -> Chart:
    keep = slice(None, None, max(1, len(chart.steps) // RANK_POINTS))
    curves = tuple(replace(curve, values=curve.values[keep]) for curve in chart.series)
    return replace(chart, steps=chart.steps[keep], series=curves)


def _panel(index: int, title: str, unit: str) -> str:
    told = not unit or unit == "B" or unit in title.lower()
    label = escape(title if told else f"{title} ({unit})")
    return (
        f'<figure class="panel chart" role="group" aria-label="{label}"><h3>{label}</h3>'
        f'<div data-chart="{index}"></div></figure>'
    )


def _section(title: str, parts: list[str]) -> str:
    return f"<h2>{title}</h2>{''.join(parts)}" if parts else ""
