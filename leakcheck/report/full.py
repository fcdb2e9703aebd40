"""The report for people: what and where, the line with the place marked, and what to do.

```
train.py:41:5: undetached-accumulator (LK101): `total` keeps the graph of every `loss`
   |
41 |     total += loss
   |     ^^^^^^^^^^^^^
   = help: use loss.item(), or loss.detach() if you need the tensor
```

Above the help stand the places that a finding through several functions or files follows from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import click

from leakcheck.model import Finding, Location, Report
from leakcheck.report.concise import place
from leakcheck.report.evidence import said
from leakcheck.report.plain import columns, one_line

TAB = "    "
WIDEST_FRAME = 120  # a longer line is cut round the place, so that one minified line stays one line
COLORS = {"error": "red", "warning": "yellow", "info": "cyan"}


class Style(Protocol):
    """Dress a text in ANSI styles, or not."""

    def __call__(self, text: str, *, fg: str | None = None, bold: bool | None = None) -> str:
        """Return the text with the style round it."""


def _unstyled(text: str, *, fg: str | None = None, bold: bool | None = None) -> str:
    return text


def render(report: Report, *, color: bool = False, summary: bool = True) -> str:
    """Write every finding with its code frame, every unreadable file, and a summary."""
    style: Style = click.style if color else _unstyled
    blocks = ["\n".join(_finding(finding, style)) for finding in report.findings]
    blocks += [
        f"{style(one_line(each.path), bold=True)}: {one_line(each.reason)}"
        for each in report.unreadable
    ]
    if summary:
        blocks.append(style(summary_text(report), bold=True))
    return "\n\n".join(blocks)


def _finding(finding: Finding, style: Style) -> Iterator[str]:
    location = finding.location
    rule = style(f"{finding.rule} ({finding.code})", fg=COLORS[finding.severity], bold=True)
    proved = " [proved by a run]" if finding.proved else ""
    yield f"{style(place(location), bold=True)}: {rule}: {one_line(finding.message)}{proved}"
    gutter = " " * len(str(location.line))
    if finding.context.strip():
        code, marker = _frame(finding.context, location)
        yield f"{gutter} {style('|', fg='blue')}"
        yield f"{style(f'{location.line} |', fg='blue')} {code}"
        yield f"{gutter} {style('|', fg='blue')} {style(marker, fg=COLORS[finding.severity])}"
    for each in finding.evidence:
        yield f"{gutter} {style('=', fg='blue')} {place(each.location)}: {one_line(said(each))}"
    if finding.help:
        yield f"{gutter} {style('= help:', fg='blue')} {one_line(finding.help)}"


def _frame(context: str, location: Location) -> tuple[str, str]:
    """Return the flagged line and a line of `^` under the place, both cut to a readable width."""
    line = context.rstrip()
    first = min(location.column - 1, len(line))
    last = location.end_column - 1 if location.end_line == location.line else len(line)
    last = min(max(last, first + 1), max(len(line), first + 1))
    cut = max(0, first - WIDEST_FRAME // 2) if len(line) > WIDEST_FRAME else 0
    end = cut + WIDEST_FRAME
    lead, flagged, rest = (
        _expanded(line[cut:first]),
        _expanded(line[first : min(last, end)]),
        _expanded(line[min(last, end) : end]),
    )
    lead = f"...{lead}" if cut else lead
    rest = f"{rest}..." if end < len(line) else rest
    return lead + flagged + rest, " " * columns(lead) + "^" * max(1, columns(flagged))


def _expanded(text: str) -> str:
    return one_line(text.replace("\t", TAB).replace("\f", ""))


def summary_text(report: Report) -> str:
    """Say how many findings there are in how many files."""
    files = _count(report.checked_files, "file")
    if report.unreadable:
        files += f", {_count(len(report.unreadable), 'file')} not checked"
    if not report.findings:
        return f"no leaks found in {files}"
    places = len({finding.location.path for finding in report.findings})
    text = f"{_count(len(report.findings), 'finding')} in {places} of {files}"
    return text + _fixable(report.findings)


def _fixable(findings: tuple[Finding, ...]) -> str:
    safeties = [finding.fix.safety for finding in findings if finding.fix and finding.fix.edits]
    safe, unsafe = safeties.count("safe"), safeties.count("unsafe")
    parts = [f"{safe} fixable with --fix"] if safe else []
    parts += [f"{unsafe} with --fix --unsafe-fixes"] if unsafe else []
    return f" ({', '.join(parts)})" if parts else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
