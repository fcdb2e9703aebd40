"""Statements in other functions and files of the program's that may take something away."""

from __future__ import annotations

import importlib
import itertools
import sys

import pytest

from leakcheck.runtime.attribution.removals import removed_at

_numbers = itertools.count()


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """Load another file of the program's, with a source."""
    loaded = []

    def beside(source: str) -> None:
        loaded.append(f"beside_{next(_numbers)}")  # sources are remembered
        (tmp_path / f"{loaded[-1]}.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        importlib.invalidate_caches()
        importlib.import_module(loaded[-1])

    yield beside
    for name in loaded:
        del sys.modules[name]


POLICIES = """
def apply_policy(rows, n):
    while len(rows) > n:
        rows.pop(0)

def tell_of(rows):
    print(rows)

def by_policy(rows, policy):
    policy(rows)

def by_model(rows, model):
    return model(rows)

class Keeper:
    def __init__(self, n, rows):
        self.looked_after, self.n = rows, n
        self.kept_rows = rows

    def turn(self):
        del self.kept_rows[: -self.n]

class Reader:
    def __init__(self, rows):
        self.read_rows = rows
"""


@pytest.mark.parametrize(
    ("statement", "takes"),
    [
        ("policies.apply_policy(kept, 9)", True),
        ("policies.tell_of(kept)", False),
        ("Keeper(9, kept)", True),
        ("Reader(kept)", False),
        ("policies.by_policy(kept, p)", True),
        ("policies.by_model(kept, m)", False),
    ],
)
def test_functions_and_classes_of_other_files_are_looked_into(named, beside, statement, takes):
    beside(POLICIES)
    suspect = named(f"kept.append(x)\n{statement}\n")

    assert (removed_at([suspect], {}) is not None) is takes


@pytest.mark.parametrize(
    ("statement", "takes"),
    [
        ("del meter.kept_by_meter[0]", True),
        ("meter.kept_by_meter.popleft()", True),
        ("meter.kept_by_meter = meter.kept_by_meter[1:]", True),
        ("meter.kept_by_meter = [r for r in meter.kept_by_meter if r.fresh()]", True),
        ("meter.kept_by_meter = meter.kept_by_meter - step", False),  # of whatever has one
        ("print(meter.kept_by_meter)", False),
    ],
)
def test_another_file_may_take_out_of_an_attribute(named, beside, statement, takes):
    beside(f"def turn(meter):\n    {statement}\n")
    holder = "attribute `Meter.kept_by_meter`, from global `meter`"
    suspect = named("meter.kept_by_meter.append(x)\n", holder, ".kept_by_meter")
    found = removed_at([suspect], {})

    assert (found is not None and found.code == statement) is takes


ALIASES = """
class Log:
    def add(self, x):
        self.kept.append(x)

    def trim(self):
        {statement}
        for _ in range(len(kept) - self.most):
            kept.pop(0)

log = Log()
"""


@pytest.mark.parametrize(
    ("statement", "takes"),
    [
        ("kept = self.kept", True),
        ("rows = kept = self.kept", True),
        ("kept: list = self.kept", True),
        ("kept, n = self.kept, 9", True),
        ("print(kept := self.kept)", True),
        ("kept = getattr(self, 'kept')", True),
        ("kept = getattr(type(self), where)", True),
        ("kept = self.other", False),
        ("kept = getattr(self, 'other')", False),
        ("kept = self.other.kept()", False),
    ],
)
def test_a_variable_of_another_method_may_be_the_attribute(named, statement, takes):
    source = ALIASES.format(statement=statement)
    suspect = named(source, "attribute `Log.kept`, from global `log`", ".kept", line=4)

    assert (removed_at([suspect], {}) is not None) is takes
