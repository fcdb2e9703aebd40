"""What is ruled out before a file is parsed has nothing in it: `concerns` never costs a finding."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from leakcheck.errors import SourceError
from leakcheck.static import syntax
from leakcheck.static.checker import all_rules
from leakcheck.static.flow.prospects import OutlineProspects
from leakcheck.static.module import Module
from leakcheck.static.registry import builtin_rule_set, rule_folders

RULES = all_rules()
PROGRAMS = [file for folder in rule_folders(builtin_rule_set()) for file in folder.glob("*.py")]
SNIPPETS = sorted(Path(__file__).parent.glob("test_*.py"))


def snippets(file: Path) -> Iterator[str]:
    """Yield the programs that a test file has as strings of several lines."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
            yield textwrap.dedent(node.value)


def passed_over_for_nothing(source: str) -> list[str]:
    """Name the rules that do not look at the source, and would have found something in it."""
    try:
        outline, tree = syntax.outline(source), syntax.parse(source)
    except SourceError:
        return []  # prose, or a program with holes to fill in
    if outline is None:
        return []
    passing = [rule for rule in RULES if not rule().concerns(outline)]
    module = Module(source, tree)
    return [rule.slug for rule in passing if list(rule().check(module))]


def test_no_rule_passes_over_a_rules_program_that_it_has_a_finding_in():
    found = {file: passed_over_for_nothing(file.read_text(encoding="utf-8")) for file in PROGRAMS}

    assert {file: slugs for file, slugs in found.items() if slugs} == {}


@pytest.mark.parametrize("file", SNIPPETS, ids=[file.stem for file in SNIPPETS])
def test_no_rule_passes_over_a_program_of_these_tests_that_it_has_a_finding_in(file):
    assert {name for text in snippets(file) for name in passed_over_for_nothing(text)} == set()


def concerned(text: str) -> OutlineProspects:
    """Look at a program of a few lines."""
    outline = syntax.outline(textwrap.dedent(text))
    assert outline is not None
    return OutlineProspects(outline)


@pytest.mark.parametrize(
    ("line", "sums"),
    [
        ("total += loss", True),
        ("total = total + loss", True),
        ("total = (total + loss).clone()", True),
        ("total = torch.add(total, loss)", True),
        ("stats['loss'] = old + loss", True),
        ("total.add_(loss)", True),
        ("count += 1", False),
        ("batch = batch.to(device)", False),
        ("loss = step(batch)", False),
    ],
)
def test_a_loop_runs_on_with_a_sum_of_more_than_numbers(line: str, sums: bool):
    assert concerned(f"for batch in loader:\n    {line}").runs_on is sums
    assert not concerned(f"for number in range(9):\n    {line}\n").late


def test_the_module_torch_utils_data_cuts_no_graph():
    text = "import torch\n\nfor x in loader:\n    found.append(x)\n{}"

    assert concerned(text.format("show(found.data)")).late
    assert not concerned(text.format("torch.utils.data.get_worker_info()")).late


def test_data_is_evaluated_where_a_name_says_so_or_outside_of_functions():
    text = "def {}(loader):\n    return [model(x) for x in loader]\n"

    assert concerned(text.format("validate")).evaluates
    assert concerned("for x in loader:\n    model(x)\n").evaluates
    assert not concerned(text.format("collate")).evaluates
