"""Suspects as they are told: with the rates of the whole run, and why they are suspected."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace
from itertools import pairwise

from leakcheck.model import COUNTERS, Kind, Reason, Suspect
from leakcheck.runtime.attribution import probes
from leakcheck.runtime.attribution.advice import fitting
from leakcheck.runtime.attribution.device_growth import place_of
from leakcheck.runtime.judgement.judge import Reading, read, read_known
from leakcheck.runtime.judgement.trend import even_rate, usual_gain
from leakcheck.runtime.readings.meters import (
    BESIDE_HEAP,
    BLOCK_BYTES,
    HELD_BACK,
    OUTSIDE,
    is_in_use,
    unit_of,
)
from leakcheck.runtime.readings.shared_memory import BYTES
from leakcheck.runtime.stages.course import Course

# a growing resource -> the kind of leak it shows
KINDS: dict[str, Kind] = {
    "graph.nodes": "graph",
    "tensors": "tensor",
    "hooks": "object",
    **probes.KINDS,
}
KINDS_OF_DEVICES: dict[str, Kind] = {
    "allocated": "device",
    "reserved-allocated": "fragmentation",
    "outside": "external",
}
MOST_OFF = 1.5  # times, that a window's rates may be off from the measured one
LEAST_WEIGHED = 0.5  # of what blocks and heap gained, for an object's own weight to be the rate
MANY_BLOCKS = 100  # a step: an arena of 1 MiB lasts for a few hundred steps
MOST_GONE = 0.1  # at once, of what a count rose by, for its rate to be that of what stays
SELDOM, LARGE_BYTES = 0.25, 4096  # objects a step; of each, for the heap to be theirs alone
WIDE = 0.5  # of a rate, for its interval to say little
LEAST_BLOCKS = 1.0  # a step, to be the program's own: readings of ours leave up to 0.6 behind
TENSOR_BYTES = 276  # of a tensor on the host in C++, beside its data and its Python object
LEAST_SHARE = 0.2  # of a counter's rate, for a suspect to be told
ABOUT_ALL = 0.7  # of the bytes that grow, in what was not counted often enough
# of several that grow, the first of these is told
MOST_TELLING: tuple[Kind, ...] = (
    *("graph", "tensor", "object", "native", "device", "processes", "threads", "descriptors"),
    *("shared-memory", "external", "fragmentation"),
)


def told_suspects(course: Course) -> tuple[Suspect, ...]:
    """Return what leaks, the rates measured over the whole run; at least one."""
    rates = {reading.resource: reading.line.per_step for reading in course.stage.grown}
    leading = _leading(rates)
    suspects = _worth_telling(course.stage.found.suspects, rates)
    if not suspects:
        allocated_at = (place_of(memory) for memory in course.loop.memory)
        places = next(filter(None, allocated_at), ()) if leading == "device" else ()
        suspects = (Suspect(leading, "", locations=places),)
    beside = course.stage.found.beside_bytes
    if len(suspects) == 1 and beside is None:
        suspects = (_measured(suspects[0], course, rates),)
    else:
        adding_up = _adding_up(suspects, rates if beside is None else {})
        in_use = _bytes_per_step(course, with_blocks=True)[0]
        possible = tuple(_without_shared(one, in_use) for one in adding_up)
        suspects = _with_rest(possible, in_use and in_use - (beside or 0.0))
    age = course.loop.watch.oldest_node_age_steps
    return tuple(
        replace(each, fix=fitting(each), evidence=_evidence(each, rates, age)) for each in suspects
    )


def _leading(rates: dict[str, float]) -> Kind:
    """Return the most telling kind of leak that what grows may show."""
    return min(map(_kind_of, probes.without_few_blocks(rates)), key=MOST_TELLING.index)


def _kind_of(resource: str) -> Kind:
    return KINDS.get(resource) or KINDS_OF_DEVICES[resource.rpartition(".")[2]]


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
    # backward in a thread of its own makes Nodes that no count dates: the tensors were counted
    undated = [one for one in suspects if one.kind == "graph"] if "tensors" in rates else []
    return tuple(told or undated)


def _weighs(suspect: Suspect, rates: dict[str, float]) -> bool:
    """Say whether tensors have the bytes that grow, where their number was not seen to.

    One is extended step by step, or a large one comes every fifty.
    """
    in_bytes = {name: rate for name, rate in rates.items() if unit_of(name) == "B"}
    if suspect.kind != "tensor" or not in_bytes or COUNTERS["tensor"] in rates:
        return False
    share = (suspect.bytes_per_step or 0.0) / max(in_bytes.values())
    if suspect.objects_per_step is None:
        return share >= LEAST_SHARE
    return ABOUT_ALL < share < 1 / ABOUT_ALL


def _adding_up(suspects: tuple[Suspect, ...], rates: dict[str, float]) -> tuple[Suspect, ...]:
    """Have the suspects of a kind that is counted add up to the count, which saw more steps."""
    scaled = []
    for suspect in suspects:
        alike = [one.objects_per_step for one in suspects if one.kind == suspect.kind]
        rate = rates.get(COUNTERS.get(suspect.kind, ""), 0.0)
        seen = sum(each or 0.0 for each in alike)
        factor = rate / seen if seen and None not in alike else 0.0
        factor = factor if 1 / MOST_OFF <= factor <= MOST_OFF else 1.0
        scaled.append(_scaled(suspect, factor))
    return tuple(scaled)


def _scaled(suspect: Suspect, factor: float) -> Suspect:
    count, size = suspect.objects_per_step, suspect.bytes_per_step
    count = None if count is None else count * factor
    in_bytes = None if size is None else size * factor
    if suspect.kind == "tensor":
        in_bytes = _weighed(suspect, count)
    return replace(suspect, objects_per_step=count, bytes_per_step=in_bytes)


def _without_shared(suspect: Suspect, in_use: float | None) -> Suspect:
    """Take the bytes from a suspect that weighs more than is gained: its parts are others' too."""
    if in_use is None or (suspect.bytes_per_step or 0.0) <= MOST_OFF * in_use:
        return suspect
    unweighed = suspect.trace and replace(
        suspect.trace, links=tuple(replace(one, retained_bytes=None) for one in suspect.trace.links)
    )
    return replace(suspect, bytes_per_step=None, trace=unweighed)


def _with_rest(suspects: tuple[Suspect, ...], in_use: float | None) -> tuple[Suspect, ...]:
    """Give the only graph what the memory in use gains beside the other suspects.

    Nodes are made in C++, and weigh nothing in a window.
    """
    graphs = [one for one in suspects if one.kind == "graph"]
    others = sum(one.bytes_per_step or 0.0 for one in suspects if one.kind != "graph")
    if len(graphs) != 1 or in_use is None or in_use <= others:
        return suspects
    rest = replace(graphs[0], bytes_per_step=in_use - others)
    return tuple(rest if one is graphs[0] else one for one in suspects)


def _measured(suspect: Suspect, course: Course, rates: dict[str, float]) -> Suspect:
    """Give the only suspect the rates of the whole run: they are exacter than the window's."""
    counter = COUNTERS.get(suspect.kind, suspect.kind)  # threads are counted as "threads"
    seen = suspect.objects_per_step
    often = suspect.kind == "tensor" and (seen or 0.0) > SELDOM
    count = seen if often and _fell(course, counter) else rates.get(counter, seen)
    in_bytes, narrow = _bytes_per_step(course, with_blocks=_counts_blocks(suspect))
    match suspect.kind:
        case "shared-memory":
            shared = read_known(course.loop.watch.slow, BYTES)
            in_bytes = shared.line.per_step if shared else None
        case "processes" | "threads" | "descriptors":
            in_bytes = in_bytes if narrow else None
        case "tensor" if suspect.bytes_per_step and not narrow:
            in_bytes = _weighed(suspect, count)
        case "tensor" if suspect.bytes_per_step and suspect.is_extended:
            in_bytes = suspect.bytes_per_step  # a library may keep room for one as large beside
        case "tensor" if in_bytes and _counts_blocks(suspect):
            in_bytes += _blocks_beside(course) * BLOCK_BYTES
        case "object":
            if not suspect.is_extended:  # its size was read itself
                suspect = _without_shared(suspect, _most_of_objects(rates))
            count, in_bytes = _of_objects(suspect, course, rates, count, in_bytes or 0.0)
    return replace(suspect, objects_per_step=count, bytes_per_step=in_bytes)


def _of_objects(
    suspect: Suspect, course: Course, rates: dict[str, float], count: float | None, in_use: float
) -> tuple[float | None, float]:
    """Return how many objects come a step, and their bytes: small ones are not in the heap's."""
    blocks, heap = rates.get("python.blocks", 0.0), rates.get("host.heap", 0.0)
    mapped = _arenas(course, blocks, rates)
    small = blocks * BLOCK_BYTES + in_use if mapped is None else mapped + heap
    weighed = suspect.bytes_per_step or small
    if suspect.is_extended:  # its size was read itself
        return None, weighed
    if (seldom := _seldom_bytes(suspect, rates)) and suspect.bytes_per_step:
        factor = seldom / suspect.bytes_per_step
        return (suspect.objects_per_step or 0.0) * factor, seldom
    measured = blocks * BLOCK_BYTES + heap if mapped is None else small
    if weighed < LEAST_WEIGHED * measured:  # what it holds is small, and many
        weighed = measured
    # weighed was the object alone: what it holds shows in the heap, or outside it
    return count or blocks or None, max(weighed, heap, rates.get(BESIDE_HEAP, 0.0))


def _most_of_objects(rates: dict[str, float]) -> float | None:
    """Return the most bytes that objects can have gained a step, None where they were not counted.

    What is drawn refers to its axes, and so to the whole figure.
    """
    if "python.blocks" not in rates:
        return None
    beside = rates.get("host.heap", 0.0) + rates.get(BESIDE_HEAP, 0.0)
    return rates["python.blocks"] * probes.LARGEST_BLOCK_BYTES + beside


def _fell(course: Course, counter: str) -> bool:
    """Say whether a count came down: then others came and went, and it is off by as many."""
    _, values = course.loop.watch.slow.column(counter)
    falls = (past - now for past, now in pairwise(values))
    return bool(values) and max(falls, default=0) > MOST_GONE * (values[-1] - values[0])


def _arenas(course: Course, blocks: float, rates: dict[str, float]) -> float | None:
    """Return what is mapped a step beside the heap, only if enough objects are made to tell."""
    known, narrow = _climb(course, BESIDE_HEAP, None)
    return rates.get(BESIDE_HEAP, known if known and narrow and blocks >= MANY_BLOCKS else None)


def _seldom_bytes(suspect: Suspect, rates: dict[str, float]) -> float | None:
    """Return what the heap gains by what is large and comes seldom: a window saw two or three."""
    seen, in_bytes = suspect.objects_per_step, suspect.bytes_per_step
    heap = rates.get("host.heap")
    if not seen or not in_bytes or heap is None or suspect.is_extended:
        return None
    large = seen < SELDOM and in_bytes / seen > LARGE_BYTES
    return heap if large and 1 / MOST_OFF < heap / in_bytes < MOST_OFF else None


def _weighed(suspect: Suspect, objects_per_step: float | None) -> float | None:
    """Return what tensors weigh that are kept, where the heap does not tell how fast it grows."""
    seen, in_bytes = suspect.objects_per_step, suspect.bytes_per_step
    if not seen or not objects_per_step or in_bytes is None:
        return in_bytes
    return objects_per_step * (in_bytes / seen + TENSOR_BYTES)


def _counts_blocks(suspect: Suspect) -> bool:
    """Say whether small Python objects come with each: a tensor's, and what it is kept in."""
    return suspect.kind in COUNTERS and not suspect.is_extended


def _bytes_per_step(course: Course, *, with_blocks: bool) -> tuple[float | None, bool]:
    """Return what the memory in use gains, and whether that is known well.

    `with_blocks`: with what Python's allocator gained at the least, which the heap does not show.
    """
    known = {reading.resource: reading for reading in course.stage.grown}
    held_back = sum(
        known[name].line.per_step for name in known if name.endswith((*HELD_BACK, OUTSIDE))
    )
    in_use = [
        _climb(course, name, known.get(name))
        for name in filter(is_in_use, course.loop.watch.quick.resources)
    ]
    blocks = known.get("python.blocks") if with_blocks else None
    small = blocks.line.low * BLOCK_BYTES if blocks else 0.0
    # a few bytes of heap beside the kilobytes that are held back are not the rate
    rate = max(sum(rate for rate, _ in in_use) + small, held_back)
    return rate or None, all(narrow for _, narrow in in_use)


def _blocks_beside(course: Course) -> float:
    """Return how many blocks came a step that were too few to be confirmed, 0 if they were.

    By the median of the gains, as collections take away and windows leave thousands at once; of
    those since the last collection where there are any, as before it garbage came too.
    """
    if any(reading.resource == "python.blocks" for reading in course.stage.grown):
        return 0.0
    since = min((reading.steps[0] for reading in course.stage.grown), default=0)
    collected_at = max((reading.steps[-1] for reading in course.stage.grown), default=0)
    steps, values = course.loop.watch.slow.column("python.blocks", after=since - 1)
    first = bisect_left(steps, collected_at)
    last = bisect_right(steps, course.stage.episode.grown_step)
    first = first if len(set(steps[first:last])) > 1 else 0
    usual = usual_gain(steps[first:last], values[first:last])
    return usual if usual >= LEAST_BLOCKS else 0.0


def _climb(course: Course, resource: str, confirmed: Reading | None) -> tuple[float, bool]:
    whole = confirmed or read(course.loop.watch.quick, resource)
    if confirmed is None and whole is not None:
        rate = even_rate(whole.steps, whole.values)
        if rate is not None:
            return rate, True
    # collections and the window make the heap jump: that hides a short climb
    collected_at = max((reading.steps[-1] for reading in course.stage.grown), default=0)
    between = read(course.loop.watch.quick, resource, collected_at, course.stage.episode.grown_step)
    climbs = (each.line for each in (whole, between) if each and each.line.low > 0)
    line = next(climbs, None)
    if line is None:
        return 0.0, True
    return line.per_step, line.high - line.low <= WIDE * line.per_step


def _evidence(suspect: Suspect, rates: dict[str, float], oldest_age_steps: int | None) -> Reason:
    if suspect.evidence is None:
        told = (
            Reason.of("rises-by", resource=resource, per_step=rate, unit=unit_of(resource))
            for resource, rate in rates.items()
        )
        return Reason.of("rates", rates=tuple(told))
    if suspect.kind != "graph" or oldest_age_steps is None:
        return suspect.evidence
    oldest = Reason.of("oldest", age_steps=oldest_age_steps)
    fields = dict(suspect.evidence.fields) | {"oldest": oldest}
    return Reason.of(suspect.evidence.code, **fields)
