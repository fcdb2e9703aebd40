"""One line a finding, `path:line:column: slug: message`, for editors and grep."""

from __future__ import annotations

from leakcheck.model import Location, Report
from leakcheck.report.plain import one_line


def render(report: Report, *, color: bool = False) -> str:
    """Write a line for each finding and each file that could not be checked."""
    lines = [f"{place(f.location)}: {f.rule}: {one_line(f.message)}" for f in report.findings]
    lines += [f"{one_line(each.path)}: {one_line(each.reason)}" for each in report.unreadable]
    return "\n".join(lines)


def place(location: Location) -> str:
    """Write where something is: `train.py:41:5`, or `train.ipynb:cell 3:2:6` in a notebook."""
    cell = f":cell {location.cell}" if location.cell is not None else ""
    return f"{one_line(location.path)}{cell}:{location.line}:{location.column}"
