from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from leakcheck.cli import explain
from leakcheck.static.checker import all_rules

TOY_RULES = Path(__file__).parent.parent / "toy_rules"
TOYS = ["--config", f'rule-sets = ["{TOY_RULES}"]']


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(leakcheck):
    return lambda *args: leakcheck("explain", *args)


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.slug)
def test_every_rule_has_a_page_under_its_name_and_its_code(run, rule):
    status, page, _ = run(rule.slug)

    assert status == 0
    assert page.startswith("# ")
    assert run(rule.code) == (0, page, "")


def test_a_page_in_colour_has_the_same_words(run):
    plain = run("undetached-accumulator")[1]
    out = run("undetached-accumulator", "--color", "always")[1]

    assert "\x1b[1m## What it finds\x1b[0m" in out
    assert "\x1b[36m```python\n" in out
    assert click.unstyle(out) == plain


def test_the_page_is_there_for_programs(run):
    answer = json.loads(run("LK001", "--output-format", "json")[1])

    assert (answer["rule"], answer["code"]) == ("unused-suppression", "LK001")
    assert answer["page"].startswith("# unused-suppression (LK001)")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["unused-supression"],
         'no rule is called "unused-supression"; did you mean "unused-suppression"?'),
        (["TOY10", *TOYS], '"TOY10" stands for several rules; name one of keeps-loss, sums-loss, '
                           "calls-keeper"),
        (["LK001", "--prove"],
         "unused-suppression has no leaky.py to run, so nothing can be proved"),
        (["exit-status"],
         'no rule or topic is called "exit-status"; did you mean "exit-statuses"?'),
        (["harm", "--prove"], "--prove runs the programs of a rule, not harm"),
        (["--prove"], "--prove runs the programs of a rule"),
    ],
)  # fmt: skip
def test_what_cannot_be_explained_is_told_in_one_line(run, args, message):
    assert run(*args) == (2, "", f"leakcheck: {message}\n")


def test_a_program_that_is_not_as_claimed_fails_the_proof(run, monkeypatch):
    verdicts = {"leaky.py": "growing", "fixed.py": "growing"}
    monkeypatch.setattr(explain, "_programs", lambda rule: list(map(Path, verdicts)))
    monkeypatch.setattr(
        explain, "_prove", lambda path: explain.Proof(path.name, verdicts[path.name])
    )

    assert run("LK001", "--prove") == (1, "leaky.py: growing\nfixed.py: growing\n", "")
