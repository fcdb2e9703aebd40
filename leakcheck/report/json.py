"""The report as one JSON object, for programs.

`format` counts the changes that could break a reader:
1  findings, unreadable, checked_files, verdict, reason, trends, suspects, notices, run, overhead
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TypeAlias

from leakcheck import __version__
from leakcheck.model import Evidence, Field, Finding, Notice, Reason, Report, Suspect
from leakcheck.report.evidence import said as said_of
from leakcheck.report.reasons import said, told

FORMAT = 1

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


def render(report: Report, *, color: bool = False) -> str:
    """Write the report indented, with keys in a fixed order."""
    return json.dumps(as_json(report), indent=2, ensure_ascii=False)


def as_json(report: Report) -> Json:
    """Return the report as plain lists and dicts."""
    answer: dict[str, Json] = {
        "format": FORMAT,
        "version": __version__,
        "findings": [finding_as_json(finding) for finding in report.findings],
        "unreadable": [asdict(each) for each in report.unreadable],
        "checked_files": report.checked_files,
        "verdict": report.verdict,
        "reason": reason_as_json(report.reason),
        "trends": [asdict(trend) for trend in report.trends],
        "suspects": [_suspect(suspect) for suspect in report.suspects],
        "notices": [_notice(notice) for notice in report.notices],
        "run": asdict(report.run) if report.run else None,
        "overhead": asdict(report.overhead) if report.overhead else None,
    }
    if report.memory:
        answer["memory"] = [asdict(memory) for memory in report.memory]
    if report.load:
        entries = [asdict(each) | {"holder": str(each.holder)} for each in report.load.entries]
        answer["load"] = asdict(report.load) | {"entries": entries}
    if report.ranks:
        answer["ranks"] = [as_json(rank) for rank in report.ranks]
    return answer


def finding_as_json(finding: Finding) -> Json:
    """Return a finding flat: its place beside what it says."""
    return {
        "rule": finding.rule,
        "code": finding.code,
        **asdict(finding.location),
        "message": finding.message,
        "help": finding.help,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "fix": asdict(finding.fix) if finding.fix else None,
        "fingerprint": finding.fingerprint,
        "proved": finding.proved,
        "evidence": [_evidence(each) for each in finding.evidence],
    }


def _evidence(evidence: Evidence) -> Json:
    place = asdict(evidence.location)
    return {"role": evidence.role, "name": evidence.name, "said": said_of(evidence), **place}


def _suspect(suspect: Suspect) -> Json:
    trace = suspect.trace
    return {
        **asdict(suspect),
        "holder": str(suspect.holder),
        "root": trace.root if trace else None,
        "trace": [asdict(link) for link in trace.links] if trace else [],
        "fingerprint": suspect.fingerprint,
        "fix": reason_as_json(suspect.fix),
        "evidence": reason_as_json(suspect.evidence),
        "reason": reason_as_json(suspect.reason),
    }


def _notice(notice: Notice) -> Json:
    return {
        "kind": notice.kind,
        "step": notice.step,
        "code": notice.reason.code,
        "fields": _fields(notice.reason),
        "said": told(notice),
    }


def reason_as_json(reason: Reason | None) -> Json:
    """Return a reason as its code, its fields and the sentence that they make."""
    if reason is None:
        return None
    return {"code": reason.code, "fields": _fields(reason), "said": said(reason)}


def _fields(reason: Reason) -> Json:
    return {name: _field(value) for name, value in reason.fields}


def _field(value: Field) -> Json:
    if isinstance(value, Reason):
        return reason_as_json(value)
    return [_field(each) for each in value] if isinstance(value, tuple) else value
