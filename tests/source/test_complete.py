"""When no other code of the program will come: only then is what nothing calls never called."""

from __future__ import annotations

import pytest

from leakcheck.runtime.attribution import sources
from leakcheck.runtime.introspection import frames

METER = """\
class Meter:
    def __init__(self):
        self.kept = []
    def reset(self):
        self.kept.clear()
    def add(self, x):
        self.kept.append(x)
"""
IMPORTS = {
    "import a_users_end": False,
    "from a_users_end import finish": False,
    "from .a_users_end import finish": False,
    "import json, no_such_module": True,
    "import pytest.no_such_part": True,
}


@pytest.fixture
def program(monkeypatch, tmp_path):
    """Let files be the whole program; returns how to add one. No test runs, for all it knows."""
    paths: list[str] = []

    def add(text: str, name: str = "train.py") -> str:
        path = tmp_path / name
        path.write_text(text)
        paths.append(str(path))
        return str(path)

    monkeypatch.setattr(frames, "own_files_with", lambda word: paths)
    monkeypatch.setattr(sources, "running_test", lambda: "")
    monkeypatch.syspath_prepend(tmp_path)
    return add


@pytest.mark.parametrize(("imported", "complete"), IMPORTS.items())
def test_a_module_of_the_users_that_is_loaded_later_may_call_anything(
    program, tmp_path, imported, complete
):
    (tmp_path / "a_users_end.py").write_text("def finish(meter):\n    meter.reset()\n")
    path = program(f"{METER}def end():\n    {imported}\n")

    assert sources.is_complete([path]) is complete


@pytest.mark.parametrize(("running", "complete"), [("train.py", True), ("tests/test_it.py", False)])
def test_in_a_test_only_its_own_file_is_known_to_be_all(program, monkeypatch, running, complete):
    monkeypatch.setattr(sources, "running_test", lambda: running)

    assert sources.is_complete([program(METER)]) is complete


def test_a_program_of_many_files_is_never_known_whole(program):
    paths = [program("", f"part_{number}.py") for number in range(sources.MOST_FILES + 1)]

    assert sources.is_complete(paths[:-1])
    assert not sources.is_complete(paths)
