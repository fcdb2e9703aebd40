"""Which part of a training leaks? The stages of `isolate`, and what their verdicts say together.

Each stage takes one ingredient away from the program: the work on the data, the changing of the
data, backward and optimizer, or callbacks and logging. Growth that stops needs what was taken;
growth that stays does not. Pure: reports in, one or two sentences out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from leakcheck.experiments import ONLY_REPORTED, StageRun
from leakcheck.model import Report, Suspect, Trend
from leakcheck.units import format_bytes, format_count

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
# stages that take something away from each step, and how a sentence says so
TAKEN = {
    "fixed-batch": "with a fixed batch",
    "no-backward": "without backward",
    "no-logging": "without logging",
}
NEEDS = ("no-logging", "no-backward", "fixed-batch")
Outcome = Literal["grows", "stops", "unknown"]
SAME_LEAK_FROM = 0.3  # of the unchanged run's rate: below it another leak may be what is seen
PART_BELOW = 0.7  # of the unchanged run's rate: the stage explains only a part of the growth
FEWER_STEPS_SHOW_LITTLE = 0.9  # a stage must hold steady for as long as the growth took to show
LOADER = "the loader, the dataset or its transforms keep what they make"
CONTRADICTION = "unclear: the stages contradict each other ({what}); run it again with more --steps"


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
    return StageRun(run.stage, "unclear", reason, run.report) if reason else run


def _doubt(run: StageRun, plain: StageRun) -> str:
    steps, needed = steps_of(run), steps_of(plain)
    if run.verdict == "steady":
        if steps >= FEWER_STEPS_SHOW_LITTLE * needed:
            return ""
        return f"steady, but for {steps} steps only; the growth took {needed} to show"
    shares = _shares(run, plain)
    if not shares:
        return "something else grows than in the unchanged run"
    if max(shares.values()) < SAME_LEAK_FROM:
        return f"grows at {max(shares.values()):.0%} of the unchanged run's rate"
    return ""


def conclude(stages: Sequence[StageRun]) -> str:
    """Say in one or two sentences which part of the program leaks; the first stage is unchanged."""
    plain = stages[0]
    if plain.verdict == "steady":
        return f"no leak in {format_count(steps_of(plain))} steps: there is nothing to isolate"
    if plain.verdict != "growing":
        return f"unclear: the unchanged run gives no verdict: {plain.reason}"
    where = _where(stages)
    held = _held(plain)
    return f"{where}; {held}" if held else where


def _where(stages: Sequence[StageRun]) -> str:
    outcomes = {run.stage: _outcome(run) for run in stages[1:] if run.verdict != NOT_APPLICABLE}
    if outcomes.get("data-only") == "grows":
        return _in_the_loader(outcomes, stages)
    needs = tuple(name for name in NEEDS if outcomes.get(name) == "stops")
    loader_seen = outcomes.get("data-only") == "stops"
    if needs == ("fixed-batch",) and not loader_seen:
        return "stops with a fixed batch: it comes with the data, in the loader or in what is kept"
    if needs:
        return NEEDED[needs]
    without = [TAKEN[name] for name in TAKEN if outcomes.get(name) == "grows"]
    no_loader = any(run.stage == "data-only" and run.verdict == NOT_APPLICABLE for run in stages)
    if outcomes.get("fixed-batch") == "grows" or loader_seen or (no_loader and without):
        return _in_the_step(without, loader_seen)
    if without:
        return f"unclear: grows {_listed(without)} too; whether the loader leaks was not seen"
    return "unclear where: no stage told more than the unchanged run"


# the stages that stop the growth -> where it is then
NEEDED: dict[tuple[str, ...], str] = {
    ("no-logging",): "stops without logging and callbacks: one of them keeps what it is given",
    ("no-backward",): "leaks only with backward or the optimizer: gradients, hooks or their state "
    "are kept",
    ("fixed-batch",): "stops with a fixed batch: it grows with the data seen, as a cache keyed by "
    "data or a list of batches does",
    ("no-logging", "no-backward"): "stops without logging and also without backward: a logger or "
    "callback keeps what backward or the optimizer makes",
    ("no-logging", "fixed-batch"): "stops without logging and also with a fixed batch: a logger or "
    "callback keeps what is new in the data",
    ("no-backward", "fixed-batch"): "stops without backward and also with a fixed batch: what "
    "backward makes is kept for each new batch",
    (
        "no-logging",
        "no-backward",
        "fixed-batch",
    ): "stops in every stage: a logger or callback keeps what backward makes of new data",
}


def _in_the_loader(outcomes: Mapping[str, Outcome], stages: Sequence[StageRun]) -> str:
    for name in ("no-backward", "no-logging"):
        if outcomes.get(name) == "stops":
            return CONTRADICTION.format(what=f"grows with data only, stops {TAKEN[name]}")
    told = f"leaks with data only: {LOADER}"
    if outcomes.get("fixed-batch") == "grows":
        return f"{told}; and the step leaks too, with a fixed batch"
    rest = _not_in_data(stages)
    return f"{told}; that is a part of the growth only ({rest})" if rest else told


def _not_in_data(stages: Sequence[StageRun]) -> str:
    plain, data = stages[0], next(run for run in stages if run.stage == "data-only")
    whole, part = rates(plain.report), rates(data.report)
    missing = [name for name, rate in whole.items() if part.get(name, 0.0) < PART_BELOW * rate]
    told = [
        f"{name} {_amount(name, part.get(name, 0.0))} of {_amount(name, whole[name])} a step"
        for name in missing
    ]
    return ", ".join(told)


def _in_the_step(without: Sequence[str], loader_seen: bool) -> str:
    seen = ["stops with data only"] if loader_seen else []
    seen += [f"grows {_listed(without)}"] if without else []
    keeps = "the forward pass or the loop keeps something of every step"
    if TAKEN["no-backward"] not in without:
        keeps = "the work on the batch keeps something of every step"
    return f"{', '.join(seen)}: {keeps}"


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _held(plain: StageRun) -> str:
    suspect = _leading(plain.report)
    if suspect is None:
        return ""
    place = next((f" ({one.path}:{one.line})" for one in suspect.locations), "")
    holder = f"held by {suspect.holder}" if suspect.holder else suspect.what or suspect.kind
    return f"{holder}{place}"


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


def _amount(resource: str, rate: float) -> str:
    counted = resource in ("graph.nodes", "tensors", "python.blocks") or "." not in resource
    return format_count(rate) if counted else format_bytes(rate)
