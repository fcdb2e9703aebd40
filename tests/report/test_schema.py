from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import jsonschema
import pytest

import leakcheck.report
from leakcheck.model import Report, Run, Suspect, Trend, Unreadable
from leakcheck.report import render

SCHEMA = json.loads((Path(leakcheck.report.__file__).parent / "schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_published_schema_is_itself_valid():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_run_with_a_leak_fits_the_schema(growing_run):
    VALIDATOR.validate(json.loads(render(growing_run, "json")))


def test_a_check_with_an_unreadable_file_fits_the_schema():
    report = Report(unreadable=(Unreadable("broken.py", "line 3: invalid syntax"),))

    VALIDATOR.validate(json.loads(render(report, "json")))


def test_ranks_are_reports_too(growing_run):
    report = Report(run=growing_run.run, verdict="growing", ranks=(growing_run, growing_run))

    VALIDATOR.validate(json.loads(render(report, "json")))


@pytest.mark.parametrize(("name", "value"), [("suspect", Suspect), ("trend", Trend), ("run", Run)])
def test_the_schema_knows_every_member_of_the_values(name, value):
    known = set(SCHEMA["$defs"][name]["properties"])

    assert {field.name for field in fields(value)} <= known


def test_a_wrong_verdict_does_not_fit(growing_run):
    document = json.loads(render(growing_run, "json")) | {"verdict": "leaking"}

    assert [error.json_path for error in VALIDATOR.iter_errors(document)] == ["$.verdict"]
