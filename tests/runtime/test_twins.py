"""Innocent code beside a leak changes nothing of what is said of it, and acquits nobody."""

from __future__ import annotations

import pytest

from tests.benchmarks import twins

PROGRAMS = {name: (name, source, holder) for name, source, holder in twins.programs()}
LEAKS = (
    "list+parameter",
    "dict+class clears",
    "global+local",
    "attribute+new object",
    "hook+class replaces",
    "records+instance",
    "base+no machine",
    "slots+except",
    "nested+class clears",
)
CLEAN = ("clean replaced", "clean cut rarely", "clean drained", "clean limited", "clean by turns")
pytestmark = pytest.mark.slow


@pytest.fixture
def outcome(watched, tmp_path):
    """Judge a program by its name, and compare what is told with what is true."""

    def outcome(name: str) -> twins.Outcome:
        _, source, holder = PROGRAMS[name]
        (tmp_path / "train.py").write_text(source)
        return twins.outcome(name, source, holder, watched(tmp_path / "train.py"))

    return outcome


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_stays_one_beside_code_that_has_nothing_to_do_with_it(outcome, name):
    told = outcome(name)

    assert (told.verdict, told.line, told.holder) == ("growing", True, True), told.told


@pytest.mark.parametrize("name", CLEAN)
def test_what_is_emptied_cut_or_limited_is_no_leak_beside_code_that_adds(outcome, name):
    told = outcome(name)

    assert told.verdict == "steady", told.told
