"""JUnit XML, which every CI system shows: a suite a file, a failed case a finding or a suspect."""

from __future__ import annotations

import re
from itertools import groupby
from xml.etree import ElementTree as ET

from leakcheck.model import Finding, Report
from leakcheck.report import terminal
from leakcheck.report.reasons import said
from leakcheck.report.terminal import what_text

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report, *, color: bool = False) -> str:
    """Write `<testsuites>`; a check that found nothing is one case that passed."""
    root = ET.Element("testsuites", name="leakcheck")
    for path, findings in groupby(report.findings, key=lambda finding: finding.location.path):
        _suite(root, path, [_failure(finding) for finding in findings])
    for each in report.unreadable:
        _suite(root, each.path, [_case("unreadable", each.path, "error", each.reason, "")])
    if report.run is not None:
        _suite(root, report.run.command, _run_cases(report))
    if not len(root):
        _suite(root, "leakcheck", [ET.Element("testcase", name="check", classname="leakcheck")])
    root.attrib |= {key: str(_total(root, key)) for key in ("tests", "failures", "errors")}
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}'


def _suite(root: ET.Element, path: str, cases: list[ET.Element]) -> None:
    suite = ET.SubElement(
        root,
        "testsuite",
        name=_clean(path),
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        errors=str(sum(case.find("error") is not None for case in cases)),
    )
    suite.extend(cases)


def _failure(finding: Finding) -> ET.Element:
    at = finding.location
    cell = f"cell {at.cell}, " if at.cell is not None else ""
    text = f"{cell}line {at.line}, column {at.column}: {finding.message}"
    text += f"\n{finding.help}" if finding.help else ""
    name = (
        f"{finding.rule}:{f'cell {at.cell}:' if at.cell is not None else ''}{at.line}:{at.column}"
    )
    return _case(name, at.path, "failure", finding.message, text)


def _run_cases(report: Report) -> list[ET.Element]:
    command = report.run.command if report.run else ""
    if report.verdict == "steady":
        return [ET.Element("testcase", name="steady", classname=_clean(command))]
    if report.verdict != "growing":
        return [_case("unclear", command, "error", said(report.reason), "")]
    text = terminal.render(report)
    if not report.suspects:
        return [_case("growing", command, "failure", terminal.headline(report), text)]
    return [
        _case(f"{each.kind}:{each.fingerprint}", command, "failure", what_text(each), text)
        for each in report.suspects
    ]


def _case(name: str, path: str, kind: str, message: str, text: str) -> ET.Element:
    case = ET.Element("testcase", name=_clean(name), classname=_clean(path))
    problem = ET.SubElement(case, kind, message=_clean(message))
    problem.text = _clean(text) or None
    return case


def _total(root: ET.Element, key: str) -> int:
    return sum(int(suite.get(key, "0")) for suite in root)


def _clean(text: str) -> str:
    return NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
