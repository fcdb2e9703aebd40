"""Small readings that the line tracer takes after every line: lengths, heap, threads, files."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from leakcheck.model import Holder, Kind, LeakTrace
from leakcheck.runtime.attribution.lines import LineTracer, Probe, culprit
from leakcheck.runtime.attribution.suspects import Lead
from leakcheck.runtime.attribution.trace import Told
from leakcheck.runtime.introspection import frames
from leakcheck.runtime.introspection.frames import Site
from leakcheck.runtime.introspection.objects import content_reader
from leakcheck.runtime.readings import shared_memory
from leakcheck.runtime.readings.devices import device_reader
from leakcheck.runtime.readings.heap import exact_heap_reader
from leakcheck.runtime.readings.meters import COUNTED_EXACTLY, is_of_device, mapped_bytes, unit_of
from leakcheck.runtime.readings.thread_cache import LARGEST_CACHED_BYTES, cached_bytes_reader

# Steps of the window after which a resource is credited, 0 if not here. A line traced for the
# first time costs a table of its code: 46 KB of heap in the first step. If no container has grown
# by then that may hold the blocks gained, lines are asked for them (40 us each).
FROM_STEP = {"host.heap": 2, "host.rss-heap": 2, "python.blocks": 5}


def traced_steps(resource: str, steps: int) -> int:
    """Return in how many steps of a window lines were credited for a resource, at least one."""
    return max(1, steps - FROM_STEP.get(resource, 0))


def of_length(container: Any) -> Probe:
    """Read how many elements a container has, or bytes a buffer."""
    length = content_reader(type(container)) or len
    return lambda: length(container)


def of_resource(resource: str) -> Probe | None:
    """Return a quick reading of a resource of the process, None if there is none."""
    if resource == "host.heap":
        return exact_heap_reader()
    if is_of_device(resource):
        return device_reader(resource)
    if resource == "host.rss-heap" and os.path.exists("/proc/self/statm"):
        return mapped_bytes
    if resource == "threads":
        return threading.active_count
    if resource == "descriptors" and os.path.isdir("/proc/self/fd"):
        return lambda: len(os.listdir("/proc/self/fd"))
    if resource == "processes":
        return _child_count
    if resource == shared_memory.BLOCKS:
        return shared_memory.count
    return None


# a growing resource that lines are asked about -> the kind of leak it shows
KINDS: dict[str, Kind] = {
    "processes": "processes",
    "threads": "threads",
    "descriptors": "descriptors",
    shared_memory.BLOCKS: "shared-memory",
    "python.blocks": "object",
    "host.heap": "native",
    "host.rss-heap": "fragmentation",
}
WHAT: dict[Kind, str] = {
    "processes": "child processes that are started and never end",
    "threads": "threads that are started and never end",
    "descriptors": "files or sockets that are opened and never closed",
    "shared-memory": "blocks of shared memory that are never unlinked",
    "object": "Python objects",
    "native": "heap memory that no Python object accounts for",
    "fragmentation": "memory outside the heap that no Python object accounts for",
    "device": "device memory that no tensor accounts for",
}

_NOT_NATIVE = {*COUNTED_EXACTLY, "hooks", "python.blocks"}
LEAST_SHARE = 0.2  # of what the heap gains, for plain objects to account for it
LARGEST_BLOCK_BYTES = 512  # of Python's own allocator: what is larger comes from the heap
MOST_BESIDE = 0.5  # of what the heap gains, for blocks to be a few that come beside it
_ONLY_ALONE = ("host.heap", "host.rss-heap", "python.blocks")


def without_few_blocks(growing: Mapping[str, float]) -> Mapping[str, float]:
    """Leave Python's blocks out where they can be but a small part of what the heap gains.

    Beside 6 KiB of a library's a step one block was confirmed to grow in half of the runs.
    """
    most_bytes = growing.get("python.blocks", 0.0) * LARGEST_BLOCK_BYTES
    if most_bytes >= MOST_BESIDE * growing.get("host.heap", 0.0):
        return growing
    return {name: rate for name, rate in growing.items() if name != "python.blocks"}


def leads(growing: Mapping[str, float], tracer: LineTracer, steps: int, alone: bool) -> list[Lead]:
    """Name the line that adds to each growing resource, where one line clearly does.

    `growing`: the resources with their rates a step, 0 if unknown; `alone`: nothing else was found
    that could account for the growth of the heap.
    """
    found = []
    growing = without_few_blocks(growing) if alone else growing
    devices: dict[str, Kind] = dict.fromkeys(filter(is_of_device, growing), "device")
    for resource, kind in (KINDS | devices).items():
        credits = tracer.credits.get(resource)
        if resource not in growing or not credits or steps == 0:
            continue
        if (resource in _ONLY_ALONE or resource in devices) and not alone:
            continue
        in_bytes = unit_of(resource) == "B"
        if in_bytes and not _NOT_NATIVE.isdisjoint(growing):
            continue
        if resource == "host.heap" and not _tells_lines(growing[resource]):
            continue
        traced = traced_steps(resource, tracer.traced_of(steps))
        lines = culprit(credits, growing[resource] * traced)
        if not lines or (resource == shared_memory.BLOCKS and not _in_time(lines, tracer, traced)):
            continue
        told = Told(LeakTrace(""), Holder(), False)
        per_step = growing[resource] or sum(credits.values()) / traced
        counted, size = (None, per_step) if in_bytes else (per_step, None)
        found.append(
            Lead(kind, WHAT[kind], told, lines, objects_per_step=counted, bytes_per_step=size)
        )
    return found


def _in_time(lines: Counter[Site], tracer: LineTracer, steps: int) -> bool:
    """Say whether a line added as many on each step, or each time it ran, as far as sums tell.

    What another process adds meanwhile falls on the line that takes longest, not in time with it;
    what another thread adds may, where a line wakes it.
    """
    return not frames.own_codes_elsewhere() and all(
        added % steps == 0 or added % tracer.visits.get((site.path, site.line), added + 1) == 0
        for site, added in lines.items()
    )


def native_beside(
    found: list[Lead], growing: Mapping[str, float], tracer: LineTracer, steps: int
) -> list[Lead]:
    """Name the line that adds most of what the heap gains where all that was found is too small.

    A log of numbers grows beside a library's memory; what is not data of Python's own may have any.
    """
    if not are_too_small(found, growing):
        return []
    native = leads({"host.heap": growing["host.heap"]}, tracer, steps, alone=True)
    theirs = {site for lead in found for site in lead.lines}
    return [lead for lead in native if theirs.isdisjoint(lead.lines)]


def are_too_small(found: list[Lead], growing: Mapping[str, float]) -> bool:
    """Say whether all that was found is data of Python's own, and but a small part of the heap."""
    known = sum(lead.bytes_per_step or 0.0 for lead in found)
    plain = bool(found) and all(lead.kind == "object" and lead.plain for lead in found)
    return plain and known <= LEAST_SHARE * growing.get("host.heap", 0.0)


def _tells_lines(heap_per_step: float) -> bool:
    """Say whether what is added to the heap shows on the line that adds it, and no later."""
    return heap_per_step > LARGEST_CACHED_BYTES or cached_bytes_reader() is not None


def _child_count() -> int:
    import multiprocessing

    return len(multiprocessing.process._children)  # type: ignore[attr-defined]
