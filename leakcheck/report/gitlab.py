"""GitLab's code quality report: a JSON array with one entry a finding."""

from __future__ import annotations

import json
from collections import Counter

from leakcheck.model import Report, fingerprint

SEVERITIES = {"error": "critical", "warning": "major", "info": "minor"}


def render(report: Report, *, color: bool = False) -> str:
    """Write the array; fingerprints differ even where the same line text is flagged twice."""
    seen: Counter[str] = Counter()
    entries = []
    for finding in report.findings:
        seen[finding.fingerprint] += 1
        mark = fingerprint(finding.fingerprint, str(seen[finding.fingerprint]))
        severity, at = SEVERITIES[finding.severity], finding.location
        lines = (at.line, at.end_line)
        entries.append(_entry(finding.message, finding.rule, mark, severity, at.path, lines))
    for each in report.unreadable:
        mark = fingerprint("unreadable", each.path, each.reason)
        entries.append(_entry(each.reason, "unreadable", mark, "blocker", each.path, (1, 1)))
    return json.dumps(entries, indent=2, ensure_ascii=False)


def _entry(
    description: str, name: str, mark: str, severity: str, path: str, lines: tuple[int, int]
) -> dict[str, object]:
    return {
        "description": description,
        "check_name": name,
        "fingerprint": mark,
        "severity": severity,
        "location": {"path": path, "lines": {"begin": lines[0], "end": lines[1]}},
    }
