"""A method that would empty what grows is no hope where no line of the program calls it."""

from __future__ import annotations

import importlib.util
import linecache
import sys
import textwrap

import pytest

from leakcheck.model import Place, Suspect
from leakcheck.runtime.attribution import uncalled
from leakcheck.runtime.attribution.assignments import tree_of
from leakcheck.runtime.attribution.guards import limiting_place
from leakcheck.runtime.attribution.perhaps import emptied_at
from leakcheck.runtime.attribution.removals import removed_at
from leakcheck.runtime.attribution.uncalled import to_be_called, uncalled_lines
from leakcheck.runtime.introspection import frames
from tests.holders import held_by

METER = """
class Meter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.kept = []

    def add(self, x):
        self.kept.append(x)

meter = Meter()
"""


@pytest.fixture
def module(tmp_path):
    """Load a module of the user's from a source; its name is its file's."""
    loaded = []

    def load(source: str, name: str = "a_users_meter") -> str:
        path = tmp_path / f"{name}.py"
        path.write_text(textwrap.dedent(source))
        linecache.checkcache()
        tree_of.cache_clear()
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        loaded.append(name)
        spec.loader.exec_module(sys.modules[name])
        return str(path)

    yield load
    for name in loaded:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def _only_the_program(monkeypatch, tmp_path):
    """Leave out the tests' own modules, and that a test runs."""
    files = frames.own_files_with
    monkeypatch.setattr(
        frames,
        "own_files_with",
        lambda word: (file for file in files(word) if file.startswith(str(tmp_path))),
    )
    monkeypatch.setattr(uncalled, "running_test", lambda: "")
    uncalled._uncalled.cache_clear()


def suspect_in(path: str, line: int = 10) -> Suspect:
    held = "attribute `Meter.kept`, from global `meter`"
    return Suspect(
        "tensor", "", holder=held_by(held), locations=(Place(path, line, ""),), fix="keep less"
    )


def test_a_reset_that_only_the_constructor_calls_is_uncalled(module):
    path = module(METER)

    assert uncalled_lines(path) == {6, 7}
    assert emptied_at([suspect_in(path)]) is None
    assert removed_at([suspect_in(path)], {}) is None


def test_what_a_method_calls_by_its_own_name_is_another_s(module):
    source = METER.replace("reset", "clear").replace("self.kept = []", "self.kept.clear()")

    assert uncalled_lines(module(source.replace("self.clear()", "self.kept = []"))) == {6, 7}


def test_it_is_what_there_is_to_do(module):
    fix = "call .reset() when what is kept has been used: nothing does; or keep numbers (.item())"

    assert to_be_called(suspect_in(module(METER))).fix == fix


@pytest.mark.parametrize(
    "calls",
    [
        "def train():\n    meter.reset()\n",
        "def train(meters):\n    [each.reset() for each in meters]\n",
        "at_end = meter.reset\n",
        "at_end = Meter.reset\n",
        "getattr(meter, 'reset')()\n",
        "import operator\nagain = operator.methodcaller('reset')\n",
        "def call(thing, name):\n    getattr(thing, name)()\n",
        "def call(text):\n    exec(text)\n",
        "class Epoch(Meter):\n    pass\n",  # whose base may be called by a library
    ],
)
def test_it_is_not_where_something_may_call_it(module, calls):
    path = module(METER + calls)

    assert uncalled_lines(path) == frozenset()
    assert emptied_at([suspect_in(path)]) is not None
    assert to_be_called(suspect_in(path)).fix == "keep less"


def test_nor_where_another_file_calls_it(module):
    path = module(METER)
    module("def finish(meter):\n    meter.reset()\n", "another_users_file")

    assert uncalled_lines(path) == frozenset()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class Meter:", "import threading\nclass Meter(threading.local):"),  # a library's
        ("    def reset", "    @(lambda method: method)\n    def reset"),
        ("self.reset()", "self.later = lambda: self.reset()"),
        ("reset", "on_epoch_end"),  # as libraries call it
        ("reset", "flush"),
    ],
)
def test_nor_where_a_library_may(module, old, new):
    assert uncalled_lines(module(METER.replace(old, new))) == frozenset()


@pytest.mark.parametrize(
    ("imported", "uncalled"),
    [
        ("import a_users_end", 0),
        ("from a_users_end import finish", 0),
        ("from .a_users_end import finish", 0),
        ("import torch.utils.benchmark.examples.compare", 2),
        ("import json, no_such_module", 2),
    ],
)
def test_a_module_that_is_loaded_later_may_call_it(
    module, monkeypatch, tmp_path, imported, uncalled
):
    (tmp_path / "a_users_end.py").write_text("def finish(meter):\n    meter.reset()\n")
    monkeypatch.syspath_prepend(tmp_path)

    assert len(uncalled_lines(module(f"{METER}\ndef end():\n    {imported}\n"))) == uncalled


def test_what_is_chosen_by_its_name_from_a_module_is_no_method(module):
    chosen = "import collections\nkind = 'deque'\nmade = getattr(collections, kind)()\n"

    assert uncalled_lines(module(chosen + METER)) == {9, 10}


def test_a_cell_of_a_notebook_may_have_its_calls_in_the_next(tmp_path):
    path = tmp_path / "cell.py"
    path.write_text(METER)

    assert uncalled_lines(str(path)) == frozenset()


@pytest.mark.parametrize(("running", "lines"), [("a_users_meter.py", 2), ("tests/test_it.py", 0)])
def test_in_a_test_only_its_own_file_is_known_to_be_all(module, monkeypatch, running, lines):
    monkeypatch.setattr(uncalled, "running_test", lambda: running)

    assert len(uncalled_lines(module(METER))) == lines


def test_a_trim_that_nobody_calls_is_no_limit(module):
    trim = METER + "def trim(meter):\n    {}\n"
    method = METER.replace("    def reset", "    def trim(self):\n{}\n    def reset")
    method = method.format("        if len(self.kept) > 90:\n            self.kept.pop(0)")
    path = module(method)

    assert limiting_place(suspect_in(path, 14)) is None
    called = module(trim.format("meter.trim()").replace(METER, method), "called_users_meter")
    assert limiting_place(suspect_in(called, 14)) is not None
