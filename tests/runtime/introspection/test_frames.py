"""Whose code it is: the program's own, or installed."""

from __future__ import annotations

import sys

import pytest

from leakcheck.runtime.introspection import frames
from leakcheck.static.registry import builtin_rule_set, builtin_rules, rule_folders


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder as `pip install --target` leaves it, with a program beside what was installed."""
    record = tmp_path / "meter-1.0.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("meter/__init__.py,sha256=x,1\nsingle.py,sha256=y,1\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    frames.is_own.cache_clear()
    yield tmp_path
    frames.is_own.cache_clear()


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("train.py", True),
        ("meters/mine.py", True),
        ("meter/__init__.py", False),
        ("meter/deep/er.py", False),
        ("single.py", False),
    ],
)
def test_what_was_installed_to_a_folder_is_not_the_programs_own(folder, path, own):
    assert frames.is_own(str(folder / path)) is own


def test_a_rule_that_was_loaded_is_no_file_of_the_program():
    ours = {str(folder / "rule.py") for folder in rule_folders(builtin_rule_set())}
    builtin_rules()

    found = set(frames.own_files_with("Rule"))

    assert __file__ in found
    assert not found & ours


def test_a_path_is_shown_whole_where_the_working_folder_is_gone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = f"{tmp_path}/train.py"

    assert frames.shown(path) == "train.py"
    tmp_path.rmdir()
    assert frames.shown(path) == path
