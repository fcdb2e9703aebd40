from __future__ import annotations

import json
from pathlib import Path

import pytest

from leakcheck.baseline import (
    AcceptedFinding,
    compare,
    make_baseline,
    read_baseline,
    write_baseline,
)
from leakcheck.errors import WriteError
from leakcheck.model import Finding, Location

TOY_RULES = Path(__file__).parent.parent / "toy_rules"
SETTINGS = f'rule-sets = ["{TOY_RULES}"]\nselect = ["TOY101", "TOY102"]\n'


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("leakcheck.toml").write_text(SETTINGS)


@pytest.fixture
def run(leakcheck):
    return leakcheck


def check(run, *args: str) -> tuple[int, list[str], str]:
    status, out, err = run("check", "--output-format", "concise", *args)
    return status, [line.split(": ")[0] for line in out.splitlines()], err


def test_accepted_findings_are_not_reported_and_new_ones_are(run):
    Path("a.py").write_text("keep(loss)\n")
    assert run("baseline") == (0, "accepted 1 finding in .leakcheck-baseline.json\n", "")
    assert check(run) == (0, [], "")

    Path("a.py").write_text("# lines above change nothing\n\nkeep(loss)\ntotal += loss\n")

    assert check(run) == (1, ["a.py:4:1"], "")
    assert check(run, "--no-baseline") == (1, ["a.py:3:1", "a.py:4:1"], "")


def test_a_second_copy_of_an_accepted_line_is_new(run):
    Path("a.py").write_text("keep(loss)\n")
    run("baseline")

    Path("a.py").write_text("keep(loss)\nkeep(loss)\n")

    assert check(run) == (1, ["a.py:2:1"], "")


def test_the_baseline_holds_from_any_folder(run, monkeypatch):
    Path("lib").mkdir()
    Path("lib/a.py").write_text("keep(loss)\n")
    run("baseline")

    monkeypatch.chdir("lib")

    assert check(run) == (0, [], "")


def test_entries_that_nothing_matches_are_told_for_the_files_that_were_checked(run):
    Path("a.py").write_text("keep(loss)\n")
    Path("b.py").write_text("keep(loss)\n")
    run("baseline")
    Path("a.py").write_text("x = 1\n")

    assert check(run, "b.py") == (0, [], "")
    stale = "leakcheck: .leakcheck-baseline.json: 1 accepted finding is gone"
    assert check(run) == (0, [], f"{stale}; run `leakcheck baseline`\n")
    assert check(run, "-q") == (0, [], "")


def test_the_file_is_sorted_with_an_entry_a_line(run):
    Path("b.py").write_text("keep(loss)\n")
    Path("a.py").write_text("total += loss\nkeep(loss)\nkeep(loss)\n")
    run("baseline", "--output-file", "known.json")

    text = Path("known.json").read_text()

    entries = json.loads(text)["findings"]
    assert [(e["path"], e["rule"], e["count"]) for e in entries] == [
        ("a.py", "keeps-loss", 2), ("a.py", "sums-loss", 1), ("b.py", "keeps-loss", 1)
    ]  # fmt: skip
    assert len(text.splitlines()) == 4 + len(entries) + 1
    assert check(run, "--baseline", "known.json") == (0, [], "")


ENTRY: dict[str, object] = {"path": "a.py", "rule": "sums-loss", "fingerprint": "0123456789ab"}


def known(*entries: dict[str, object]) -> str:
    return json.dumps({"format": 1, "findings": entries})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is not a baseline: "),
        ("[]", "is not a baseline: "),
        ('{"format": 1}', "is not a baseline: "),
        ('{"format": 9, "findings": []}', "is of format 9; this leakcheck reads 1"),
        (known(ENTRY | {"count": 0}), "is not a baseline: "),
        (known(ENTRY | {"count": True}), "is not a baseline: "),
        (known(ENTRY | {"fingerprint": "x"}), "is not a baseline: "),
        (known(ENTRY | {"path": ""}), "is not a baseline: "),
        (known(ENTRY | {"cuont": 3}), "is not a baseline: "),
        (known(ENTRY, ENTRY | {"count": 2}), "has the same entry twice, sums-loss in a.py"),
    ],
)
def test_a_baseline_that_cannot_be_read_is_one_line(run, text, reason):
    Path("a.py").write_text("x = 1\n")
    Path(".leakcheck-baseline.json").write_text(text)

    status, _, err = run("check")

    assert status == 2
    assert err.count("\n") == 1
    assert f"baseline.json: {reason}" in err


def finding(path: str, context: str = "keep(loss)") -> Finding:
    return Finding("r", "LK999", Location(path, 1, 1, 1, 2), "leaks", context=context)


def test_what_is_written_is_what_is_read(tmp_path):
    entries = make_baseline([finding("é.py"), finding("a.py"), finding("a.py", "x")], tmp_path)

    write_baseline(tmp_path / "b.json", entries)
    write_baseline(tmp_path / "empty.json", ())

    assert read_baseline(tmp_path / "b.json") == entries
    assert read_baseline(tmp_path / "empty.json") == ()


def test_an_entry_for_a_file_that_is_gone_is_stale(tmp_path):
    (entry,) = make_baseline([finding("gone.py")], tmp_path)

    compared = compare([], [entry], tmp_path, judged=())

    assert compared.stale == (AcceptedFinding("gone.py", "r", entry.fingerprint, 1),)


def test_a_baseline_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(WriteError, match=r"cannot be written: no such file or directory$"):
        write_baseline(tmp_path / "no" / "b.json", ())
