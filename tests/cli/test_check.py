from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOY_RULES = Path(__file__).parent.parent / "toy_rules"
SETTINGS = f'rule-sets = ["{TOY_RULES}"]\nselect = ["TOY101", "TOY102", "LK001"]\n'
LEAKY = "for x in y:\n    keep(loss)\n    total += loss\n"


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    Path("leakcheck.toml").write_text(SETTINGS)


@pytest.fixture
def run(leakcheck):
    return lambda *args, stdin=b"": leakcheck("check", *args, stdin=stdin)


def write(name: str, text: str | bytes) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


FULL = """\
train.py:2:5: keeps-loss (TOY101): `loss` is kept with its graph
  |
2 |     keep(loss)
  |     ^^^^^^^^^^
  = help: give it loss.detach()

train.py:3:5: sums-loss (TOY102): the sum keeps the graph of every loss
  |
3 |     total += loss
  |     ^^^^^^^^^^^^^
  = help: use loss.item()

2 findings in 1 of 1 file (1 fixable with --fix, 1 with --fix --unsafe-fixes)
"""


def test_findings_are_shown_with_their_line_and_exit_with_1(run):
    write("train.py", LEAKY)

    assert run() == (1, FULL, "")


def test_a_clean_tree_exits_with_0(run):
    write("train.py", "x = 1\n")

    assert run() == (0, "no leaks found in 1 file\n", "")


def test_a_file_that_cannot_be_checked_alone_exits_with_2(run):
    write("bad.py", "# torch\nx = '\xff'\n".encode("latin-1"))

    assert run() == (
        2,
        "bad.py: is not utf-8: byte 0xff at offset 13\n\n"
        "no leaks found in 0 files, 1 file not checked\n",
        "",
    )


def test_no_files_at_all_is_said_and_is_no_failure(run):
    assert run("--output-format", "concise") == (0, "", "leakcheck: no Python files found\n")


def test_quiet_prints_findings_and_nothing_else(run):
    write("clean.py", "x = 1\n")
    assert run("-q") == (0, "", "")

    write("train.py", LEAKY)
    assert run("-q", "--output-format", "full") == (1, FULL[: FULL.index("\n2 findings")], "")


def test_exit_zero_is_for_findings_only(run):
    write("train.py", LEAKY)
    assert run("--exit-zero", "-q")[0] == 0

    write("train.py", "def f(:\n")
    assert run("--exit-zero", "-q")[0] == 2


@pytest.mark.parametrize(
    ("args", "codes"),
    [
        (["--select", "TOY101"], ["TOY101"]),
        (["--select=TOY101,sums-loss"], ["TOY101", "TOY102"]),
        (["--ignore", "keeps-loss"], ["TOY102"]),
        (["--select", "TOY102", "--extend-select", "TOY101"], ["TOY101", "TOY102"]),
        (["--per-file-ignores", "train.py:TOY101,TOY102"], []),
        (["--per-file-ignores", "other.py:TOY101"], ["TOY101", "TOY102"]),
        (["--config", 'select = ["TOY101"]'], ["TOY101"]),
        (["--config", 'ignore = ["TOY101"]', "--config", 'select=["TOY"]'], ["TOY102"]),
    ],
)
def test_rules_are_chosen_on_the_command_line(run, args, codes):
    write("train.py", LEAKY)

    _, out, _ = run("--output-format", "json", *args)

    assert [finding["code"] for finding in json.loads(out)["findings"]] == codes


def test_isolated_reads_no_settings(run):
    write("train.py", LEAKY)

    assert run("--isolated") == (0, "no leaks found in 1 file\n", "")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--select", "keeps-los"], 'no rule is called "keeps-los"; did you mean "keeps-loss"?'),
        (["--ignore", "zzz"], 'no rule is called "zzz"; `leakcheck rules` lists them all'),
        (["nowhere.py"], "no such file or folder: nowhere.py"),
        (["--config", "nowhere.toml"], "nowhere.toml: cannot be read: no such file or directory"),
        (["--config", "selct = []"], "--config has no setting `selct`; did you mean `select`?"),
        (["--config", "select = 5"], "--config select must be a list, not a whole number"),
        (["--output-file", "no/such/folder.txt"],
         "no/such/folder.txt: cannot be written: no such file or directory"),
        (["--baseline", "nowhere.json"],
         "{here}/nowhere.json: cannot be read: no such file or directory"),
        (["--per-file-ignores", "x"],
         "Invalid value for '--per-file-ignores': \"x\" must look like tests/:LK101"),
        (["-", "train.py"], "`-` reads standard input, and cannot be given with other paths"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said_in_one_line_and_exits_with_2(run, args, message):
    write("train.py", LEAKY)

    assert run(*args) == (2, "", f"leakcheck: {message.replace('{here}', os.getcwd())}\n")


def test_standard_input_is_checked_under_the_name_it_is_given(run):
    Path("leakcheck.toml").write_text(SETTINGS + 'per-file-ignores = {"tests/" = ["TOY102"]}\n')
    args = ["-", "--output-format", "concise", "--stdin-filename"]

    status, out, _ = run(*args, "tests/a.py", stdin=LEAKY.encode())

    assert (status, out) == (1, "tests/a.py:2:5: keeps-loss: `loss` is kept with its graph\n")


def test_broken_standard_input_is_one_line(run):
    assert run("-", "-q", stdin=b"def f(:\n")[0] == 2
    assert run("-", "-q", "--fix", stdin=b"\xff\x00")[:2] == (2, "stdin.py: is binary\n")


def notebook(*sources: str) -> str:
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None,
              "source": source.splitlines(keepends=True)} for source in sources]  # fmt: skip
    return json.dumps(
        {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1
    )


def test_notebooks_are_checked_and_fixed_cell_by_cell(run):
    before = notebook("%matplotlib inline\nx = 1", "!ls\nif x:\n    keep(loss)")
    write("eda.ipynb", before)

    status, out, _ = run("--output-format", "concise")
    assert (status, out) == (
        1, "eda.ipynb:cell 2:3:5: keeps-loss: `loss` is kept with its graph\n"
    )  # fmt: skip

    assert run("--fix", "-q") == (0, "", "")
    assert Path("eda.ipynb").read_text() == before.replace("keep(loss)", "keep(loss.detach())")


def test_statistics_count_by_rule(run):
    write("a.py", LEAKY + "    keep(loss)\n")

    assert run("--statistics") == (1, "    2  TOY101  keeps-loss\n    1  TOY102  sums-loss\n", "")
    assert json.loads(run("--statistics", "--output-format", "json")[1])[0] == {
        "code": "TOY101", "rule": "keeps-loss", "count": 2
    }  # fmt: skip


def test_show_files_lists_what_would_be_checked(run):
    write("b.py", "")
    write("a/c.ipynb", "")
    write("x.txt", "")

    assert run("--show-files") == (0, "a/c.ipynb\nb.py\n", "")


def test_the_nearest_settings_count_for_each_file(run):
    write("a.py", LEAKY)
    write("lib/b.py", LEAKY)
    write(
        "lib/pyproject.toml", f'[tool.leakcheck]\nrule-sets = ["{TOY_RULES}"]\nselect=["TOY102"]\n'
    )

    _, out, _ = run("--output-format", "concise")

    assert [line.split(": ")[:2] for line in out.splitlines()] == [
        ["a.py:2:5", "keeps-loss"], ["a.py:3:5", "sums-loss"], ["lib/b.py:3:5", "sums-loss"]
    ]  # fmt: skip


def test_excluded_files_named_by_a_hook_are_skipped_when_exclusion_is_forced(run):
    Path("leakcheck.toml").write_text(SETTINGS + 'exclude = ["vendor/"]\n')
    write("vendor/a.py", LEAKY)

    assert run("vendor/a.py", "-q")[0] == 1
    assert run("vendor/a.py", "--force-exclude", "-q") == (0, "", "")


def test_colour_is_for_terminals_and_those_who_ask(run, monkeypatch):
    write("train.py", LEAKY)
    assert "\x1b[" not in run()[1]
    assert "\x1b[" in run("--color", "always")[1]

    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in run()[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run()[1]


def test_the_report_is_written_to_a_file(run):
    write("train.py", LEAKY)

    assert run("--output-file", "out.txt", "--color", "auto") == (1, "", "")
    assert Path("out.txt").read_text() == FULL


def in_a_process(*args: str, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "leakcheck", "check", *args]
    return subprocess.run(command, capture_output=True, **options)


def test_a_reader_who_goes_away_is_no_error():
    write("train.py", LEAKY * 3000)
    command = f"{sys.executable} -m leakcheck check --output-format concise | head -1"

    done = subprocess.run(command, shell=True, capture_output=True, text=True)

    assert done.stdout == "train.py:2:5: keeps-loss: `loss` is kept with its graph\n"
    assert done.stderr == ""


def test_an_output_that_cannot_hold_a_character_gets_an_escape():
    write("é.py", "'é'; keep(loss)\n")

    done = in_a_process("--output-format", "full", env=os.environ | {"PYTHONIOENCODING": "ascii"})

    assert done.returncode == 1
    assert rb"\xe9.py:1:6: keeps-loss" in done.stdout
    assert done.stderr == b""
