"""What an edit has shown: two runs compared, the edits ranked; pure functions of trials."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Literal

from leakcheck.cure.varying import NUMBER, logged
from leakcheck.experiments import (
    ONLY_REPORTED,
    Attempt,
    AttemptOutcome,
    Difference,
    Results,
    Trial,
)
from leakcheck.model import COUNTERS, Reason, Report, Suspect, Trend

PEAK_NOISE_BYTES = 4 << 20  # two runs of one program differ by that
TIME_NOISE = 1.1
_TENSOR = re.compile(r"tensor\(([^()]*?)(?:,\s*(?:grad_fn=<\w*>|requires_grad=True))+\)")
_BARE = re.compile(r"tensor\(([^()\[\]]*?)\)")


def compared(before: Results, after: Results) -> tuple[Difference, ...]:
    """Return what differs between the results of two runs of as many steps."""
    found = (
        _output(before.stdout, after.stdout),
        _log(before.stderr, after.stderr),
        _losses(before, after),
        _weights(before, after),
        _unknown("modules", before.modules, after.modules),
        _unknown("gradients", before.gradients, after.gradients),
        _files(before, after),
    )
    return tuple(each for each in found if each is not None)


def outcome(
    before: Trial, after: Trial, suspect: Suspect, differences: Sequence[Difference]
) -> tuple[AttemptOutcome, Reason | None]:
    """Say what a trial of an edit shows, and why where that needs a reason."""
    report = after.report
    if after.goes_on or (report is not None and stays(report, suspect)):
        return "stays", None  # it is not run to the end
    # a program that the leak itself brought down may end well without it
    recovers = before.failure is not None and not after.status
    if report is None or not (after.status == before.status or recovers):
        statuses = {"status": after.status, "before": before.status}
        return "fails", after.failure or Reason.of("exit-status", **statuses)
    if _did_less(before, after):
        return "fails", Reason.of("fewer-steps", steps=after.steps, before=before.steps)
    if report.verdict == "growing" and not _is_gone(before, after, suspect):
        return "stays", None
    ended = report.verdict == "steady" or _is_counted_no_more(before.report, report, suspect)
    if report.verdict == "unclear" and not ended:
        return "unclear", report.reason
    if replace(before.results, stderr="") == Results():  # warnings alone show nothing
        return "unclear", Reason.of("nothing-to-compare")
    if any(each.is_result for each in differences):
        return "changes", None
    return ("proved", None) if report.verdict == "steady" else ("helps", report.reason)


def _did_less(before: Trial, after: Trial) -> bool:
    """Say whether a run ended early: a loop may be recognised later, and has turned as often."""
    turned_less = after.turns < before.turns or not before.turns
    return after.steps < before.steps and turned_less


def stays(report: Report, suspect: Suspect) -> bool:
    """Say whether a leak is certain to be there in a run."""
    return report.verdict == "growing" and suspect.fingerprint in _fingerprints(report)


def goes_on(before: Report, after: Report) -> bool:
    """Say whether all that grew in a run grows as fast in another, one thing for certain."""
    grew = [each for each in growing(before) if each.resource not in ONLY_REPORTED]
    pairs = [(was, now) for was in grew if (now := trend(after, was.resource)) is not None]
    as_fast = [now.low <= was.high and was.low <= now.high for was, now in pairs]
    return len(pairs) == len(grew) and all(as_fast) and any(now.low > 0 for _, now in pairs)


def best(attempts: Sequence[Attempt]) -> Attempt | None:
    """Return the proved edit with the same results, least memory and least time, in that order."""
    shown = [each for each in attempts if each.outcome in ("proved", "helps")]
    return min(shown, key=_rank, default=None)


def growing(report: Report | None) -> tuple[Trend, ...]:
    """Return the trends that grow."""
    return tuple(each for each in report.trends if each.verdict == "growing") if report else ()


def trend(report: Report | None, resource: str) -> Trend | None:
    """Return the trend of one resource, None when it was not read."""
    trends = report.trends if report else ()
    return next((each for each in trends if each.resource == resource), None)


def _rank(attempt: Attempt) -> tuple[bool, int, int, int]:
    trial = attempt.trial
    time = round(math.log(trial.step_s, TIME_NOISE)) if trial.step_s > 0 else 0
    memory = round(trial.peak_bytes / PEAK_NOISE_BYTES)
    return attempt.outcome != "proved", len(attempt.differences), memory, time


def _is_gone(before: Trial, after: Trial, suspect: Suspect) -> bool:
    """Whether this leak is gone while others grow: nobody is suspected of it, and less grows."""
    assert after.report is not None
    if not after.report.suspects:
        return False
    slower = any(_is_slower(each, after.report) for each in growing(before.report))
    return suspect.fingerprint not in _fingerprints(after.report) and slower


def _is_counted_no_more(before: Report | None, after: Report, suspect: Suspect) -> bool:
    """Whether what counts this kind of leak exactly grew, and is steady in an unclear run."""
    counter = COUNTERS.get(suspect.kind, "")
    was, now = trend(before, counter), trend(after, counter)
    return was is not None and now is not None and now.verdict == "steady" and now.high < was.low


def _fingerprints(report: Report) -> set[str]:
    return {each.fingerprint for each in report.suspects}


def _is_slower(was: Trend, report: Report) -> bool:
    now = trend(report, was.resource)
    return now is not None and now.high < was.low


def _output(before: str, after: str) -> Difference | None:
    if before == after:
        return None
    unlike = _unlike(before.splitlines(), after.splitlines())
    if not unlike:
        return Difference("stdout", 0, "", "", 0)  # line ends alone
    at, was, now = unlike[0]
    written = len(before.splitlines()) == len(after.splitlines()) and all(
        _is_written_otherwise(was, now) for _, was, now in unlike
    )
    return Difference("stdout", at, was, now, len(unlike), written)


def _log(before: str, after: str) -> Difference | None:
    unlike = _unlike(logged(before), logged(after))
    return Difference("stderr", *unlike[0], len(unlike)) if unlike else None


def _unlike(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, str, str]]:
    """Return the lines that differ, each with its number."""
    pairs = zip_longest(before, after, fillvalue="")
    return [(at, was, now) for at, (was, now) in enumerate(pairs, 1) if was != now]


def _is_written_otherwise(before: str, after: str) -> bool:
    """Whether two lines say the same but for a tensor that is a number now.

    A tensor is printed to four digits, a number in full: they may differ by half of the last digit.
    """
    if "tensor(" not in before:
        return False
    first, second = (_BARE.sub(r"\1", _TENSOR.sub(r"\1", each)) for each in (before, after))
    if NUMBER.sub("#", first) != NUMBER.sub("#", second):
        return False
    pairs = zip(NUMBER.findall(first), NUMBER.findall(second), strict=True)
    return all(abs(float(was) - float(now)) <= _half_a_digit(was) for was, now in pairs)


def _half_a_digit(number: str) -> float:
    mantissa, _, exponent = number.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    return 0.5001 * 10.0 ** (int(exponent or 0) - digits)


def _losses(before: Results, after: Results) -> Difference | None:
    pairs = list(zip_longest(before.losses, after.losses))
    unlike = [(at, *pair) for at, pair in enumerate(pairs, 1) if not _same_hash(*pair)]
    if not unlike:
        return None
    at, was, now = unlike[0]
    apart = [abs(was[1] - now[1]) for _, was, now in unlike if was and now]
    return Difference("losses", at, _value(was), _value(now), len(unlike), most=_most(apart))


def _value(loss: tuple[int, float] | None) -> str:
    return "none" if loss is None else repr(loss[1])


def _weights(before: Results, after: Results) -> Difference | None:
    pairs = list(zip_longest(before.weights, after.weights))
    unlike = [(at, *pair) for at, pair in enumerate(pairs, 1) if not _same_hash(*pair)]
    if not unlike:
        return None
    counts = str(len(before.weights)), str(len(after.weights))
    apart = [
        abs(a - b)
        for _, was, now in unlike
        if was and now
        for a, b in zip(was[1], now[1], strict=True)
    ]
    return Difference("weights", unlike[0][0], *counts, len(unlike), most=_most(apart))


def _same_hash(before: tuple[int, object] | None, after: tuple[int, object] | None) -> bool:
    return before is not None and after is not None and before[0] == after[0]


def _most(apart: Sequence[float]) -> float:
    return max((each for each in apart if math.isfinite(each)), default=0.0)


def _unknown(
    what: Literal["modules", "gradients"], before: Collection[int], after: Collection[int]
) -> Difference | None:
    """Compare what is alive: what only the leak kept may be gone, nothing may be new."""
    new = set(after) - set(before)
    return Difference(what, 0, str(len(after)), "", len(new)) if new else None


def _files(before: Results, after: Results) -> Difference | None:
    were, are = dict(before.files), dict(after.files)
    unlike = sorted(path for path in {*were, *are} if were.get(path) != are.get(path))
    if not unlike:
        return None
    first = unlike[0]
    was, now = (first if first in known else "none" for known in (were, are))
    return Difference("files", 0, was, now, len(unlike))
