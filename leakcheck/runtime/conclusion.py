"""From the course of a watch to its report: trends, suspects, verdict and the reason for it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace

from leakcheck.model import Ended, Notice, Overhead, Reason, Report, Run, Suspect, Trend, Verdict
from leakcheck.runtime.accounts import amount_of, told_suspects
from leakcheck.runtime.explanation import explained
from leakcheck.runtime.judgement.harmless import without_contradicted
from leakcheck.runtime.judgement.judge import (
    FEWEST_STEPS,
    SHORT_RUN_STEPS,
    Reading,
    as_trend,
    counters_that_rise,
    creep_per_step,
    grown_children,
    read_known,
)
from leakcheck.runtime.prospects import LIMITED_AT
from leakcheck.runtime.readings.categories import is_category
from leakcheck.runtime.readings.limits import host_room_bytes
from leakcheck.runtime.readings.meters import is_in_use, unit_of
from leakcheck.runtime.readings.series import GARBAGE
from leakcheck.runtime.stages import Course
from leakcheck.units import format_bytes

NOT_WATCHED = "not watched; with num_workers=0, or a sentinel of their own, the line can be told"
COLLECTOR_IS_OFF = "gc.disable() was called, and without leakcheck nothing would collect them"
ON_PURPOSE = "it may be gathered on purpose"
ONCE_A_TRAINING = (
    "once each time that training begins anew with another optimizer: a leak, or its results"
)
LEAST_TOLD = 0.01  # a step, for a rate to be more than 0 in words
MOST_UNSURE = 3.0  # times the low end of an interval, at its high end, for growth to be told
LEAST_GARBAGE_BYTES = 1 << 20
LEAST_GARBAGE_PER_STEP = 1 << 9  # bytes; below it nobody minds


@dataclass(frozen=True, slots=True)
class Ending:
    """How the run ended, as far as the sentinel cannot know it itself."""

    command: str = ""
    stopped_by: str = ""
    exit_status: int | None = None
    ended: Ended | None = None
    running: bool = False


def conclude(course: Course, step: int, clock: str, broken: str, ending: Ending) -> Report:
    """Make the report of a watch as it stands at `step`."""
    watch = course.watch
    steps = course.span.seen(step)
    children = grown_children(watch.slow, course.tolerance.per_step_bytes)
    verdict, reason = _verdict(course, steps, broken, children)
    suspects = told_suspects(course) if verdict == "growing" else ()
    trends = _trends(course, children)
    elapsed_s = watch.elapsed_s
    cost_s = steps * watch.per_step_us / 1e6 + watch.checkpoint_s
    return Report(
        verdict=verdict,
        reason=reason,
        trends=trends,
        suspects=suspects,
        notices=(
            *without_contradicted(
                course.notices, (one.resource for one in course.established), suspects
            ),
            *_garbage_notices(course, steps),
        ),
        run=Run(
            command=ending.command or " ".join(sys.argv),
            steps=steps,
            seconds=elapsed_s,
            warmup_steps=course.span.warmup_steps,
            clock=clock,
            rank=_environment_number("RANK"),
            world_size=_environment_number("WORLD_SIZE"),
            torch=_torch_version(),
            device=_devices(course),
            stopped_by=ending.stopped_by,
            exit_status=ending.exit_status,
            ended=ending.ended,
        ),
        overhead=Overhead(watch.per_step_us, min(1.0, cost_s / elapsed_s if elapsed_s else 0.0)),
        memory=explained(
            watch.slow, watch.quick.newest(), trends, course.span.settled_step, course.memory
        ),
    )


def ended(report: Report, ending: Ending) -> Report:
    """Return the report of a watch that is over, with how the run ended."""
    if report.run is None:
        return report
    run = replace(
        report.run,
        command=ending.command or report.run.command,
        stopped_by=ending.stopped_by,
        exit_status=ending.exit_status,
        ended=ending.ended,
    )
    return replace(report, run=run)


def summary(report: Report) -> str:
    """Say in one line what leaks."""
    for suspect in report.suspects:
        rate = f" {format_bytes(suspect.bytes_per_step)} a step" if suspect.bytes_per_step else ""
        held = f", held by {suspect.holder}" if suspect.holder else ""
        return f"{suspect.what}:{rate}{held}"
    return f"the verdict is {report.verdict}"


def _garbage_notices(course: Course, steps: int) -> tuple[Notice, ...]:
    freed_bytes = sum(course.watch.garbage)
    per_step = freed_bytes / max(1, steps)
    if freed_bytes < LEAST_GARBAGE_BYTES or per_step < LEAST_GARBAGE_PER_STEP:
        return ()
    amount, rate = format_bytes(freed_bytes), format_bytes(per_step)
    kinds = course.watch.garbage_kinds
    of = f" of {', '.join(map(str, kinds))}" if kinds else ""
    told = f"reference cycles{of} wait for the garbage collector"
    freed = f"which freed {amount} ({rate} a step): not a leak"
    if course.watch.garbage_stays:
        freed = f"which the program switched off: only leakcheck freed {amount} ({rate} a step)"
    return (Notice("cyclic-garbage", f"{told}, {freed}"),)


def _verdict(
    course: Course, steps: int, broken: str, children: Reading | None
) -> tuple[Verdict, str]:
    if course.stage == "growing":
        return "growing", ""
    if broken:
        return "unclear", f"leakcheck failed and stopped watching: {broken}"
    if steps == 0:
        return "unclear", "no steps seen"
    if steps < FEWEST_STEPS:
        return "unclear", f"only {steps} steps were seen; {FEWEST_STEPS} are needed"
    if course.stage in ("waiting", "attributing"):
        return "unclear", _in_doubt(course)
    if course.watch.garbage_stays and _garbage_notices(course, steps):
        return "unclear", f"reference cycles pile up: {COLLECTOR_IS_OFF}"
    if course.pending:
        names = ", ".join(reading.resource for reading in course.pending)
        held = _held_by(course.held)
        return "unclear", f"{names} seemed to grow{held}; the run ended before that was confirmed"
    limited = None if course.stage == "steady" else course.excuses.limited
    if limited is not None and limited.goes_on(course.watch.sources):
        end = "it was full" if LIMITED_AT in limited.told else "that did"
        return "unclear", f"{limited.told}, and the run ended before {end}"
    rising = counters_that_rise(course.watch.slow, short=steps < SHORT_RUN_STEPS)
    rising = [name for name in rising if not course.excuses.hold_for(name)]
    if course.stage != "steady" and rising:
        return (
            "unclear",
            f"{', '.join(rising)} rose at each of the last looks; {steps} steps are too few to say",
        )
    if course.stage != "steady":
        climbing = course.excuses.still_climbing(
            course.watch.sources, course.tolerance.per_step_bytes
        )
        for reading in climbing:
            unit, climbs = unit_of(reading.resource), reading.line.second_half
            by = f" {amount_of(climbs, unit)} a step" if climbs >= LEAST_TOLD else ""
            return "unclear", f"{reading.resource} still climbs{by}, not regularly"
    if children is not None:
        rate = amount_of(children.line.per_step, "B")
        return "unclear", f"child processes grow {rate} a step together, and are {NOT_WATCHED}"
    if not course.excuses.hold_for("host.heap"):
        total_bytes = creep_per_step(course.watch.quick, course.span.origin) * steps
        if total_bytes > course.tolerance.total_bytes:
            gained = amount_of(total_bytes, "B")
            return "unclear", f"host.rss crept up by {gained} in all, and nothing that counts did"
    return "steady", ""


def _in_doubt(course: Course) -> str:
    names = ", ".join(reading.resource for reading in course.established)
    alone = len(course.established) == 1 and unit_of(names) == "B"
    grow = f"{names} {'grows' if alone else 'grow'}{_held_by(course.suspects)}"
    if course.per_training:
        return f"{grow}, {ONCE_A_TRAINING}"
    for reading in course.established:
        if (known := reading.stairs) is not None:
            by = f"{amount_of(known.rise, unit_of(reading.resource))} every {known.apart} steps"
            held = _held_by(course.suspects)
            return f"{names} rises by {by}{held}: too few times to be sure that it goes on"
    if course.trusted and course.removal is not None:
        return f"{grow}; {_to_come(course.removal.reason)}"
    if course.trusted:
        return f"{grow}; the loop around the steps may still release it"
    return f"{grow}, in a loop that makes no autograd graph: a leak, or data gathered"


def _to_come(reason: Reason) -> str:
    if reason.code == "due-in-time":
        return "the event loop lets go of it when its time comes"
    fields = dict(reason.fields)
    at = f"`{fields['code']}` ({fields['path']}:{fields['line']})"
    if reason.code == "gathered":
        return f"{at} uses it after the loop: {ON_PURPOSE}"
    return f"{at} may still take it away"


def _held_by(suspects: tuple[Suspect, ...]) -> str:
    for one in suspects:
        if one.holder:
            at = f" ({one.locations[0].path}:{one.locations[0].line})" if one.locations else ""
            return f", held by {one.holder}{at}"
    return ""


def _trends(course: Course, children: Reading | None) -> tuple[Trend, ...]:
    watch = course.watch
    growing = {reading.resource: reading for reading in course.established}
    pending = [*course.pending, *([children] if children else [])]
    doubted = growing.keys() | {reading.resource for reading in pending}
    seconds_per_step = watch.quick.seconds_per_step()
    trends = []
    for source in reversed(watch.sources):
        for resource in source.resources:
            reading = growing.get(resource) or read_known(source, resource)
            if reading is None or resource == GARBAGE or is_category(resource):
                continue
            in_doubt = resource in doubted or _may_follow(course, reading)
            verdict: Verdict = "unclear" if in_doubt else "steady"
            if _grows(course, reading, growing):
                verdict = "growing"
            room_bytes = _room_bytes(course, resource) if verdict == "growing" else None
            trends.append(as_trend(reading, verdict, seconds_per_step, room_bytes))
    return tuple(trends)


def _grows(course: Course, reading: Reading, growing: dict[str, Reading]) -> bool:
    if course.stage != "growing":
        return False
    if reading.resource in growing:
        return True
    # what is only reported follows the exact counters: it never grows alone
    line, follows = reading.line, unit_of(reading.resource) == "B"
    return follows and line.p < 1e-4 and 0 < line.high <= MOST_UNSURE * line.low


def _may_follow(course: Course, reading: Reading) -> bool:
    """Say whether memory may grow with what leaks: its interval is too wide to say."""
    memory = reading.resource == "host.rss" or is_in_use(reading.resource)
    climbs = reading.line.per_step > 0 and reading.line.high > course.tolerance.per_step_bytes
    return course.stage == "growing" and memory and climbs


def _room_bytes(course: Course, resource: str) -> int | None:
    if resource in ("host.rss", "host.heap"):
        return host_room_bytes()
    device, _, what = resource.rpartition(".")
    capacity = course.watch.capacity_bytes(device) if what == "allocated" else None
    if capacity is None:
        return None
    return max(0, capacity - course.watch.quick.newest().get(resource, 0))


def _environment_number(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else None


def _torch_version() -> str | None:
    version = getattr(sys.modules.get("torch"), "__version__", None)
    return None if version is None else str(version)


def _devices(course: Course) -> str | None:
    names = [name.rpartition(".")[0] for name in course.watch.quick.resources]
    devices = sorted({name for name in names if name != "host"})
    if devices:
        return ", ".join(devices)
    return "cpu" if "torch" in sys.modules else None
