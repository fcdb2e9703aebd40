"""What the run saw and what the source says, as one: findings proved by the run's suspects."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from leakcheck.errors import LeakcheckError
from leakcheck.model import Report


def with_findings(report: Report, folder: Path) -> Report:
    """Check the user's files that the suspects point at, and keep the findings the run proves."""
    paths = sorted({place.path for suspect in report.suspects for place in suspect.locations})
    own = [Path(path) for path in paths if path.endswith(".py") and Path(path).is_file()]
    if not own:
        return report
    try:
        from leakcheck.confirm import confirm
        from leakcheck.static.check import check_paths

        findings, suspects = confirm(check_paths(own).findings, report.suspects)
    except (ImportError, LeakcheckError):
        return report
    proved = tuple(finding for finding in findings if finding.proved)
    return replace(report, findings=proved, suspects=suspects)
