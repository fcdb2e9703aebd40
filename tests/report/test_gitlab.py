from __future__ import annotations

import json

from leakcheck.report import render


def test_each_finding_is_an_entry_with_what_gitlab_requires(checked):
    entries = json.loads(render(checked, "gitlab"))

    first = entries[0]
    assert {key: first[key] for key in first if key != "fingerprint"} == {
        "description": "`total_loss` keeps the graph of every `loss`",
        "check_name": "undetached-accumulator",
        "severity": "major",
        "location": {"path": "src/train.py", "lines": {"begin": 26, "end": 26}},
    }
    assert [entry["severity"] for entry in entries] == [
        "major", "critical", "critical", "minor", "blocker"
    ]  # fmt: skip


def test_no_two_entries_share_a_fingerprint(checked):
    marks = [entry["fingerprint"] for entry in json.loads(render(checked, "gitlab"))]

    assert len(set(marks)) == len(marks) == 5
