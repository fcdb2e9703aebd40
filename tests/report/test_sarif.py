from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from leakcheck.model import Evidence, Finding, Location, Report
from leakcheck.report import render

SCHEMA = Path(__file__).parent / "sarif" / "sarif-2.1.0-rtm.5.json"


KEPT = Evidence(Location("lib/meters.py", 6, 9, 6, 28), "kept", "self.total")
EVIDENT = Report((Finding("r", "LK999", Location("a.py", 1, 1, 1, 2), "leaks", evidence=(KEPT,)),))


@pytest.fixture
def run(checked):
    return json.loads(render(checked, "sarif"))["runs"][0]


def test_the_log_is_valid_by_the_standards_own_schema(checked):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    validator = jsonschema.validators.validator_for(schema)(schema)

    for report in (checked, EVIDENT, Report(), Report(checked_files=3)):
        assert list(validator.iter_errors(json.loads(render(report, "sarif")))) == []
    assert list(validator.iter_errors({"version": "2.1.0", "runs": [{}]}))


def test_columns_are_characters_and_paths_relative(run):
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["results"][0]["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "src/train.py", "uriBaseId": "SRCROOT"},
                "region": {"startLine": 26, "startColumn": 13, "endLine": 26, "endColumn": 31},
                "contextRegion": {
                    "startLine": 26,
                    "snippet": {"text": "            total_loss += loss"},
                },
            }
        }
    ]
    uri = run["results"][1]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "src/%C3%A9t%C3%A9%2C%201%3A2.py"


def test_results_name_rules_that_are_described(run):
    rules = run["tool"]["driver"]["rules"]

    assert [rule["id"] for rule in rules] == ["LK101", "LK102", "LK310"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert [result["level"] for result in run["results"]] == ["warning", "error", "error", "note"]


def test_equal_lines_have_different_fingerprints(run):
    marks = [result["partialFingerprints"]["leakcheck/v1"] for result in run["results"]]

    assert len(set(marks)) == len(marks) == 4


def test_a_fix_is_offered_as_a_replacement(run):
    assert run["results"][0]["fixes"] == [
        {
            "description": {"text": "add a number"},
            "artifactChanges": [
                {
                    "artifactLocation": {"uri": "src/train.py", "uriBaseId": "SRCROOT"},
                    "replacements": [
                        {
                            "deletedRegion": {
                                "startLine": 26,
                                "startColumn": 31,
                                "endLine": 26,
                                "endColumn": 31,
                            },
                            "insertedContent": {"text": ".item()"},
                        }
                    ],
                }
            ],
        }
    ]


def test_a_notebooks_cell_is_named_in_words_since_its_lines_are_not_the_files(run):
    result = run["results"][3]

    assert result["message"]["text"].startswith("Cell 5, line 2: ")
    assert "region" not in result["locations"][0]["physicalLocation"]


def test_a_file_that_could_not_be_read_is_a_notification(run):
    notification = run["invocations"][0]["toolExecutionNotifications"][0]

    assert notification["message"] == {"text": "line 3: invalid syntax <&>"}
    assert notification["level"] == "error"


def test_an_absolute_path_is_a_file_uri(checked):
    moved = replace(checked.findings[0], location=Location("/a b/c.py", 1, 1, 1, 2), fix=None)

    (result,) = json.loads(render(Report((moved,)), "sarif"))["runs"][0]["results"]

    location = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": "file:///a%20b/c.py"}


def test_the_places_a_finding_follows_from_are_related_locations(run):
    (result,) = json.loads(render(EVIDENT, "sarif"))["runs"][0]["results"]

    assert result["relatedLocations"] == [
        {
            "id": 1,
            "physicalLocation": {
                "artifactLocation": {"uri": "lib/meters.py", "uriBaseId": "SRCROOT"},
                "region": {"startLine": 6, "startColumn": 9, "endLine": 6, "endColumn": 28},
            },
            "message": {"text": "kept in `self.total`"},
        }
    ]
    assert all("relatedLocations" not in each for each in run["results"])
