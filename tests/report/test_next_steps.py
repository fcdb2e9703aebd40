"""An unclear verdict says what to do next."""

from __future__ import annotations

import pytest

from leakcheck.model import Reason, Report
from leakcheck.report import reasons
from leakcheck.report.next_steps import NEXT, SAID_ALREADY, next_text


def test_each_reason_for_no_verdict_says_what_to_do_next():
    assert NEXT.keys() | SAID_ALREADY == reasons.OF_VERDICTS.keys()
    assert NEXT.keys().isdisjoint(SAID_ALREADY)


@pytest.mark.parametrize(("within_steps", "told"), [(None, ""), (5000, " within 5,000 steps")])
def test_what_may_be_taken_is_waited_for_as_long_as_the_table_says(within_steps, told):
    reason = Reason.of("may-be-taken", removal=None, within_steps=within_steps)

    assert next_text(Report(verdict="unclear", reason=reason)) == (
        f"let it run until that line has taken something: it is a leak if it does not{told}"
    )


def test_only_an_unclear_verdict_has_something_that_comes_next():
    assert next_text(Report(verdict="steady")) == ""
    assert next_text(Report(verdict="unclear", reason=Reason("no-steps"))) == ""
