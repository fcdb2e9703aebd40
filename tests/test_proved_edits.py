"""A proved edit is offered where its leak is, as long as the file is what it was."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.errors import UsageError
from leakcheck.experiments import Attempt, Cure, Revision, Trial
from leakcheck.model import Finding, Holder, Location, Place, Report, Suspect
from leakcheck.proved_edits import offered, read_proofs
from leakcheck.report.cure import render_json
from leakcheck.static.fix import apply_edits

BEFORE = "total = 0\nfor loss in losses:\n    total += loss\nprint(total)\n"
AFTER = BEFORE.replace("+= loss", "+= loss.detach()")
LEAK = Suspect(
    "graph", "a loss", locations=(Place("a.py", 3, "total += loss"),), holder=Holder("global")
)
GROWING = Trial(Report(verdict="growing", suspects=(LEAK,)))
texts = st.lists(st.sampled_from(["a", "b", "", "  c"])).map("\n".join)


@pytest.fixture
def proofs(tmp_path):
    def proofs(outcome):
        revision = Revision("a.py", BEFORE, AFTER)
        edit = Attempt("detach", "detach it", (revision,), GROWING, GROWING, outcome)
        (tmp_path / "fix.json").write_text(render_json(Cure("a.py", GROWING, (edit,), edit)))
        return read_proofs([tmp_path / "fix.json"])

    return proofs


def finding(line):
    return Finding("undetached-accumulator", "LK101", Location("a.py", line, 5, line, 18), "leaks")


@given(texts, texts, st.sampled_from(["\n", "\r\n"]))
def test_the_edits_of_a_revision_make_the_text_after_of_that_before(before, after, end):
    before, after = (text.replace("\n", end) for text in (f"x\n{before}", f"x\n{after}"))
    assert apply_edits(before, Revision("a.py", before, after).edits) == after


def test_a_finding_on_the_line_of_the_leak_gets_the_edit_and_is_proved(proofs):
    (found,) = offered([finding(3)], BEFORE, proofs("proved"))

    assert found.proved
    assert found.fix.title == "detach it (proved by a run)"
    assert found.fix.safety == "safe"
    assert apply_edits(BEFORE, found.fix.edits) == AFTER


def test_of_leaks_in_two_files_each_file_gets_what_was_shown_of_it_alone(tmp_path):
    other = replace(LEAK, locations=(Place("b.py", 3, "total += loss"),))
    made = {path: Revision(path, BEFORE, AFTER) for path in ("a.py", "b.py")}
    ended = Trial(Report(verdict="growing"))
    alone = tuple(
        Attempt("detach", "detach it", (made[path],), ended, GROWING, outcome, leak=leak)
        for path, outcome, leak in (("a.py", "helps", LEAK), ("b.py", "changes", other))
    )
    both = Attempt(
        "detach", "detach it", tuple(made.values()), ended, GROWING, "proved", leak=other
    )
    cure = Cure("a.py", GROWING, (alone[0], both), both, alone=alone)
    (tmp_path / "fix.json").write_text(render_json(cure))

    (proof,) = read_proofs([tmp_path / "fix.json"])

    assert proof.lines == (3,)
    assert apply_edits(BEFORE, proof.edits) == AFTER


def test_elsewhere_in_another_text_or_without_a_proof_nothing_is_offered(proofs):
    assert offered([finding(1)], BEFORE, proofs("proved")) == (finding(1),)
    assert offered([finding(3)], f"{BEFORE}\n", proofs("proved")) == (finding(3),)
    assert offered([finding(3)], BEFORE, proofs("helps")) == (finding(3),)


@pytest.mark.parametrize(
    ("content", "told"), [("[]", "not written by `leakcheck fix --json`"), (None, "No such file")]
)
def test_another_file_is_a_usage_error(tmp_path, content, told):
    file = tmp_path / "other.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(UsageError, match=told):
        read_proofs([file])


SOURCE = """\
def train(model, loader, criterion):
    total_loss = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        total_loss += loss
    return total_loss
"""


def test_sarif_has_the_proved_edit_as_the_fix_and_the_editor_as_its_preferred_action(tmp_path):
    after = SOURCE.replace("+= loss", "+= loss.detach()")
    leak = Suspect("graph", "", locations=(Place("train.py", 6, ""),), holder=Holder("local"))
    before = Trial(Report(verdict="growing", suspects=(leak,)))
    edit = Attempt(
        "detach", "detach it", (Revision("train.py", SOURCE, after),), before, before, "proved"
    )
    (tmp_path / "fix.json").write_text(render_json(Cure("train.py", before, (edit,), edit)))
    (tmp_path / "train.py").write_text(SOURCE)
    (tmp_path / "leakcheck.toml").write_text('proofs = ["fix.json"]\n')
    check = [sys.executable, "-m", "leakcheck", "check", "--no-cache", "--output-format"]

    def run(*arguments):
        return subprocess.run(
            [*check, *arguments, "train.py"], cwd=tmp_path, capture_output=True, text=True
        ).stdout

    by_settings = json.loads(run("sarif"))["runs"][0]["results"][0]["fixes"]
    by_option = json.loads(run("sarif", "--isolated", "--proofs", "fix.json"))
    without = json.loads(run("sarif", "--isolated"))["runs"][0]["results"][0]["fixes"]

    assert by_settings == by_option["runs"][0]["results"][0]["fixes"]
    assert [each["description"]["text"] for each in by_settings] == ["detach it (proved by a run)"]
    (change,) = by_settings[0]["artifactChanges"]
    assert [each["insertedContent"]["text"] for each in change["replacements"]] == [
        "        total_loss += loss.detach()\n"
    ]
    assert "proved" not in without[0]["description"]["text"]
