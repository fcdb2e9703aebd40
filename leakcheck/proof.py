"""What a run proves of what the source says: a report in, the same with proved findings out.

A suspect names lines of source and a holder. A finding is proved when it flags one of these lines,
or, in the same file, a line about the very name that holds what leaks. libcst is imported when
there is a leak to look up, and not before.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from leakcheck.known import recognized
from leakcheck.model import Finding, Reason, Report, Suspect
from leakcheck.runtime.attribution.advice import is_general

_NAMES = re.compile(r"`([^`]+)`")
_GRAPH_CODES = "LK1"  # rules about autograd graphs
_DEVICE_CODES = "LK4"  # about where memory is, not for how long


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
    from leakcheck.static.checker import Settings

    # that it matters, the run has shown
    return check_paths(paths, Settings(doubtful=True)).findings


def confirm(
    findings: Iterable[Finding], suspects: Iterable[Suspect]
) -> tuple[tuple[Finding, ...], tuple[Suspect, ...]]:
    """Mark the findings that a suspect proves, and give each suspect the rules that name it.

    A suspect whose fix is only general takes the first one's. A finding that no suspect touches
    keeps `proved` as it was: the run may not have come by.
    """
    findings, suspects = tuple(findings), tuple(suspects)
    pairs = [
        (finding, suspect) for suspect in suspects for finding in _proved_by(suspect, findings)
    ]
    proved = [
        replace(finding, proved=True) if any(each is finding for each, _ in pairs) else finding
        for finding in findings
    ]
    named = [_named(suspect, [f for f, each in pairs if each is suspect]) for suspect in suspects]
    return tuple(proved), tuple(named)


def _named(suspect: Suspect, findings: list[Finding]) -> Suspect:
    rules = tuple(dict.fromkeys((*suspect.rules, *(finding.rule for finding in findings))))
    if suspect.fix and not is_general(suspect.fix):
        return replace(suspect, rules=rules)
    helps = (
        Reason.of("as-the-rule-says", help=finding.help)
        for finding in findings
        if finding.help and _is_about(finding, suspect)
    )
    return replace(suspect, rules=rules, fix=next(helps, suspect.fix))


def _is_about(finding: Finding, suspect: Suspect) -> bool:
    """Say whether what a finding advises may free the suspect: tensors stay when detached."""
    of_graph = finding.code.startswith(_GRAPH_CODES)
    return not finding.code.startswith(_DEVICE_CODES) and (suspect.kind == "graph" or not of_graph)


def _proved_by(suspect: Suspect, findings: tuple[Finding, ...]) -> list[Finding]:
    """Return the findings on the suspect's lines; without one, those about its holder's name."""
    on_line = [finding for finding in findings if _same_line(finding, suspect)]
    return on_line or [finding for finding in findings if _same_holder(finding, suspect)]


def _same_line(finding: Finding, suspect: Suspect) -> bool:
    where = finding.location
    return any(
        where.line <= place.line <= max(where.line, where.end_line)
        and _same_file(where.path, place.path)
        for place in suspect.locations
    )


def _same_holder(finding: Finding, suspect: Suspect) -> bool:
    if suspect.kind == "graph" and not finding.code.startswith(_GRAPH_CODES):
        return False
    if not any(_same_file(finding.location.path, place.path) for place in suspect.locations):
        return False
    held = suspect.holder
    names = {each.name for each in (held, held.start) if each.name}
    flagged = {name.rpartition(".")[2] for name in _NAMES.findall(finding.message)}
    return bool(names & flagged)


def _same_file(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
