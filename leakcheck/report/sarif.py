"""SARIF 2.1.0, the exchange format of static analysis, as code scanning services read it."""

from __future__ import annotations

import json
from collections import Counter
from urllib.parse import quote

from leakcheck import __version__
from leakcheck.model import Edit, Finding, Location, Report, fingerprint
from leakcheck.report.evidence import said
from leakcheck.report.json import Json

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def render(report: Report, *, color: bool = False) -> str:
    """Write one run; paths are relative to SRCROOT, columns count characters."""
    rules = sorted({(finding.code, finding.rule) for finding in report.findings})
    index = {slug: number for number, (_, slug) in enumerate(rules)}
    seen: Counter[str] = Counter()
    results: list[Json] = []
    for finding in report.findings:
        seen[finding.fingerprint] += 1
        mark = fingerprint(finding.fingerprint, str(seen[finding.fingerprint]))
        results.append(_result(finding, index[finding.rule], mark))
    run: Json = {
        "tool": {"driver": _driver(report, rules)},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            "SRCROOT": {"description": {"text": "The folder that was checked from."}}
        },
        "invocations": [_invocation(report)],
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _driver(report: Report, rules: list[tuple[str, str]]) -> Json:
    described: list[Json] = []
    for code, slug in rules:
        example = next(finding for finding in report.findings if finding.rule == slug)
        rule: dict[str, Json] = {
            "id": code,
            "name": _pascal(slug),
            "shortDescription": {"text": slug.replace("-", " ").capitalize() + "."},
            "defaultConfiguration": {"level": LEVELS[example.severity]},
            "properties": {"tags": ["memory", "pytorch"]},
        }
        if example.help:
            rule["help"] = {"text": example.help}
        described.append(rule)
    return {
        "name": "leakcheck",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": described,
    }


def _invocation(report: Report) -> Json:
    notifications: list[Json] = [
        {
            "level": "error",
            "message": {"text": each.reason},
            "locations": [{"physicalLocation": {"artifactLocation": _artifact(each.path)}}],
        }
        for each in report.unreadable
    ]
    return {"executionSuccessful": True, "toolExecutionNotifications": notifications}


def _result(finding: Finding, index: int, mark: str) -> Json:
    text = finding.message + (f"\n{finding.help}" if finding.help else "")
    result: dict[str, Json] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": LEVELS[finding.severity],
        "message": {"text": _in_cell(finding.location) + text},
        "locations": [{"physicalLocation": _place(finding)}],
        "partialFingerprints": {"leakcheck/v1": mark},
        "properties": {"confidence": finding.confidence},
    }
    if finding.evidence:
        result["relatedLocations"] = [
            {
                "id": number,
                "physicalLocation": _physical(each.location),
                "message": {"text": _in_cell(each.location) + said(each)},
            }
            for number, each in enumerate(finding.evidence, start=1)
        ]
    fix = finding.fix
    if fix and fix.edits and finding.location.cell is None:
        change: Json = {
            "artifactLocation": _artifact(finding.location.path),
            "replacements": [_replacement(edit) for edit in fix.edits],
        }
        result["fixes"] = [{"description": {"text": fix.title}, "artifactChanges": [change]}]
    return result


def _in_cell(location: Location) -> str:
    return "" if location.cell is None else f"Cell {location.cell}, line {location.line}: "


def _place(finding: Finding) -> Json:
    at = finding.location
    place = _physical(at)
    if at.cell is None and finding.context and at.line == at.end_line:
        snippet: Json = {"text": finding.context.rstrip("\r\n")}
        place["contextRegion"] = {"startLine": at.line, "snippet": snippet}
    return place


def _physical(at: Location) -> dict[str, Json]:
    place: dict[str, Json] = {"artifactLocation": _artifact(at.path)}
    if at.cell is None:  # a region counts lines of the file, which is JSON here
        place["region"] = _region(at.line, at.column, at.end_line, at.end_column)
    return place


def _replacement(edit: Edit) -> Json:
    deleted: Json = _region(edit.line, edit.column, edit.end_line, edit.end_column)
    return {"deletedRegion": deleted, "insertedContent": {"text": edit.text}}


def _region(line: int, column: int, end_line: int, end_column: int) -> dict[str, Json]:
    return {
        "startLine": line,
        "startColumn": column,
        "endLine": end_line,
        "endColumn": end_column,
    }


def _artifact(path: str) -> dict[str, Json]:
    quoted = quote(path, errors="surrogateescape")
    if path.startswith("/"):
        return {"uri": f"file://{quoted}"}
    return {"uri": quoted, "uriBaseId": "SRCROOT"}


def _pascal(slug: str) -> str:
    return "".join(word.capitalize() for word in slug.split("-"))
