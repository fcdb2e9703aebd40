"""A rule is a claim, and the claim is run: leaky.py leaks where it is flagged, fixed.py does not.

A rule about what no run can show on a small machine declares `proof = "static only: <why>"`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from leakcheck.model import Finding, Holder, Place, Suspect
from leakcheck.proof import confirm
from leakcheck.static.engine import check_source
from leakcheck.static.registry import builtin_rule_set, load_rule, rule_folders
from leakcheck.static.rule import Rule

pytestmark = pytest.mark.slow


def provable() -> list[Path]:
    folders = rule_folders(builtin_rule_set())
    return [each for each in folders if not load_rule(each).proof.startswith("static only")]


def waits_for_the_collector(report: dict[str, Any]) -> bool:
    return any(notice["kind"] == "cyclic-garbage" for notice in report["notices"])


def named_in(sentence: str) -> Holder:
    """Return the holder that a report tells, as far as its own name and its root's go."""
    own, *_, root = re.findall(r"`(?:[\w.]+\.)?(\w+)`", sentence) * 2 or ("", "")
    return Holder("unknown", name=own, root=Holder("unknown", name=root))


def proved_by(program: Path, rule: type[Rule], report: dict[str, Any]) -> tuple[Finding, ...]:
    """Return what the rule flags and the run proves, joined as `leakcheck run` joins them."""
    found = check_source(program.read_text(encoding="utf-8"), str(program), [rule])
    suspects = [
        Suspect(
            each["kind"],
            each["what"],
            holder=named_in(each["holder"]),
            locations=tuple(Place(**place) for place in each["locations"]),
        )
        for each in report["suspects"]
    ]
    return tuple(finding for finding in confirm(found, suspects)[0] if finding.proved)


def nodes_told(folder: Path) -> list[int]:
    """Return the Nodes a step that the rule's page says were measured; none if it names none."""
    page = (folder / "README.md").read_text(encoding="utf-8")
    measured = page.partition("## How fast it leaks (measured)")[2].partition("\n## ")[0]
    return [int(number) for number in re.findall(r"(\d+) graph nodes", measured)][:1]


def nodes_measured(report: dict[str, Any]) -> list[int]:
    growing = (trend for trend in report["trends"] if trend["resource"] == "graph.nodes")
    return [round(trend["per_step"]) for trend in growing]


# a run proves what keeps the memory; these rules flag a call that does not keep it itself
NAMED_ELSEWHERE = {
    "figure-left-by-caller": "the figure is named where it is made, not where it is left",
    "needless-retain-graph": "the list that keeps the graph is named, not the call that fattens it",
    "release-not-called": "the thread is named where it is started, not where it should end",
    "unbounded-imap": "a thread of the pool queues the results: the pool is named where it is made",
    "unguarded-hook-removal": "what the hook keeps is named, not where it was registered",
}
# rules on cycles, which the collector frees in the end: the sentinel's notice is the proof
WAITS_FOR_THE_COLLECTOR = {
    "back-reference",
    "closure-kept-by-module",
    "closure-stored-on-self",
    "method-given-to-base",
    "method-kept-on-self",
    "self-in-own-container",
    "wrapped-forward-cycle",
}
# rules on how much there is at once: the loop has an end, and what it gathers is joined after it
GATHERS = {"outputs-kept-on-device"}
# copied by a loader's workers, up to all that they share with the program
COPIES = {"copy-on-write-dataset"}
# held by a module that is imported before: of weakref
HELD_BY_IMPORTED = {"finalizer-holds-object"}
# rules whose fixed.py goes on collecting results, detached: no graph grows any more
KEEPS_RESULTS = {"hook-keeps-graph", "undetached-collection", "undetached-step-output"}


@pytest.mark.parametrize("folder", provable(), ids=lambda folder: folder.name)
def test_the_leaky_program_leaks_where_the_rule_says(folder, watched):
    program = folder / "leaky.py"

    report = watched(program, whole_heap=folder.name in HELD_BY_IMPORTED)

    if folder.name in WAITS_FOR_THE_COLLECTOR:
        assert report["verdict"] != "growing"
        assert waits_for_the_collector(report)
        assert not waits_for_the_collector(watched(folder / "fixed.py"))
        return
    if folder.name in GATHERS:
        assert report["verdict"] == "steady"
        assert [notice["kind"] for notice in report["notices"]] == ["gathered"]
        return
    if folder.name in COPIES:
        (flagged,) = check_source(program.read_text(), str(program), [load_rule(folder)])
        (notice,) = report["notices"]
        copied_from = notice["fields"]["by"]["fields"]["container"].rpartition(".")[2]
        assert (report["verdict"], notice["kind"]) == ("steady", "copied")
        assert f"`self.{copied_from}`" in flagged.message
        assert not watched(folder / "fixed.py")["notices"]
        return
    assert report["verdict"] == "growing", report["reason"]
    assert nodes_told(folder) in ([], nodes_measured(report))
    if folder.name not in NAMED_ELSEWHERE:
        assert proved_by(program, load_rule(folder), report), report["suspects"]


@pytest.mark.parametrize("folder", provable(), ids=lambda folder: folder.name)
def test_the_fixed_program_is_steady(folder, watched):
    report = watched(folder / "fixed.py")

    if folder.name in KEEPS_RESULTS:
        assert all(suspect["kind"] != "graph" for suspect in report["suspects"])
        assert not any(nodes_measured(report))
        return
    assert report["verdict"] == "steady", (report["reason"], report["suspects"])
