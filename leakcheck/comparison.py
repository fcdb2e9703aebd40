"""What a change did to a program's leaks: the rates of its runs before and after, side by side.

Pure: what two or more runs showed in, one row for each resource and one outcome out. The runs come
in pairs, and a rate has changed only if it has in every pair: a noisy machine cannot decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from leakcheck.experiments import (
    ONLY_REPORTED,
    Change,
    ChangeOutcome,
    Compared,
    Comparison,
    Leak,
    Observation,
)
from leakcheck.model import Reason, Report, Suspect, Trend, fingerprint

# of the larger rate, that two rates may differ by and be the same: a heap's allocator rounds
NOTICEABLE = 0.05
_WORSE: frozenset[ChangeOutcome] = frozenset(["starts", "rises"])
_BETTER: frozenset[ChangeOutcome] = frozenset(["ends", "falls"])


def observed(report: Report | None, failed: Reason | None = None) -> Observation:
    """Return what a run showed; `failed`: why it shows nothing."""
    if report is None or report.verdict is None or failed is not None:
        return Observation("unclear", failed or Reason("no-report"))
    run = report.run
    steps, finished = (run.steps, run.ended == "finished") if run is not None else (0, False)
    leaks = tuple(map(_leak, report.suspects))
    return Observation(report.verdict, report.reason, steps, report.trends, leaks, finished)


def _leak(suspect: Suspect) -> Leak:
    trace, holder = suspect.trace, str(suspect.holder)
    edges = [link.edge for link in trace.links] if trace is not None else []
    return leak_of(suspect.kind, suspect.what, holder, trace.root if trace else None, edges)


def leak_of(kind: str, what: str, holder: str, root: str | None, edges: Iterable[str]) -> Leak:
    """Return a leak by what the two sides have in common: not the name of their script."""
    told = f"{what}, held by {holder}" if holder else what
    return Leak(fingerprint(kind, root or holder, *edges), told)


def compare(
    names: tuple[str, str], before: Sequence[Observation], after: Sequence[Observation]
) -> Comparison:
    """Compare runs, of which the first of each kind is a pair, and so on.

    A kind with fewer runs than the other, such as one recording, stands in each pair.
    """
    changes = tuple(_changes(list(_pairs(before, after))))
    gone, new = _only_in(before, after), _only_in(after, before)
    outcome, reason = _outcome(before, after, changes, bool(gone and new))
    return Comparison(names, tuple(before), tuple(after), changes, gone, new, outcome, reason)


def _pairs(
    before: Sequence[Observation], after: Sequence[Observation]
) -> Iterable[tuple[Observation, Observation]]:
    for at in range(max(len(before), len(after))):
        yield before[at % len(before)], after[at % len(after)]


def _changes(pairs: Sequence[tuple[Observation, Observation]]) -> Iterable[Change]:
    first = [trend for pair in pairs for each in pair for trend in each.trends]
    units = {trend.resource: trend.unit for trend in first}
    for resource, unit in units.items():
        known = [(_trend(one, resource), _trend(other, resource)) for one, other in pairs]
        both = [(one, other) for one, other in known if one is not None and other is not None]
        if both and len(both) == len(pairs):
            yield _change(resource, unit, both)


def _trend(seen: Observation, resource: str) -> Trend | None:
    return next((trend for trend in seen.trends if trend.resource == resource), None)


def _change(resource: str, unit: str, pairs: Sequence[tuple[Trend, Trend]]) -> Change:
    before, after = (median(each[side].per_step for each in pairs) for side in (0, 1))
    low = min(other.low - one.high for one, other in pairs)
    high = max(other.high - one.low for one, other in pairs)
    decides = resource not in ONLY_REPORTED
    outcome = _moved(pairs, low, high, max(abs(before), abs(after))) if decides else "reported"
    grows = any(each.verdict == "growing" for pair in pairs for each in pair)
    return Change(resource, unit, before, after, low, high, outcome, grows)


def _moved(
    pairs: Sequence[tuple[Trend, Trend]], low: float, high: float, larger: float
) -> ChangeOutcome:
    grew, grows = ([each[side].verdict == "growing" for each in pairs] for side in (0, 1))
    if any(grew) != all(grew) or any(grows) != all(grows):
        return "unclear"
    if not (all(grew) or all(grows)):
        return "same"
    least = NOTICEABLE * larger
    moved: ChangeOutcome = "rises" if low > least else "falls" if high < -least else "same"
    was, now = ({each[side].verdict for each in pairs} for side in (0, 1))
    if was == {"steady"} and moved == "rises":
        return "starts"
    return "ends" if now == {"steady"} and moved == "falls" else moved


def _only_in(these: Sequence[Observation], those: Sequence[Observation]) -> tuple[Leak, ...]:
    """Return the leaks that each of these runs has, and none of those, if all of them told."""
    if any(each.verdict == "unclear" for each in those):
        return ()
    common = set.intersection(*({leak.id for leak in each.leaks} for each in these))
    others = {leak.id for each in those for leak in each.leaks}
    return tuple(leak for leak in these[0].leaks if leak.id in common - others)


def _outcome(
    before: Sequence[Observation],
    after: Sequence[Observation],
    changes: Sequence[Change],
    another: bool,
) -> tuple[Compared, Reason | None]:
    for which, runs in (("before", before), ("after", after)):
        for run in runs:
            if run.verdict == "unclear":
                return "unclear", Reason.of("unclear-on-a-side", which=which, why=run.reason)
        if len({run.verdict for run in runs}) > 1:
            return "unclear", Reason.of("runs-differ", which=which)
    grew, grows = before[0].verdict == "growing", after[0].verdict == "growing"
    if grew != grows and (short := _too_short(before, after)) is not None:
        return "unclear", short
    if grew and not grows:
        return "cures", None
    if not grew:
        return ("starts" if grows else "steady"), None
    if another:
        return "another", None
    moved = {change.outcome for change in changes}
    if moved & _WORSE:
        return "worsens", None
    return ("lessens" if moved & _BETTER else "same"), None


def _too_short(before: Sequence[Observation], after: Sequence[Observation]) -> Reason | None:
    """Say where a steady run came to its own end before the leak was told on the other side."""
    for which, runs, others in (("before", before, after), ("after", after, before)):
        needed = min(each.steps for each in others)
        for run in runs:
            if run.verdict == "steady" and run.finished and run.steps < needed:
                return Reason.of(
                    "steady-in-fewer-steps", which=which, steps=run.steps, needed=needed
                )
    return None
