"""A `Report` as text, in the format that was asked for; one module a format, loaded when used."""

from __future__ import annotations

from importlib import import_module

from leakcheck.errors import UsageError
from leakcheck.model import Report

# format -> the module whose `render(report, *, color)` writes it
FORMATS = {
    "full": "leakcheck.report.full",
    "concise": "leakcheck.report.concise",
    "json": "leakcheck.report.json",
    "sarif": "leakcheck.report.sarif",
    "github": "leakcheck.report.github",
    "gitlab": "leakcheck.report.gitlab",
    "junit": "leakcheck.report.junit",
    "html": "leakcheck.report.html",
    "markdown": "leakcheck.report.markdown",
    "svg": "leakcheck.report.svg",
    "dot": "leakcheck.report.refs",
}

# those that show what `check` found; the others are about runs
FINDING_FORMATS = ("full", "concise", "json", "sarif", "github", "gitlab", "junit", "markdown")
# those that show what was recorded; "text" is what `run` prints
RUN_FORMATS = ("text", "html", "markdown", "json", "svg", "dot", "junit")


def render(report: Report, format: str, *, color: bool = False) -> str:
    """Write the report in one of FORMATS; ends without a newline; `color` adds ANSI styles."""
    if format not in FORMATS:
        raise UsageError(f'"{format}" is not an output format; take one of {", ".join(FORMATS)}')
    text: str = import_module(FORMATS[format]).render(report, color=color)
    return text
