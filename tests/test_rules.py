"""Every rule is a claim; here the claims that need no run are checked for every rule folder.

1. each `# leak:` line of leaky.py is flagged, and no other; so in edge_cases*.py
2. fixed.py is silent, also of every other rule that runs by default
3. fixing leaky.py gives fixed.py, where the rule offers edits
4. README.md has its headings

That leaky.py leaks and fixed.py does not is run in `test_rules_proved.py`.
"""

import re
from pathlib import Path

import pytest

from leakcheck.static import registry
from leakcheck.static.engine import check_source
from leakcheck.static.fix import fix_text

FOLDERS = registry.rule_folders(registry.builtin_rule_set())
HEADINGS = [
    "## What it finds",
    "## Why it leaks",
    "## Leaky",
    "## Fixed",
    "## How fast it leaks (measured)",
    "## When to ignore it",
    "## What it misses",
]
# the others say in words what to write
OFFER_EDITS = {
    "hook-keeps-graph",
    "undetached-accumulator",
    "undetached-collection",
    "undetached-step-output",
}


def each(folders: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("folder", folders, ids=[folder.name for folder in folders])


EACH = each(FOLDERS)
EDGE_CASES = [path for folder in FOLDERS for path in sorted(folder.glob("edge_cases*.py"))]


def marked_lines(source: str, slug: str) -> list[int]:
    mark = re.compile(rf"# leak: .*\b{re.escape(slug)}(?![\w-])")
    return [n for n, line in enumerate(source.splitlines(), 1) if mark.search(line)]


def flagged_lines(path: Path, rule) -> list[int]:
    findings = check_source(path.read_text(encoding="utf-8"), str(path), [rule])
    return sorted({finding.location.line for finding in findings})


@EACH
def test_each_marked_line_of_the_leaky_program_is_flagged_and_no_other(folder):
    rule = registry.load_rule(folder)
    source = (folder / "leaky.py").read_text(encoding="utf-8")

    assert marked_lines(source, rule.slug)
    assert flagged_lines(folder / "leaky.py", rule) == marked_lines(source, rule.slug)


@EACH
def test_the_fixed_program_is_silent(folder):
    assert flagged_lines(folder / "fixed.py", registry.load_rule(folder)) == []


def test_no_rule_that_runs_by_default_flags_a_fixed_program():
    programs = [folder / "fixed.py" for folder in FOLDERS]

    flagged = {
        f"{path.parent.name}: {finding.rule} in line {finding.location.line}"
        for path in programs
        for finding in check_source(path.read_text("utf-8"), str(path), registry.default_rules())
    }

    assert flagged == set()


@pytest.mark.parametrize("path", EDGE_CASES, ids=[f"{p.parent.name}-{p.stem}" for p in EDGE_CASES])
def test_the_edge_cases_are_told_apart(path):
    rule = registry.load_rule(path.parent)

    assert flagged_lines(path, rule) == marked_lines(path.read_text(encoding="utf-8"), rule.slug)


def test_the_rules_that_offer_edits_are_known():
    def offers_edits(folder):
        source = (folder / "leaky.py").read_text(encoding="utf-8")
        findings = check_source(source, "leaky.py", [registry.load_rule(folder)])
        return any(finding.fix and finding.fix.edits for finding in findings)

    assert {folder.name for folder in FOLDERS if offers_edits(folder)} == OFFER_EDITS


@each([folder for folder in FOLDERS if folder.name in OFFER_EDITS])
def test_fixing_the_leaky_program_gives_the_fixed_one(folder):
    rule = registry.load_rule(folder)
    leaky = (folder / "leaky.py").read_text(encoding="utf-8")

    def check(text):
        return check_source(text, "leaky.py", [rule])

    fixed = fix_text(leaky, check, unsafe=True)

    without_marks = re.sub(r"  # leak: [\w-]+", "", fixed.text)
    assert without_marks == (folder / "fixed.py").read_text(encoding="utf-8")
    assert fixed.left == ()


@EACH
def test_the_page_has_its_headings_in_order(folder):
    page = (folder / "README.md").read_text(encoding="utf-8")

    assert [line for line in page.splitlines() if line.startswith("## ")] == HEADINGS
    assert page.startswith("# ")


def test_codes_and_slugs_are_unique():
    rules = registry.builtin_rules()

    assert len({rule.code for rule in rules}) == len({rule.slug for rule in rules}) == len(rules)
