"""From the course of a watch to its report: trends, suspects, verdict and the reason for it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace

from leakcheck.model import Kind, Notice, Overhead, Report, Run, Suspect, Trend, Verdict
from leakcheck.runtime.attribution.advice import fitting
from leakcheck.runtime.attribution.device_growth import place_of
from leakcheck.runtime.explanation import explained
from leakcheck.runtime.judgement.harmless import BLOCK_BYTES
from leakcheck.runtime.judgement.judge import (
    FEWEST_STEPS,
    SHORT_RUN_STEPS,
    Reading,
    as_trend,
    counters_that_rise,
    read,
    read_known,
)
from leakcheck.runtime.judgement.trend import even_rate
from leakcheck.runtime.readings.categories import is_category
from leakcheck.runtime.readings.limits import host_room_bytes
from leakcheck.runtime.readings.meters import HELD_BACK, OUTSIDE, unit_of
from leakcheck.runtime.stages import Course
from leakcheck.units import format_bytes, format_count

# a growing resource -> the kind of leak it shows, the most telling first
KINDS: dict[str, Kind] = {
    "graph.nodes": "graph",
    "tensors": "tensor",
    "hooks": "object",
    "python.blocks": "object",
    "processes": "processes",
    "threads": "threads",
    "descriptors": "descriptors",
    "host.heap": "native",
    "host.rss-heap": "fragmentation",
}
KINDS_OF_DEVICES: dict[str, Kind] = {"reserved-allocated": "fragmentation", "outside": "external"}
LEAST_GARBAGE_BYTES = 1 << 20
LEAST_GARBAGE_PER_STEP = 1 << 9  # bytes; below it nobody minds
MOST_OFF = 1.5  # times, that a window's rates may be off from the measured one
LEAST_SHARE = 0.2  # of a counter's rate, for a suspect to be told
# kinds whose suspects are only told if this counter was found to grow
COUNTERS: dict[Kind, str] = {"graph": "graph.nodes", "tensor": "tensors"}
WHAT: dict[Kind, str] = {
    "graph": "the autograd graph of past steps stays reachable",
    "tensor": "tensors pile up",
    "object": "Python objects pile up",
    "native": "heap memory in use grows, Python objects do not",
    "device": "device memory grows and no tensor accounts for it",
    "processes": "child processes pile up",
    "threads": "threads pile up",
    "descriptors": "open file descriptors pile up",
    "external": "the process uses more of the device, torch's allocator does not",
    "fragmentation": "memory outside the allocator's count grows: held back, or mapped past it",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """How the run ended, as far as the sentinel cannot know it itself."""

    command: str = ""
    stopped_by: str = ""
    exit_status: int | None = None
    running: bool = False


def conclude(course: Course, step: int, clock: str, broken: str, ending: Ending) -> Report:
    """Make the report of a watch as it stands at `step`."""
    watch = course.watch
    steps = course.steps_seen(step)
    verdict, reason = _verdict(course, steps, broken)
    suspects = _with_rates(course) if verdict == "growing" else ()
    trends = _trends(course)
    elapsed_s = watch.elapsed_s
    cost_s = steps * watch.per_step_us / 1e6 + watch.checkpoint_s
    return Report(
        verdict=verdict,
        reason=reason,
        trends=trends,
        suspects=suspects,
        notices=(*course.notices, *_garbage_notices(course, steps)),
        run=Run(
            command=ending.command or " ".join(sys.argv),
            steps=steps,
            seconds=elapsed_s,
            warmup_steps=course.warmup_steps,
            clock=clock,
            rank=_environment_number("RANK"),
            world_size=_environment_number("WORLD_SIZE"),
            torch=_torch_version(),
            device=_devices(course),
            stopped_by=ending.stopped_by,
            exit_status=ending.exit_status,
        ),
        overhead=Overhead(watch.per_step_us, min(1.0, cost_s / elapsed_s if elapsed_s else 0.0)),
        memory=explained(
            watch.slow, watch.quick.newest(), trends, course.settled_step, course.memory
        ),
    )


def summary(report: Report) -> str:
    """Say in one line what leaks."""
    for suspect in report.suspects:
        rate = f" {format_bytes(suspect.bytes_per_step)} a step" if suspect.bytes_per_step else ""
        held = f", held by {suspect.holder}" if suspect.holder else ""
        return f"{suspect.what}:{rate}{held}"
    return f"the verdict is {report.verdict}"


def _garbage_notices(course: Course, steps: int) -> tuple[Notice, ...]:
    freed_bytes = course.watch.garbage_bytes
    per_step = freed_bytes / max(1, steps)
    if freed_bytes < LEAST_GARBAGE_BYTES or per_step < LEAST_GARBAGE_PER_STEP:
        return ()
    amount, rate = format_bytes(freed_bytes), format_bytes(per_step)
    kinds = course.watch.garbage_kinds
    of = f" of {', '.join(map(str, kinds))}" if kinds else ""
    told = f"reference cycles{of} wait for the garbage collector"
    freed = f"which freed {amount} ({rate} a step)"
    return (Notice("cyclic-garbage", f"{told}, {freed}: not a leak"),)


def _verdict(course: Course, steps: int, broken: str) -> tuple[Verdict, str]:
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
    if course.pending:
        names = ", ".join(reading.resource for reading in course.pending)
        return "unclear", f"{names} seemed to grow, and the run ended before that was confirmed"
    limited = None if course.stage == "steady" else course.excuses.limited
    if limited is not None and limited.goes_on(course.watch.sources):
        return "unclear", f"{limited.told}, and the run ended before it was full"
    rising = counters_that_rise(course.watch.slow) if steps < SHORT_RUN_STEPS else []
    if course.stage != "steady" and rising:
        return (
            "unclear",
            f"{', '.join(rising)} rose at every look; {steps} steps are too few to say",
        )
    if course.stage != "steady":
        climbing = course.excuses.still_climbing(course.watch.sources, course.tolerance_bytes)
        for reading in climbing:
            rate = _amount(reading.line.second_half, unit_of(reading.resource))
            return "unclear", f"{reading.resource} still climbs {rate} a step, not regularly"
    return "steady", ""


def _in_doubt(course: Course) -> str:
    names = ", ".join(reading.resource for reading in course.established)
    held = next((f", held by {one.holder}" for one in course.suspects if one.holder), "")
    if course.trusted:
        return f"{names} grow{held}; the loop around the steps may still release it"
    return f"{names} grow{held}, in a loop that makes no autograd graph: a leak, or data gathered"


def _trends(course: Course) -> tuple[Trend, ...]:
    watch = course.watch
    growing = {reading.resource: reading for reading in course.established}
    doubted = growing.keys() | {reading.resource for reading in course.pending}
    seconds_per_step = watch.quick.seconds_per_step()
    trends = []
    for source in reversed(watch.sources):
        for resource in source.resources:
            reading = growing.get(resource) or read_known(source, resource)
            if reading is None or resource == "garbage" or is_category(resource):
                continue
            verdict: Verdict = "unclear" if resource in doubted else "steady"
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
    follows = unit_of(reading.resource) == "B"
    return follows and reading.line.low > 0 and reading.line.p < 1e-4


def _room_bytes(course: Course, resource: str) -> int | None:
    if resource in ("host.rss", "host.heap"):
        return host_room_bytes()
    device, _, what = resource.rpartition(".")
    capacity = course.watch.capacity_bytes(device) if what == "allocated" else None
    if capacity is None:
        return None
    return max(0, capacity - course.watch.quick.newest().get(resource, 0))


def _with_rates(course: Course) -> tuple[Suspect, ...]:
    rates = {reading.resource: reading.line.per_step for reading in course.established}
    kinds = [_kind_of(resource) for resource in rates]
    leading = min(kinds, key=list(WHAT).index)
    suspects = _worth_telling(course.suspects, rates)
    if not suspects:
        allocated_at = (place_of(memory) for memory in course.memory)
        places = next(filter(None, allocated_at), ()) if leading == "device" else ()
        suspects = (Suspect(leading, WHAT[leading], locations=places),)
    if len(suspects) == 1 and not course.fills_beside:
        suspects = (_measured(suspects[0], course, rates),)
    elif not course.fills_beside:
        suspects = _adding_up(suspects, rates)
    age = course.watch.oldest_node_age_steps
    return tuple(
        replace(each, fix=fitting(each), evidence=_evidence(each, rates, age)) for each in suspects
    )


def _kind_of(resource: str) -> Kind:
    return KINDS.get(resource) or KINDS_OF_DEVICES.get(resource.rpartition(".")[2], "device")


def _worth_telling(suspects: tuple[Suspect, ...], rates: dict[str, float]) -> tuple[Suspect, ...]:
    # a window of a few steps also sees objects that come and go; what grows was measured before
    told = []
    for suspect in suspects:
        resource = COUNTERS.get(suspect.kind)
        if resource is None or _weighs(suspect, rates):
            told.append(suspect)
        elif resource in rates:
            share = (suspect.objects_per_step or rates[resource]) / rates[resource]
            told += [suspect] if share >= LEAST_SHARE else []
    return tuple(told)


def _weighs(suspect: Suspect, rates: dict[str, float]) -> bool:
    # one tensor that is extended step by step: it grows in bytes, not in number
    in_bytes = {name: rate for name, rate in rates.items() if unit_of(name) == "B"}
    if suspect.objects_per_step is not None or suspect.kind != "tensor" or not in_bytes:
        return False
    return (suspect.bytes_per_step or 0.0) >= LEAST_SHARE * max(in_bytes.values())


def _adding_up(suspects: tuple[Suspect, ...], rates: dict[str, float]) -> tuple[Suspect, ...]:
    """Have the suspects of a kind that is counted add up to the count, which saw more steps."""
    scaled = []
    for suspect in suspects:
        alike = [one.objects_per_step for one in suspects if one.kind == suspect.kind]
        rate = rates.get(COUNTERS.get(suspect.kind, ""), 0.0)
        seen = sum(each or 0.0 for each in alike)
        factor = rate / seen if seen and None not in alike else 0.0
        if 1 / MOST_OFF <= factor <= MOST_OFF:
            count, size = suspect.objects_per_step or 0.0, suspect.bytes_per_step
            in_bytes = None if size is None else size * factor
            suspect = replace(suspect, objects_per_step=count * factor, bytes_per_step=in_bytes)
        scaled.append(suspect)
    return tuple(scaled)


def _measured(suspect: Suspect, course: Course, rates: dict[str, float]) -> Suspect:
    """Give the only suspect the rates of the whole run: they are exacter than the window's."""
    counter = COUNTERS.get(suspect.kind, suspect.kind)  # threads are counted as "threads"
    objects_per_step = rates.get(counter, suspect.objects_per_step)
    bytes_per_step = _bytes_per_step(course)
    if suspect.kind == "object":  # small ones are not in the heap's count
        blocks = rates.get("python.blocks", 0.0)
        weighed = suspect.bytes_per_step or (bytes_per_step or 0.0) + blocks * BLOCK_BYTES
        # weighed was the object alone: what it holds shows in the heap, or outside it
        beside = (rates.get(name, 0.0) for name in ("host.heap", "host.rss-heap"))
        alone = suspect.is_extended  # its size was read itself
        bytes_per_step = weighed if alone else max(weighed, *beside)
        objects_per_step = None if alone else objects_per_step or blocks or None
    return replace(suspect, objects_per_step=objects_per_step, bytes_per_step=bytes_per_step)


def _bytes_per_step(course: Course) -> float | None:
    known = {reading.resource: reading for reading in course.established}
    held_back = sum(
        known[name].line.per_step for name in known if name.endswith((*HELD_BACK, OUTSIDE))
    )
    in_use = [
        _climb(course, name, known.get(name))
        for name in course.watch.quick.resources
        if name == "host.heap" or name.endswith(".allocated")
    ]
    # a few bytes of heap beside the kilobytes that are held back are not the rate
    return max(sum(in_use), held_back) or None


def _climb(course: Course, resource: str, confirmed: Reading | None) -> float:
    whole = confirmed or read(course.watch.quick, resource)
    if confirmed is None and whole is not None:
        rate = even_rate(whole.steps, whole.values)
        if rate is not None:
            return rate
    # collections and the window make the heap jump: that hides a short climb
    collected_at = max((reading.steps[-1] for reading in course.established), default=0)
    between = read(course.watch.quick, resource, collected_at, course.established_step)
    climbs = (each.line.per_step for each in (whole, between) if each and each.line.low > 0)
    return next(climbs, 0.0)


def _evidence(suspect: Suspect, rates: dict[str, float], oldest_age_steps: int | None) -> str:
    if suspect.evidence:
        known = suspect.kind == "graph" and oldest_age_steps is not None
        oldest = f"; the oldest is at least {oldest_age_steps} steps old" if known else ""
        return f"{suspect.evidence}{oldest}"
    told = []
    for resource, rate in rates.items():
        told.append(f"{resource} +{_amount(rate, unit_of(resource))} a step")
    return ", ".join(told)


def _amount(rate: float, unit: str) -> str:
    return format_bytes(rate) if unit == "B" else f"{format_count(rate)} {unit}"


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
