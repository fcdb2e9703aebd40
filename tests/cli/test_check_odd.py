from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOY_RULES = Path(__file__).parent.parent / "toy_rules"
LEAKY = "for x in y:\n    keep(loss)\n"


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("leakcheck.toml").write_text(f'rule-sets = ["{TOY_RULES}"]\nselect = ["TOY101"]\n')
    Path("train.py").write_text(LEAKY)


def in_shell(command: str) -> tuple[int, str]:
    done = subprocess.run(
        f"{sys.executable} -m leakcheck {command}", shell=True, capture_output=True, text=True
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("format", ["full", "concise", "json", "sarif", "github", "gitlab"])
def test_a_file_name_that_is_no_text_is_reported_in_every_format(leakcheck, format):
    try:
        Path(os.fsdecode(b"caf\xe9.py")).write_text(LEAKY)
    except OSError:
        pytest.skip("the file system takes only names in UTF-8")
    os.remove("train.py")
    status, out, err = leakcheck("check", "--no-cache", "--output-format", format)
    assert (status, err) == (1, "")
    assert "caf%E9.py" in out if format == "sarif" else "caf\\udce9.py" in out
    if format in ("json", "sarif", "gitlab"):
        json.loads(out)


def test_a_misspelt_command_is_told_the_nearest_one(leakcheck):
    expected = 'leakcheck: no command is called "chek"; did you mean "check"?\n'
    assert leakcheck("chek") == (2, "", expected)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("args", ["train.py", "--fix - < train.py"])
def test_an_output_that_is_full_is_one_line(args):
    expected = "leakcheck: standard output cannot be written: no space left on device\n"
    assert in_shell(f"check --no-cache {args} > /dev/full") == (2, expected)


def test_a_closed_output_leaves_the_exit_status():
    assert in_shell("check --no-cache train.py >&-") == (1, "")


def test_a_closed_input_is_one_line():
    expected = (2, "leakcheck: standard input is closed\n")
    assert in_shell("check --no-cache - <&-") == expected


@pytest.mark.parametrize("pattern", ["!", "**[z-a]"])
def test_an_exclude_that_is_no_pattern_is_one_line(leakcheck, pattern):
    expected = f'leakcheck: exclude: "{pattern}" is not a pattern as in .gitignore\n'
    assert leakcheck("check", "--config", f'exclude = ["{pattern}"]') == (2, "", expected)


def test_per_file_ignores_that_are_no_pattern_are_one_line(leakcheck):
    expected = 'leakcheck: per-file-ignores: "!" is not a pattern as in .gitignore\n'
    assert leakcheck("check", "--per-file-ignores", "!:TOY101") == (2, "", expected)


def test_a_cache_folder_that_cannot_be_is_as_good_as_none(leakcheck):
    expected = leakcheck("check", "--no-cache")
    assert leakcheck("check", "--config", 'cache-dir = "a\\u0000b"') == expected


def test_a_cache_among_other_files_hides_none_of_them_from_git(leakcheck):
    first = leakcheck("check", "--cache-dir", ".")
    assert not Path(".gitignore").exists()
    assert leakcheck("check", "--cache-dir", ".") == first
    assert first[0] == 1
