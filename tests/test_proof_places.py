"""Which findings a run proves, by the place of a suspect or the name of its holder."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leakcheck.model import Finding, Location, Place, Reason, Suspect
from leakcheck.proof import confirm
from leakcheck.runtime.attribution.advice import fix_for
from tests.holders import held_by

ACCUMULATOR = Finding(
    rule="undetached-accumulator",
    code="LK101",
    location=Location("train.py", 26, 5, 26, 23),
    message="`total_loss` keeps the autograd graph of every `loss` added to it",
    context="    total_loss += loss",
)
HOOK = Finding(
    rule="dropped-hook-handle",
    code="LK201",
    location=Location("train.py", 12, 5, 12, 40),
    message="the handle of `model` is dropped",
)
TOTAL = Suspect(
    kind="graph",
    what="Tensor (scalar) float32",
    holder=held_by("local `total_loss` in main()"),
    locations=(Place("train.py", 26, "total_loss += loss"),),
)


def test_a_finding_on_the_suspects_line_is_proved():
    findings, suspects = confirm([ACCUMULATOR, HOOK], [TOTAL])

    assert findings == (replace(ACCUMULATOR, proved=True), HOOK)
    assert suspects == (replace(TOTAL, rules=("undetached-accumulator",)),)


def test_a_statement_over_several_lines_is_one_place():
    long = replace(ACCUMULATOR, location=Location("train.py", 24, 5, 27, 2))

    findings, _ = confirm([long], [TOTAL])

    assert findings[0].proved


def test_the_same_line_of_another_file_proves_nothing():
    elsewhere = replace(ACCUMULATOR, location=Location("other.py", 26, 5, 26, 23))

    assert confirm([elsewhere], [TOTAL]) == ((elsewhere,), (TOTAL,))


def test_without_a_line_the_name_of_the_holder_joins_them():
    epoch = replace(
        ACCUMULATOR, rule="epoch-long-graph", location=Location("train.py", 30, 1, 30, 9)
    )

    findings, suspects = confirm([epoch], [TOTAL])

    assert findings[0].proved
    assert suspects[0].rules == ("epoch-long-graph",)


def test_a_graph_proves_no_finding_about_something_else_by_its_name_alone():
    hook = replace(HOOK, message="the handle of `total_loss` is dropped")

    assert confirm([hook], [TOTAL]) == ((hook,), (TOTAL,))


REGISTRY = Finding(
    rule="instance-registry",
    code="LK307",
    location=Location("metrics.py", 15, 9, 15, 33),
    message="`_ALL` keeps every `Metric`",
    help="use weakref.WeakSet",
)
METRICS = Suspect(
    "tensor",
    "list of Accuracy",
    locations=(Place("metrics.py", 15, "_ALL.append(self)"),),
    fix=fix_for("_ALL.append(self)", "tensor", scalar=True),
)


def test_a_rule_that_names_the_line_knows_a_better_fix_than_the_general_one():
    _, (suspect,) = confirm([REGISTRY], [METRICS])

    assert suspect.fix == Reason.of("as-the-rule-says", help=REGISTRY.help)


def test_a_fix_made_for_what_leaks_stays():
    rewritten = replace(METRICS, fix=Reason.of("write", code="_ALL.append(self.item())"))

    _, (suspect,) = confirm([REGISTRY], [rewritten])

    assert (suspect.fix, suspect.rules) == (rewritten.fix, ("instance-registry",))


@pytest.mark.parametrize("code", ["LK102", "LK401"])
def test_detached_or_on_another_device_tensors_pile_up_all_the_same(code):
    _, (suspect,) = confirm([replace(REGISTRY, code=code)], [METRICS])

    assert suspect.fix == METRICS.fix


def test_relative_and_absolute_paths_are_the_same_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    absolute = replace(ACCUMULATOR, location=Location(str(tmp_path / "train.py"), 26, 5, 26, 23))

    findings, _ = confirm([absolute], [TOTAL])

    assert findings[0].proved


def test_two_suspects_and_two_findings_are_joined_each_with_its_own():
    other = Suspect("object", "list", locations=(Place("train.py", 12, "hook"),))

    findings, suspects = confirm([ACCUMULATOR, HOOK], [TOTAL, other])

    assert [finding.proved for finding in findings] == [True, True]
    assert [suspect.rules for suspect in suspects] == [
        ("undetached-accumulator",),
        ("dropped-hook-handle",),
    ]


def test_a_run_without_suspects_changes_nothing():
    assert confirm([ACCUMULATOR], []) == ((ACCUMULATOR,), ())
