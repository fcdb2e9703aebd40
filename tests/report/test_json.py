from __future__ import annotations

import json

from leakcheck import __version__
from leakcheck.model import Evidence, Finding, Location, Report
from leakcheck.report import render


def test_findings_are_flat_objects_with_their_fix(checked):
    report = json.loads(render(checked, "json"))

    assert report["findings"][0] == {
        "rule": "undetached-accumulator",
        "code": "LK101",
        "path": "src/train.py",
        "line": 26,
        "column": 13,
        "end_line": 26,
        "end_column": 31,
        "cell": None,
        "message": "`total_loss` keeps the graph of every `loss`",
        "help": "use loss.item()",
        "severity": "warning",
        "confidence": "high",
        "fix": {
            "title": "add a number",
            "edits": [
                {"line": 26, "column": 31, "end_line": 26, "end_column": 31, "text": ".item()"}
            ],
            "safety": "unsafe",
        },
        "fingerprint": checked.findings[0].fingerprint,
        "proved": None,
        "evidence": [],
    }


def test_the_object_says_its_format_and_what_could_not_be_read(checked):
    report = json.loads(render(checked, "json"))

    assert (report["format"], report["version"], report["checked_files"]) == (1, __version__, 7)
    assert report["unreadable"] == [
        {"path": "src/broken.py", "reason": "line 3: invalid syntax <&>"}
    ]
    assert (report["verdict"], report["run"], report["trends"]) == (None, None, [])


def test_evidence_has_its_role_its_words_and_its_place():
    kept = Evidence(Location("lib/meters.py", 6, 9, 6, 28), "kept", "self.total")
    finding = Finding("r", "LK999", Location("a.py", 1, 1, 1, 2), "leaks", evidence=(kept,))
    report = json.loads(render(Report((finding,)), "json"))

    assert report["findings"][0]["evidence"] == [
        {
            "role": "kept",
            "name": "self.total",
            "said": "kept in `self.total`",
            "path": "lib/meters.py",
            "line": 6,
            "column": 9,
            "end_line": 6,
            "end_column": 28,
            "cell": None,
        }
    ]
