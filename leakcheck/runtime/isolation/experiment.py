"""Which part of a training leaks? The stages of `isolate`, and what their verdicts say together.

Each stage takes one ingredient away from the program: the work on the data, the changing of the
data, backward and optimizer, or callbacks and logging. Growth that stops needs what was taken;
growth that stays does not. Pure: reports in, a reason out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from leakcheck.experiments import ONLY_REPORTED, StageRun
from leakcheck.model import Reason, Report, Suspect, Trend
from leakcheck.runtime.readings.meters import unit_of

AS_IT_IS = "as-it-is"
# stage -> what is changed, as the table and `--help` say it
STAGES: dict[str, str] = {
    AS_IT_IS: "nothing",
    "data-only": "the DataLoader is drained; no work on its batches",
    "fixed-batch": "every DataLoader gives its first batch for ever",
    "no-backward": "backward() and optimizer.step() do nothing",
    "no-logging": "trackers, loggers and callbacks do nothing",
}
NOT_APPLICABLE: Literal["does not apply"] = "does not apply"
# stages that take something away from each step
TAKEN = {stage: Reason(stage) for stage in ("fixed-batch", "no-backward", "no-logging")}
NEEDS = ("no-logging", "no-backward", "fixed-batch")
Outcome = Literal["grows", "stops", "unknown"]
SAME_LEAK_FROM = 0.3  # of the unchanged run's rate: below it another leak may be what is seen
PART_BELOW = 0.7  # of the unchanged run's rate: the stage explains only a part of the growth
FEWER_STEPS_SHOW_LITTLE = 0.9  # a stage must hold steady for as long as the growth took to show


def rates(report: Report | None) -> dict[str, float]:
    """Return what grows in a run, and how fast, by resource; the exact counters only."""
    if report is None or report.verdict != "growing":
        return {}
    return {trend.resource: trend.per_step for trend in report.trends if _decides(trend)}


def steps_of(run: StageRun) -> int:
    """Return how many steps a stage was watched for."""
    return run.report.run.steps if run.report is not None and run.report.run is not None else 0


def judged(run: StageRun, plain: StageRun) -> StageRun:
    """Return the stage with its verdict put in doubt when it says nothing about the same leak."""
    if run.report is None or run.verdict not in ("growing", "steady"):
        return run
    reason = _doubt(run, plain)
    return run if reason is None else StageRun(run.stage, "unclear", reason, run.report)


def _doubt(run: StageRun, plain: StageRun) -> Reason | None:
    steps, needed = steps_of(run), steps_of(plain)
    if run.verdict == "steady":
        if steps >= FEWER_STEPS_SHOW_LITTLE * needed:
            return None
        return Reason.of("steady-too-short", steps=steps, needed=needed)
    shares = _shares(run, plain)
    if not shares:
        return Reason("something-else-grows")
    if max(shares.values()) < SAME_LEAK_FROM:
        return Reason.of("grows-slower", share_percent=round(100 * max(shares.values())))
    return None


def conclude(stages: Sequence[StageRun]) -> Reason:
    """Say which part of the program leaks; the first stage is unchanged."""
    plain = stages[0]
    if plain.verdict == "steady":
        return Reason.of("nothing-to-isolate", steps=steps_of(plain))
    if plain.verdict != "growing":
        return Reason.of("no-verdict-unchanged", why=plain.reason)
    suspect = _leading(plain.report)
    if suspect is None:
        return _where(stages)
    holder = str(suspect.holder)
    leak = Reason.of("held-by", holder=holder) if holder else suspect.what or suspect.kind
    places = [Reason.of("at", path=one.path, line=one.line) for one in suspect.locations[:1]]
    return Reason.of("isolated", where=_where(stages), leak=leak, at=tuple(places))


def _where(stages: Sequence[StageRun]) -> Reason:
    outcomes = {run.stage: _outcome(run) for run in stages[1:] if run.verdict != NOT_APPLICABLE}
    if outcomes.get("data-only") == "grows":
        return _in_the_loader(outcomes, stages)
    needs = tuple(name for name in NEEDS if outcomes.get(name) == "stops")
    loader_seen = outcomes.get("data-only") == "stops"
    if needs == ("fixed-batch",) and not loader_seen:
        return Reason("comes-with-data")
    if needs:
        return NEEDED[needs]
    without = [name for name in TAKEN if outcomes.get(name) == "grows"]
    no_loader = any(run.stage == "data-only" and run.verdict == NOT_APPLICABLE for run in stages)
    if outcomes.get("fixed-batch") == "grows" or loader_seen or (no_loader and without):
        return _in_the_step(without, loader_seen)
    if without:
        return Reason.of("loader-unseen", taken=_taken(without))
    return Reason("unclear-where")


# the stages that stop the growth -> where it is then
NEEDED = {
    ("no-logging",): Reason("logger-keeps"),
    ("no-backward",): Reason("backward-needed"),
    ("fixed-batch",): Reason("new-data-needed"),
    ("no-logging", "no-backward"): Reason("logger-keeps-backward"),
    ("no-logging", "fixed-batch"): Reason("logger-keeps-data"),
    ("no-backward", "fixed-batch"): Reason("backward-of-data"),
    ("no-logging", "no-backward", "fixed-batch"): Reason("all-needed"),
}


def _in_the_loader(outcomes: Mapping[str, Outcome], stages: Sequence[StageRun]) -> Reason:
    for name in ("no-backward", "no-logging"):
        if outcomes.get(name) == "stops":
            return Reason.of("stages-contradict", taken=TAKEN[name])
    if outcomes.get("fixed-batch") == "grows":
        return Reason.of("loader-keeps", more=Reason("step-leaks-too"))
    missing = _not_in_data(stages)
    more = Reason.of("part-of-growth", missing=missing) if missing else None
    return Reason.of("loader-keeps", more=more)


def _not_in_data(stages: Sequence[StageRun]) -> tuple[Reason, ...]:
    plain, data = stages[0], next(run for run in stages if run.stage == "data-only")
    whole, part = rates(plain.report), _measured(data.report)
    missing = [name for name, rate in whole.items() if part.get(name, 0.0) < PART_BELOW * rate]
    codes = {name: "part-of-bytes" if unit_of(name) == "B" else "part-of-count" for name in missing}
    return tuple(
        Reason.of(code, resource=name, part=part.get(name, 0.0), whole=whole[name])
        for name, code in codes.items()
    )


def _measured(report: Report | None) -> dict[str, float]:
    """Return what each resource was measured to gain a step, confirmed to grow or not."""
    return {trend.resource: trend.per_step for trend in report.trends} if report else {}


def _in_the_step(without: Sequence[str], loader_seen: bool) -> Reason:
    seen = [Reason("stops-with-data")] if loader_seen else []
    seen += [Reason.of("grows-too", taken=_taken(without))] if without else []
    code = "pass-keeps" if "no-backward" in without else "batch-work-keeps"
    return Reason.of(code, seen=tuple(seen))


def _taken(stages: Sequence[str]) -> tuple[Reason, ...]:
    return tuple(TAKEN[stage] for stage in stages)


def _leading(report: Report | None) -> Suspect | None:
    return report.suspects[0] if report is not None and report.suspects else None


def _outcome(run: StageRun) -> Outcome:
    known: dict[str, Outcome] = {"growing": "grows", "steady": "stops"}
    return known.get(run.verdict, "unknown")


def _shares(run: StageRun, plain: StageRun) -> dict[str, float]:
    whole = rates(plain.report)
    return {
        name: rate / whole[name]
        for name, rate in rates(run.report).items()
        if whole.get(name, 0.0) > 0
    }


def _decides(trend: Trend) -> bool:
    return trend.verdict == "growing" and trend.resource not in ONLY_REPORTED
