"""Recordings of one or many ranks in, one report out: which ranks grow, and do they differ?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from leakcheck.model import Notice, Reason, Report, Suspect, Trend, Verdict
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
from leakcheck.runtime.readings.categories import is_category
from leakcheck.runtime.readings.series import Series
from leakcheck.runtime.recording import Recording

DIVERGES_FROM = 1.5  # ranks whose rates differ by more than this factor are told apart
CUT_OFF = Notice("note", Reason("recording-cut-off"))
WORST_FIRST: tuple[Verdict, ...] = ("growing", "unclear", "steady")


def merge(recordings: Sequence[Recording]) -> Report:
    """Return the report of one rank, or of all ranks with each rank's own report inside."""
    reports = tuple(judged(recording) for recording in recordings)
    if len(reports) == 1:
        return reports[0]
    reports = tuple(sorted(reports, key=lambda report: _rank(report)))
    worst = min(reports, key=lambda report: WORST_FIRST.index(report.verdict or "unclear"))
    return replace(
        worst,
        trends=_worst_trends(reports),
        suspects=_distinct_suspects(reports),
        notices=(*_notices(reports), *worst.notices),
        ranks=reports,
    )


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
        reading = None if is_category(resource) else read(series, resource)
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


def _rank(report: Report) -> int:
    return report.run.rank or 0 if report.run else 0


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


def _distinct_suspects(reports: Sequence[Report]) -> tuple[Suspect, ...]:
    distinct: dict[str, Suspect] = {}
    for report in reports:
        for suspect in report.suspects:
            distinct.setdefault(suspect.fingerprint, suspect)
    return tuple(distinct.values())


def _notices(reports: Sequence[Report]) -> tuple[Notice, ...]:
    verdicts = [
        _of_ranks("rank", "several-ranks", ranks, verdict)
        for verdict in WORST_FIRST
        if (ranks := [report for report in reports if report.verdict == verdict])
    ]
    if failed := [each for each in reports if each.run and each.run.ended == "failed"]:
        verdicts.append(_of_ranks("rank-failed", "ranks-failed", failed))
    return (Notice("note", Reason.of("ranks", verdicts=tuple(verdicts))), *_divergence(reports))


def _of_ranks(one: str, several: str, reports: Sequence[Report], verdict: str = "") -> Reason:
    ranks = tuple(str(_rank(report)) for report in reports)
    return Reason.of(one if len(ranks) == 1 else several, ranks=ranks, verdict=verdict)


def _divergence(reports: Sequence[Report]) -> tuple[Notice, ...]:
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
    return tuple(
        Notice(
            "note",
            Reason.of("ranks-diverge", count=count, ranks=len(reports), rates=tuple(each)),
        )
        for count, each in by_count.items()
    )
