"""An unclear verdict says what to do next."""

from __future__ import annotations

from leakcheck.model import Reason, Report
from leakcheck.report import reasons
from leakcheck.report.next_steps import NEXT, SAID_ALREADY, next_text


def test_each_reason_for_no_verdict_says_what_to_do_next():
    assert NEXT.keys() | SAID_ALREADY == reasons.OF_VERDICTS.keys()
    assert NEXT.keys().isdisjoint(SAID_ALREADY)


def test_only_an_unclear_verdict_has_something_that_comes_next():
    reason = Reason.of("may-be-taken", resources=("tensors",), held=None, removal=None)

    assert next_text(Report(verdict="unclear", reason=reason)) == (
        "let it run until that line has taken something: it is a leak if it never does"
    )
    assert next_text(Report(verdict="steady")) == ""
    assert next_text(Report(verdict="unclear", reason=Reason("no-steps"))) == ""
