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


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_stays_one_beside_code_that_has_nothing_to_do_with_it(name):
    outcome = twins.run(*PROGRAMS[name])

    assert (outcome.verdict, outcome.line, outcome.holder) == ("growing", True, True), outcome.told


@pytest.mark.parametrize("name", CLEAN)
def test_what_is_emptied_cut_or_limited_is_no_leak_beside_code_that_adds(name):
    outcome = twins.run(*PROGRAMS[name])

    assert outcome.verdict == "steady", outcome.told
