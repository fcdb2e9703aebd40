"""A rule is a claim, and the claim is run: leaky.py leaks where it is flagged, fixed.py does not.

A rule about what no run can show on a small machine declares `proof = "static only: <why>"`. For
garbage that waits for the collector, the sentinel's notice is the proof.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from leakcheck.static.registry import builtin_rule_set, load_rule, rule_folders

MARK = re.compile(r"# leak: ")
NAME = re.compile(r"`([^`]+)`")
pytestmark = pytest.mark.slow


def provable() -> list[Path]:
    folders = rule_folders(builtin_rule_set())
    return [each for each in folders if not load_rule(each).proof.startswith("static only")]


def waits_for_the_collector(report: dict[str, Any]) -> bool:
    return any(notice["kind"] == "cyclic-garbage" for notice in report["notices"])


def points_at(suspect: dict[str, Any], lines: dict[int, str]) -> bool:
    """Say whether a suspect names a marked line, or a holder that a marked line is about."""
    if any(place["line"] in lines for place in suspect["locations"]):
        return True
    told = [suspect["holder"], *(link["edge"] for link in suspect["trace"])]
    names = {name for text in told for name in re.findall(r"\w+", text)}
    return any(names & set(re.findall(r"\w+", line)) - NOT_A_HOLDER for line in lines.values())


def nodes_told(folder: Path) -> list[int]:
    """Return the Nodes a step that the rule's page says were measured; none if it names none."""
    page = (folder / "README.md").read_text(encoding="utf-8")
    measured = page.partition("## How fast it leaks (measured)")[2].partition("\n## ")[0]
    return [int(number) for number in re.findall(r"(\d+) graph nodes", measured)][:1]


def nodes_measured(report: dict[str, Any]) -> list[int]:
    growing = (trend for trend in report["trends"] if trend["resource"] == "graph.nodes")
    return [round(trend["per_step"]) for trend in growing]


# rules whose growth a run sees, while what it names is not the flagged line
NAMED_ELSEWHERE = {
    "atexit-method": "the table of exit functions is C's: the suspect is the instance's tensor",
    "needless-retain-graph": "the list that keeps the graph is named, not the call that fattens it",
    "tensor-hook-cycle": "the tensor that keeps the Nodes is named, not its hook",
    "untrimmed-cat-cache": "one tensor that grows is no new object to trace",
}
# rules whose fixed.py goes on collecting results, detached: no graph grows any more
KEEPS_RESULTS = {"hook-keeps-graph", "undetached-collection", "undetached-step-output"}
NOT_A_HOLDER = {"self", "leak", "in", "from", "local", "global", "attribute", "class", "of", "main"}


@pytest.mark.parametrize("folder", provable(), ids=lambda folder: folder.name)
def test_the_leaky_program_leaks_where_the_rule_says(folder, watched):
    program = folder / "leaky.py"
    numbered = enumerate(program.read_text().splitlines(), start=1)
    lines = {number: line.partition("#")[0] for number, line in numbered if MARK.search(line)}

    report = watched(program)

    if report["verdict"] != "growing" and waits_for_the_collector(report):
        assert not waits_for_the_collector(watched(folder / "fixed.py"))
        return
    assert report["verdict"] == "growing", report["reason"]
    assert nodes_told(folder) in ([], nodes_measured(report))
    if folder.name in NAMED_ELSEWHERE:
        return
    assert any(points_at(suspect, lines) for suspect in report["suspects"]), report["suspects"]


@pytest.mark.parametrize("folder", provable(), ids=lambda folder: folder.name)
def test_the_fixed_program_is_steady(folder, watched):
    report = watched(folder / "fixed.py")

    if folder.name in KEEPS_RESULTS:
        assert all(suspect["kind"] != "graph" for suspect in report["suspects"])
        return
    assert report["verdict"] == "steady", (report["reason"], report["suspects"])
