"""What a run saw and what the source says, as one: a run's report in, the same with findings out.

Of the findings only those stay that the run proves. libcst is imported when there is a leak to
look up, and not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from leakcheck.confirm import confirm
from leakcheck.known import recognized
from leakcheck.model import Finding, Report


def proved(report: Report) -> Report:
    """Check the files that the suspects point at, and join the findings that the run proves.

    It never raises: a report without rules tells the leak just as well, and the caller is often a
    training loop that has to go on.
    """
    try:
        paths = {place.path for suspect in report.suspects for place in suspect.locations}
        own = [Path(path) for path in sorted(paths) if path.endswith(".py")]
        found = _findings([path for path in own if path.is_file()])
        findings, suspects = confirm(found, report.suspects)
    except Exception:  # e.g. libcst is broken, or a file vanished
        return recognized(report)
    found_here = tuple(finding for finding in findings if finding.proved)
    return recognized(replace(report, findings=found_here, suspects=suspects))


def _findings(paths: Sequence[Path]) -> tuple[Finding, ...]:
    if not paths:
        return ()
    from leakcheck.static.check import check_paths

    return check_paths(paths).findings
