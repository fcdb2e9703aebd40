"""Recordings of one or many processes in, one report out: which of them grow, and do they differ?

They are the ranks that a launcher started, and child processes that the program started itself. A
rank counts whatever it saw; of a program and its children those count that trained long enough to
be judged, and any that grows: a parent that waits, or a worker that had three steps, says nothing
about the training. The same leak in several is told once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from leakcheck.model import Field, Notice, Reason, Report, Suspect, Trend, Verdict
from leakcheck.processes import are_ranks, listed, names_of
from leakcheck.runtime.explanation import explained
from leakcheck.runtime.judgement.harmless import PLAIN, excuse
from leakcheck.runtime.judgement.judge import (
    FEWEST_STEPS,
    FEWEST_WARMUP_STEPS,
    as_trend,
    judge_of,
    read,
    suspicious,
)
from leakcheck.runtime.readings.by_shape import has_no_trend
from leakcheck.runtime.readings.series import Series
from leakcheck.runtime.recording import Recording

DIVERGES_FROM = 1.5  # ranks whose rates differ by more than this factor are told apart
CUT_OFF = Notice("note", Reason("recording-cut-off"))
TRAINING_CLOCKS = ("optimizer step",)
KILLED, STILL_RUNS = "killed", "still runs"
JUDGED_BY_RECORDINGS = {
    KILLED: ("was-killed", "were-killed"),
    STILL_RUNS: ("still-runs", "still-run"),
}
WORST_FIRST: tuple[Verdict, ...] = ("growing", "unclear", "steady")


def merge(recordings: Sequence[Recording]) -> Report:
    """Return the report of one process, or of all with each one's own report inside."""
    reports = [judged(recording) for recording in recordings]
    return reports[0] if len(reports) == 1 else _merged(reports)


def with_children(own: Report, recordings: Sequence[Recording]) -> Report:
    """Return the report of a program as one with those of its child processes that trained."""
    if not recordings or own.run is None:
        return own
    report = _merged([*([own] if own.run.steps else []), *map(judged, recordings)])
    assert report.run is not None
    run = replace(
        report.run,
        command=own.run.command,
        stopped_by=own.run.stopped_by,
        exit_status=own.run.exit_status,
        ended=own.run.ended,
    )
    return replace(report, run=run)


def _merged(unsorted: Sequence[Report]) -> Report:
    reports = tuple(sorted(unsorted, key=_place))
    names = dict(zip(map(id, reports), names_of(reports), strict=True))
    counted = _counted(reports)
    worst = min(counted, key=lambda report: WORST_FIRST.index(report.verdict or "unclear"))
    own_notices = (notice for notice in worst.notices if not _process(worst) or notice != CUT_OFF)
    return replace(
        worst,
        trends=_worst_trends(counted),
        suspects=_distinct_suspects(counted, names),
        notices=(*_notices(reports, names), *_divergence(counted, names), *own_notices),
        ranks=reports,
    )


def _counted(reports: Sequence[Report]) -> Sequence[Report]:
    """Return the reports that the verdict is made of."""
    if not any(map(_process, reports)):
        return reports
    seen = [each for each in reports if each.run and each.run.steps >= FEWEST_STEPS]
    trained = [each for each in seen if each.run and each.run.clock in TRAINING_CLOCKS]
    counted = trained or seen or reports
    return [each for each in reports if each in counted or each.verdict == "growing"]


def judged(recording: Recording) -> Report:
    """Return the report a rank wrote itself, or judge its samples if it was cut off."""
    if recording.report is not None:
        return replace(recording.report, samples=recording.samples)
    series = Series(max(2, len(recording.samples)))
    for sample in recording.samples:
        series.append(sample.step, sample.elapsed_s, sample.readings)
    suspected = suspicious([series], look=1)
    harmless = excuse(suspected, recording.tolerance_bytes, confirmed=False)
    growing = set() if harmless else {reading.resource for reading in suspected}
    seconds_per_step = series.seconds_per_step()
    trends = []
    for resource in series.resources:
        reading = None if has_no_trend(resource) else read(series, resource)
        if reading is not None:
            verdict: Verdict = "growing" if resource in growing else "steady"
            trends.append(as_trend(reading, verdict, seconds_per_step, None))
    verdict, reason = _verdict_of_cut_off(recording, tuple(trends))
    return Report(
        verdict=verdict,
        reason=reason,
        trends=tuple(trends),
        memory=explained(series, series.newest(), tuple(trends), FEWEST_WARMUP_STEPS),
        notices=(*([harmless] if harmless else []), CUT_OFF),
        run=recording.run,
        samples=recording.samples,
    )


def _verdict_of_cut_off(
    recording: Recording, trends: tuple[Trend, ...]
) -> tuple[Verdict, Reason | None]:
    growing = tuple(trend.resource for trend in trends if trend.verdict == "growing")
    if growing and PLAIN.issuperset(growing):  # a cache that fills grows like this
        return "unclear", Reason.of("cut-off", resources=growing)
    if growing:
        return "growing", None
    if recording.run.steps < FEWEST_STEPS:
        return "unclear", Reason.of("too-few-recorded", steps=recording.run.steps)
    if not any(judge_of(trend.resource) for trend in trends):
        return "unclear", Reason("nothing-judged")
    return "steady", None


def _process(report: Report) -> str:
    return report.run.process if report.run else ""


def _place(report: Report) -> tuple[object, ...]:
    """Return what processes are put in order by: ranks, then children as they were started."""
    process = _process(report)
    rank = report.run.rank if report.run and not process else None
    numbers = tuple(map(int, re.findall(r"[0-9]+", process)))
    return bool(process), rank or 0, numbers, process


def _worst_trends(reports: Sequence[Report]) -> tuple[Trend, ...]:
    worst: dict[str, Trend] = {}
    for report in reports:
        for trend in report.trends:
            held = worst.get(trend.resource)
            if held is None or _severity(trend) > _severity(held):
                worst[trend.resource] = trend
    return tuple(worst.values())


def _severity(trend: Trend) -> tuple[int, float]:
    return -WORST_FIRST.index(trend.verdict), trend.per_step


def _distinct_suspects(reports: Iterable[Report], names: Mapping[int, str]) -> tuple[Suspect, ...]:
    distinct: dict[str, Suspect] = {}
    for report in reports:
        for suspect in report.suspects:
            known = distinct.setdefault(suspect.fingerprint, suspect)
            found_in = (*known.processes, names[id(report)])
            distinct[suspect.fingerprint] = replace(known, processes=found_in)
    return tuple(distinct.values())


def _notices(reports: Sequence[Report], names: Mapping[int, str]) -> tuple[Notice, ...]:
    def named(code: str, reports: Sequence[Report], **fields: Field) -> Reason:
        return Reason.of(code, processes=listed([names[id(each)] for each in reports]), **fields)

    told = [
        named("have-verdict", those, verdict=verdict)
        for verdict in WORST_FIRST
        if (those := [each for each in reports if each.verdict == verdict])
    ]
    failed = [each for each in reports if each.run and each.run.ended == "failed"]
    if failed:
        told.append(named("failed-in" if any(map(_process, failed)) else "failed-on", failed))
    for how, (one, several) in JUDGED_BY_RECORDINGS.items():
        ended = [each for each in reports if each.run and each.run.stopped_by == how]
        if ended:
            told.append(named(one if len(ended) == 1 else several, ended))
    return (Notice("note", Reason.of("processes", told=tuple(told))),)


def _divergence(reports: Sequence[Report], names: Mapping[int, str]) -> tuple[Notice, ...]:
    rates: dict[str, list[Trend]] = {}
    for report in reports:
        for trend in report.trends:
            if trend.verdict == "growing":
                rates.setdefault(trend.resource, []).append(trend)
    by_count: dict[int, list[Reason]] = {}
    for resource, trends in rates.items():
        fastest = max(trend.per_step for trend in trends)
        typical = median([trend.per_step for trend in trends])
        if len(trends) == len(reports) and fastest <= DIVERGES_FROM * typical:
            continue
        rate = Reason.of("up-to", resource=resource, per_step=fastest, unit=trends[0].unit)
        by_count.setdefault(len(trends), []).append(rate)
    code = "ranks-diverge" if are_ranks([*names.values()]) else "processes-diverge"
    return tuple(
        Notice("note", Reason.of(code, count=count, all=len(reports), rates=tuple(each)))
        for count, each in by_count.items()
    )
