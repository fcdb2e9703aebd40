"""From the course of a watch to its report: trends, suspects, verdict and the reason for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace

from leakcheck.model import Ended, Notice, Overhead, Reason, Report, Run, Suspect, Trend, Verdict
from leakcheck.runtime.accounts import told_suspects
from leakcheck.runtime.doubts import NEW_SHAPES, UNEVEN
from leakcheck.runtime.explanation import explained
from leakcheck.runtime.judgement import sawtooth
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
from leakcheck.runtime.readings import by_shape, shared_memory
from leakcheck.runtime.readings.copies import Copied
from leakcheck.runtime.readings.limits import host_room_bytes, shapes_kept
from leakcheck.runtime.readings.meters import is_in_use, unit_of
from leakcheck.runtime.readings.proc import CHILDREN
from leakcheck.runtime.readings.series import GARBAGE
from leakcheck.runtime.readings.shared_memory import BLOCKS
from leakcheck.runtime.readings.shared_memory import BYTES as SHARED
from leakcheck.runtime.stages.course import Course
from leakcheck.units import format_bytes

LEAST_TOLD = 0.01  # a step, for a rate to be more than 0 in words
MOST_UNSURE = 3.0  # times the low end of an interval, at its high end, for growth to be told
LEAST_GARBAGE_BYTES = 1 << 20
LEAST_GARBAGE_PER_STEP = 1 << 9  # bytes; below it nobody minds
_MADE_BY_OTHERS = {CHILDREN: "children-grow", BLOCKS: "shared-memory-grows"}
_OF_LIMITS = ("not-full-yet", "goes-on-yet")  # doubts


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
    watch = course.loop.watch
    steps = course.loop.span.seen(step)
    others = _of_others(course)
    verdict, reason = _verdict(course, steps, broken, others)
    suspects = told_suspects(course) if verdict == "growing" else ()
    trends = _trends(course, others, reason)
    elapsed_s = watch.elapsed_s
    cost_s = steps * watch.per_step_us / 1e6 + watch.checkpoint_s
    return Report(
        verdict=verdict,
        reason=reason,
        trends=trends,
        suspects=suspects,
        notices=(
            *without_contradicted(
                course.loop.notices, (one.resource for one in course.stage.grown), suspects
            ),
            *_teeth_notices(course),
            *_garbage_notices(course, steps),
            *_copy_notices(course),
            *by_shape.notices(watch.slow, course.loop.span.settled_step),
        ),
        run=Run(
            command=ending.command or " ".join(sys.argv),
            steps=steps,
            seconds=elapsed_s,
            warmup_steps=course.loop.span.warmup_steps,
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
            watch.slow,
            watch.quick.newest(),
            trends,
            course.loop.span.settled_step,
            course.loop.memory,
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
        return f"{suspect.what or suspect.kind}:{rate}{held}"
    return f"the verdict is {report.verdict}"


def _garbage_notices(course: Course, steps: int) -> tuple[Notice, ...]:
    freed_bytes = sum(course.loop.watch.garbage.freed)
    per_step = freed_bytes / max(1, steps)
    if freed_bytes < LEAST_GARBAGE_BYTES or per_step < LEAST_GARBAGE_PER_STEP:
        return ()
    kinds = tuple(map(str, course.loop.watch.garbage.kinds))
    code = "cycles-freed-by-us" if course.loop.watch.garbage.stays else "cycles-freed"
    freed = Reason.of(
        code,
        kinds=Reason.of("of", kinds=kinds) if kinds else None,
        freed_bytes=freed_bytes,
        per_step=per_step,
    )
    return (Notice("cyclic-garbage", freed),)


def _teeth_notices(course: Course) -> tuple[Notice, ...]:
    if any(one.resource == sawtooth.RESOURCE for one in course.stage.grown):
        return ()
    return course.loop.teeth.notices(course.loop.watch.slow, course.loop.span.settled_step)


def _copy_notices(course: Course) -> tuple[Notice, ...]:
    copied = _copied(course)
    if copied is None:
        return ()
    kept = Reason.of("objects-in", container=copied.container, length=copied.length)
    by = kept if copied.container else Reason("collector-reads")
    told = Reason.of(
        "copied-by-children",
        processes=copied.processes,
        copied_bytes=copied.copied_bytes,
        most_bytes=copied.most_bytes,
        by=by,
    )
    return (Notice("copied", told),)


def _copied(course: Course) -> Copied | None:
    """Return what children copied, if it is more than may go untold."""
    copied = course.loop.watch.host.copies.most
    told = copied is not None and copied.copied_bytes > course.loop.tolerance.total_bytes
    return copied if told else None


def _too_much(copied: Copied | None, room_bytes: int) -> Reason | None:
    """Say that what children still share does not fit into memory once it is copied."""
    if copied is None or copied.shared_bytes <= room_bytes:
        return None
    return Reason.of(
        "copies-do-not-fit",
        processes=copied.processes,
        shared_bytes=copied.shared_bytes,
        room_bytes=room_bytes,
    )


def _verdict(
    course: Course, steps: int, broken: str, others: list[Reading]
) -> tuple[Verdict, Reason | None]:
    if course.stage.name == "growing":
        return "growing", None
    doubt = _unseen(steps, broken) or _doubt(course, steps, others)
    return ("unclear", doubt) if doubt is not None else ("steady", None)


def _unseen(steps: int, broken: str) -> Reason | None:
    """Return why too little was seen to judge."""
    if broken:
        return Reason.of("stopped-watching", error=broken)
    if steps == 0:
        return Reason("no-steps")
    if steps < FEWEST_STEPS:
        return Reason.of("too-few-steps", steps=steps, needed=FEWEST_STEPS)
    return None


def _doubt(course: Course, steps: int, others: list[Reading]) -> Reason | None:
    if course.stage.name in ("waiting", "attributing"):
        return _in_doubt(course)
    if course.loop.watch.garbage.stays and _garbage_notices(course, steps):
        return Reason("cycles-pile-up")
    if course.stage.pending:
        return _unconfirmed(course)
    if course.stage.name != "steady" and (doubt := _rises(course, steps)) is not None:
        return doubt
    if went_on := course.loop.went_on():
        return Reason.of("went-on", resources=went_on)
    for one in others:
        return Reason.of(_MADE_BY_OTHERS[one.resource], per_step=one.line.per_step)
    if (too_much := _too_much(_copied(course), host_room_bytes())) is not None:
        return too_much
    if not course.loop.excuses.hold_for("host.heap"):
        gained_bytes = creep_per_step(course.loop.watch.quick, course.loop.span.origin) * steps
        if gained_bytes > course.loop.tolerance.total_bytes:
            return Reason.of("crept", gained_bytes=gained_bytes)
    return None


def _of_others(course: Course) -> list[Reading]:
    """Return what piles up and is not made by the lines that are traced, the gravest first."""
    slow, excuses = course.loop.watch.slow, course.loop.excuses
    children = grown_children(slow, course.loop.tolerance.per_step_bytes)
    found = [] if children is None else [children]
    blocks = read_known(slow, BLOCKS) if excuses.hold_for(BLOCKS) else None
    return [*found, blocks] if blocks is not None and blocks.line.low > 0 else found


def _unconfirmed(course: Course) -> Reason:
    pending, held = course.stage.pending, course.stage.episode.held
    names = _names(pending)
    if held.doubt.code in (NEW_SHAPES, UNEVEN):
        kept = shapes_kept()
        in_bytes = [one for one in pending if unit_of(one.resource) == "B"]
        per_step = max((one.line.per_step for one in in_bytes), default=0.0)
        return Reason.of(
            held.doubt.code,
            resources=names,
            per_step=per_step,
            at=_first_line(held.suspects),
            most=kept,
            full_bytes=round(kept * per_step),
        )
    return Reason.of("unconfirmed", resources=names, held=_held_by(held.suspects))


def _first_line(suspects: Iterable[Suspect]) -> Reason | None:
    at = next((one.locations[0] for one in suspects if one.locations), None)
    return None if at is None else Reason.of("at", path=at.path, line=at.line)


def _rises(course: Course, steps: int) -> Reason | None:
    """Return what went on to the end, though nothing was confirmed to grow."""
    limited, watch = course.loop.excuses.limited, course.loop.watch
    if limited is not None and limited.goes_on(watch.sources):
        code = "not-full-yet" if limited.told.code == "limited" else "goes-on-yet"
        return Reason.of(code, limit=limited.told)
    rising = counters_that_rise(watch.slow, short=steps < SHORT_RUN_STEPS)
    settled = course.loop.span.settled_step
    rising = rising or course.loop.teeth.higher_each_turn(watch.slow, settled)
    garbage = course.loop.garbage
    readings = (read_known(watch.slow, name) for name in rising if name not in garbage)
    unexcused = course.loop.excuses.without([each for each in readings if each is not None])
    if unexcused:
        return Reason.of("rose", resources=_names(unexcused), steps=steps)
    climbing = course.loop.excuses.still_climbing(
        watch.sources, course.loop.tolerance.per_step_bytes
    )
    climbs = next((one for one in climbing if one.resource not in garbage), None)
    return _climbs(climbs) if climbs is not None else None


def _climbs(reading: Reading) -> Reason:
    climbs, unit = reading.line.second_half, unit_of(reading.resource)
    rate = Reason.of("rate", per_step=climbs, unit=unit) if climbs >= LEAST_TOLD else None
    return Reason.of("climbs", resource=reading.resource, rate=rate)


def _in_doubt(course: Course) -> Reason:
    names, held = _names(course.stage.grown), _held_by(course.stage.found.suspects)
    rare = next((one for one in course.stage.grown if one.stairs is not None), None)
    if course.stage.found.per_training:
        return Reason.of("once-a-training", resources=names, held=held)
    if rare is not None:
        return _too_few_rises(rare, held)
    if not course.loop.trusted:
        return Reason.of("no-graph", resources=names, held=held)
    if course.stage.name == "attributing":
        return Reason.of("unattributed", resources=names, held=held)
    prospects = course.stage.found.prospects
    if (removal := prospects.removal) is not None:
        return Reason.of(
            "may-be-taken",
            resources=names,
            held=held,
            removal=removal.reason,
            within_steps=prospects.wait_steps or None,
        )
    if course.stage.rests:
        holders = tuple(str(one.holder) for one in course.stage.found.suspects if one.holder)
        return Reason.of("did-not-go-on", holders=holders)
    return Reason.of("loop-may-release", resources=names, held=held)


def _too_few_rises(reading: Reading, held: Reason | None) -> Reason:
    assert reading.stairs is not None
    return Reason.of(
        "too-few-rises",
        resource=reading.resource,
        rise=reading.stairs.rise,
        unit=unit_of(reading.resource),
        apart_steps=reading.stairs.apart,
        held=held,
    )


def _names(readings: Iterable[Reading]) -> tuple[str, ...]:
    return tuple(reading.resource for reading in readings)


def _held_by(suspects: Iterable[Suspect]) -> Reason | None:
    for one in suspects:
        if one.holder and one.locations:
            at = one.locations[0]
            return Reason.of("held-at", holder=str(one.holder), path=at.path, line=at.line)
        if one.holder:
            return Reason.of("held", holder=str(one.holder))
    return None


def _trends(course: Course, others: list[Reading], reason: Reason | None) -> tuple[Trend, ...]:
    watch = course.loop.watch
    growing = {reading.resource: reading for reading in course.stage.grown}
    pending = [*course.stage.pending, *others]
    doubted = growing.keys() | {reading.resource for reading in pending}
    doubted |= _doubted_by(course, reason)
    seconds_per_step = watch.quick.seconds_per_step()
    trends = []
    for source in reversed(watch.sources):
        for resource in source.resources:
            reading = growing.get(resource) or read_known(source, resource)
            if reading is None or resource == GARBAGE or by_shape.has_no_trend(resource):
                continue
            in_doubt = resource in doubted or (bool(doubted) and _may_follow(course, reading))
            verdict: Verdict = "unclear" if in_doubt else "steady"
            if _grows(course, reading, growing):
                verdict = "growing"
            room_bytes = _room_bytes(course, resource) if verdict == "growing" else None
            trends.append(as_trend(reading, verdict, seconds_per_step, room_bytes))
    return tuple(trends)


def _doubted_by(course: Course, reason: Reason | None) -> set[str]:
    """Return the resources that a doubt is about: they are not steady."""
    if reason is None:
        return set()
    limited = course.loop.excuses.limited
    if reason.code in _OF_LIMITS and limited is not None:
        return set(limited.rates)
    named = reason.get("resources") or (reason.get("resource"),)
    names = named if isinstance(named, tuple) else ()
    return {name for name in names if isinstance(name, str)}


def _grows(course: Course, reading: Reading, growing: dict[str, Reading]) -> bool:
    if course.stage.name != "growing":
        return False
    if reading.resource in growing:
        return True
    # what is only reported follows the exact counters: it never grows alone
    line, follows = reading.line, unit_of(reading.resource) == "B"
    return follows and (line.p < 1e-4 or line.straight) and 0 < line.high <= MOST_UNSURE * line.low


def _may_follow(course: Course, reading: Reading) -> bool:
    """Say whether memory may grow with what leaks: its interval is too wide to say."""
    memory = reading.resource == "host.rss" or is_in_use(reading.resource)
    climbs = reading.line.per_step > 0 and reading.line.high > course.loop.tolerance.per_step_bytes
    return memory and climbs


def _room_bytes(course: Course, resource: str) -> int | None:
    if resource in ("host.rss", "host.heap"):
        return host_room_bytes()
    if resource == SHARED:
        return shared_memory.room_bytes()
    device, _, what = resource.rpartition(".")
    capacity = course.loop.watch.devices.capacity_bytes(device) if what == "allocated" else None
    if capacity is None:
        return None
    return max(0, capacity - course.loop.watch.quick.newest().get(resource, 0))


def _environment_number(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else None


def _torch_version() -> str | None:
    version = getattr(sys.modules.get("torch"), "__version__", None)
    return None if version is None else str(version)


def _devices(course: Course) -> str | None:
    names = [name.rpartition(".")[0] for name in course.loop.watch.quick.resources]
    devices = sorted({name for name in names if name != "host"})
    if devices:
        return ", ".join(devices)
    return "cpu" if "torch" in sys.modules else None
