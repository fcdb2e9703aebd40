"""GitHub Actions workflow commands: each finding becomes an annotation on its line."""

from __future__ import annotations

from leakcheck.model import Finding, Report

COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def render(report: Report, *, color: bool = False) -> str:
    """Write a `::error`, `::warning` or `::notice` line a finding, `::error` an unreadable file."""
    lines = [_annotation(finding) for finding in report.findings]
    lines += [
        f"::error title=leakcheck,file={_property(each.path)}::{_data(each.reason)}"
        for each in report.unreadable
    ]
    return "\n".join(lines)


def _annotation(finding: Finding) -> str:
    at = finding.location
    properties = {"title": f"leakcheck ({finding.rule})", "file": at.path}
    if at.cell is None:  # a notebook's lines are those of its cells, which no annotation can name
        properties |= {"line": str(at.line), "endLine": str(at.end_line)}
        if at.line == at.end_line:  # GitHub drops an annotation with columns over several lines
            properties |= {"col": str(at.column), "endColumn": str(at.end_column)}
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    cell = f"cell {at.cell}, line {at.line}: " if at.cell is not None else ""
    help = f"\n{finding.help}" if finding.help else ""
    return f"::{COMMANDS[finding.severity]} {listed}::{_data(cell + finding.message + help)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
