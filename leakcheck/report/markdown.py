"""The report as Markdown, for a comment on a pull request or the summary of a job."""

from __future__ import annotations

import re
from collections.abc import Iterator

from leakcheck.model import Finding, Report, Suspect
from leakcheck.report.full import summary_text
from leakcheck.report.next_steps import next_text
from leakcheck.report.plain import one_line
from leakcheck.report.reasons import said, told
from leakcheck.report.terminal import (
    TITLES,
    failure_text,
    growth_text,
    headline,
    known_text,
    place_text,
    processes_text,
    rule_text,
    slope_text,
)


def render(report: Report, *, color: bool = False) -> str:
    """Write the report in GitHub's flavour of Markdown."""
    checked = f"leakcheck: {summary_text(report)}" if report.is_of_source else ""
    lines = [f"### {_escape(checked or headline(report))}"]
    if following := next_text(report):
        lines += ["", f"Next: {_escape(following)}"]
    for suspect in report.suspects:
        lines += ["", *_leak(suspect, report.findings)]
    if report.findings:
        lines += ["", "| place | rule | finding |", "|---|---|---|"]
        lines += [_finding_row(finding) for finding in report.findings]
    if report.trends:
        lines += ["", "| resource | verdict | what was seen |", "|---|---|---|"]
        lines += [
            f"| {_cell(trend.resource)} | {trend.verdict} | {_escape(slope_text(trend))} |"
            for trend in report.trends
        ]
    lines += ["", *(f"- {_escape(told(notice))}" for notice in report.notices)]
    failed = failure_text(report.run) if report.run else ""
    lines += [f"- {failed}"] if failed else []
    lines += [
        f"- not read: {_code(each.path)}: {_escape(each.reason)}" for each in report.unreadable
    ]
    return "\n".join(lines).rstrip()


def _leak(suspect: Suspect, findings: tuple[Finding, ...]) -> Iterator[str]:
    what = f" ({_escape(suspect.what)})" if suspect.what else ""
    yield f"**{_escape(TITLES[suspect.kind])}**{what}"
    yield ""
    yield f"- grows {_escape(growth_text(suspect))}"
    if suspect.processes:
        yield f"- in {_escape(processes_text(suspect.processes))}"
    for place in suspect.locations[:3]:
        yield f"- line {_code(place_text(place))}"
    if suspect.holder:
        yield f"- held by {_escape(str(suspect.holder))}"
    if suspect.known:
        yield f"- known: {_code(known_text(suspect.known))}"
    if suspect.fix:
        yield f"- fix: {_code(said(suspect.fix))}"
    for rule in suspect.rules:
        yield f"- rule {_escape(rule_text(rule, findings))}"


def _finding_row(finding: Finding) -> str:
    place = f"{finding.location.path}:{finding.location.line}"
    proved = " (proved by the run)" if finding.proved else ""
    return f"| {_cell(place)} | {finding.rule} | {_escape(finding.message)}{proved} |"


def _code(text: str) -> str:
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, padding = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{padding}{one_line(text)}{padding}{fence}"


def _cell(text: str) -> str:
    return _code(text).replace("|", r"\|")  # a table ends its cells before it looks for code


def _escape(text: str) -> str:
    return one_line(text.replace("\n", " ")).replace("|", r"\|").replace("<", "&lt;")
