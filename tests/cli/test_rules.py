from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

from leakcheck.cli.rules import BEGIN, END, with_index
from leakcheck.static.checker import all_rules
from leakcheck.static.registry import builtin_rule_set, load_rule

TESTS = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(leakcheck):
    return leakcheck


def test_every_rule_is_listed_with_its_code_and_what_it_finds(run):
    status, out, _ = run("rules")

    lines = out.splitlines()
    assert status == 0
    assert len(lines) == len(all_rules())
    for line, rule in zip(lines, all_rules(), strict=True):
        mark = "*" if rule.default else " "
        assert re.fullmatch(
            rf"{rule.code} {re.escape(mark)} {rule.slug} +{re.escape(rule.summary)}", line
        )


def test_the_list_is_there_for_programs(run):
    listed = json.loads(run("rules", "--output-format", "json")[1])

    assert [rule["rule"] for rule in listed] == [rule.slug for rule in all_rules()]
    assert set(listed[0]) == {"rule", "code", "summary", "help", "default", "severity"}


def test_the_index_in_the_rules_folder_is_current():
    index = (builtin_rule_set() / "README.md").read_text(encoding="utf-8")

    assert with_index(index, builtin_rule_set()) == index, "run `leakcheck rules index`"


def test_the_index_of_any_rule_set_is_brought_up_to_date(run):
    run("rules", "new", "kept-tensor")
    Path("rules/README.md").write_text(f"# Ours\n\n{BEGIN}\nold\n{END}\nThe end.\n")

    assert run("rules", "index") == (0, "", "")

    assert (
        Path("rules/README.md").read_text()
        == f"""\
# Ours

{BEGIN}

## LK9xx Others

| code | rule | default | finds |
|---|---|---|---|
| LK901 | [kept-tensor](kept-tensor/README.md) | yes | a tensor from every step is kept in a list |

{END}
The end.
"""
    )


@pytest.mark.parametrize("text", [None, "# no marks\n"])
def test_an_index_that_has_no_place_is_told_in_one_line(run, text):
    run("rules", "new", "kept-tensor")
    if text:
        Path("rules/README.md").write_text(text)

    status, out, err = run("rules", "index")

    assert (status, out) == (2, "")
    reason = f"has no lines {BEGIN} and {END}" if text else "no such file or directory"
    assert err == f"leakcheck: rules/README.md: {reason}\n"


def test_a_new_rule_works_before_its_first_edit(run):
    status, out, _ = run("rules", "new", "kept-tensor", "--to", "ci/rules")
    settings = ["--config", 'rule-sets = ["ci/rules"]', "--select", "kept-tensor"]

    assert (status, out) == (
        0, "ci/rules/kept-tensor: edit rule.py, README.md, leaky.py and fixed.py\n"
    )  # fmt: skip
    folder = Path("ci/rules/kept-tensor")
    marked = [
        f"{folder}/leaky.py:{number}"
        for number, line in enumerate((folder / "leaky.py").read_text().splitlines(), start=1)
        if line.endswith("# leak: kept-tensor")
    ]
    status, out, _ = run("check", "ci/rules", "--output-format", "concise", *settings)
    assert status == 1
    assert [":".join(line.split(":")[:2]) for line in out.splitlines()] == marked
    assert len(marked) == 1


def test_a_new_rules_page_has_the_headings_every_page_has(run):
    run("rules", "new", "kept-tensor")

    page = Path("rules/kept-tensor/README.md").read_text()

    assert re.findall("^## (.*)", page, re.MULTILINE) == [
        "What it finds", "Why it leaks", "Leaky", "Fixed", "How fast it leaks (measured)",
        "When to ignore it", "What it misses",
    ]  # fmt: skip


def test_new_rules_take_the_next_free_code(run):
    run("rules", "new", "one")
    run("rules", "new", "two")

    assert [load_rule(Path("rules") / slug).code for slug in ("one", "two")] == ["LK901", "LK902"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["Bad_Name"], '"Bad_Name" is no slug; use lower-case-words'),
        (["../escape"], '"../escape" is no slug; use lower-case-words'),
        (["undetached-accumulator"], "undetached-accumulator is there already"),
        (["fine", "--code", "nope"], '"nope" is no code; it must look like LK901'),
        (["fine", "--code", "LK101"], "LK101 is taken"),
        (["fine", "--to", "/proc/none"],
         "/proc/none/fine: cannot be written: no such file or directory"),
    ],
)  # fmt: skip
def test_a_rule_that_cannot_begin_is_told_in_one_line(run, args, message):
    assert run("rules", "new", *args) == (2, "", f"leakcheck: {message}\n")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("indx", 'did you mean "leakcheck rules index"?'),
        ("growing-cach", 'did you mean "leakcheck explain growing-cache"?'),
        ("lk303", 'did you mean "leakcheck explain LK303"?'),
        ("nope", "there are new, index; `leakcheck explain RULE` explains a rule"),
    ],
)
def test_an_unknown_sub_command_is_answered_with_what_is_near(run, name, hint):
    assert run("rules", name) == (2, "", f'leakcheck: no sub-command is called "{name}"; {hint}\n')


def test_every_claim_that_is_tested_of_our_rules_holds_for_a_new_one(run):
    run("rules", "new", "kept-tensor")
    spec = importlib.util.spec_from_file_location("claims", TESTS / "test_rules.py")
    claims = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(claims)
    tests = [test for name, test in vars(claims).items() if name.startswith("test_")]
    of_every_rule = [test for test in tests if claims.EACH.mark in getattr(test, "pytestmark", [])]

    for test in of_every_rule:
        test(Path("rules/kept-tensor").absolute())

    assert len(of_every_rule) == 3


@pytest.mark.slow
def test_a_new_rules_programs_do_what_it_claims(run):
    pytest.importorskip("torch")
    run("rules", "new", "kept-tensor", "--to", "rules")

    status, out, err = run("explain", "kept-tensor", "--prove", "--config", 'rule-sets = ["rules"]')

    assert (status, err) == (0, "")
    assert out.splitlines()[0].startswith("leaky.py: growing, tensor: 1 object and 4.")
    assert out.splitlines()[1] == "fixed.py: steady"


pytestmark = pytest.mark.usefixtures("forked_python")
