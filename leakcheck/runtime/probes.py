"""Small readings that the line tracer takes after every line: lengths, heap, threads, files."""

from __future__ import annotations

import os
import threading
from typing import Any

from leakcheck.model import Kind, LeakTrace
from leakcheck.runtime.heap import exact_heap_reader
from leakcheck.runtime.lines import LineTracer, Probe
from leakcheck.runtime.meters import mapped_bytes
from leakcheck.runtime.objects import length_reader
from leakcheck.runtime.suspects import Lead
from leakcheck.runtime.trace import Told

LEAST_SHARE = 0.5  # of a resource's growth that one line must show before it is named


def of_length(container: Any) -> Probe:
    """Read how many elements a container has."""
    length = length_reader(type(container)) or len
    return lambda: length(container)


def of_resource(resource: str) -> Probe | None:
    """Return a quick reading of a resource of the process, None if there is none."""
    if resource == "host.heap":
        return exact_heap_reader()
    if resource == "host.rss-heap" and os.path.exists("/proc/self/statm"):
        return mapped_bytes
    if resource == "threads":
        return threading.active_count
    if resource == "descriptors" and os.path.isdir("/proc/self/fd"):
        return lambda: len(os.listdir("/proc/self/fd"))
    if resource == "processes":
        return _child_count
    return None


_KINDS: dict[str, tuple[Kind, str]] = {
    "threads": ("threads", "threads that are started and never end"),
    "descriptors": ("descriptors", "files or sockets that are opened and never closed"),
    "processes": ("processes", "child processes that are started and never end"),
    "python.blocks": ("object", "Python objects"),
    "host.heap": ("native", "heap memory that no Python object accounts for"),
    "host.rss-heap": (
        "fragmentation",
        "memory outside the heap that no Python object accounts for",
    ),
}

_EXACT = {"graph.nodes", "tensors", "hooks", "python.blocks"}
_ONLY_ALONE = ("host.heap", "host.rss-heap", "python.blocks")


def leads(growing: tuple[str, ...], tracer: LineTracer, steps: int, alone: bool) -> list[Lead]:
    """Name the line that adds most to each growing resource, where one line clearly does.

    `alone`: nothing else was found that could account for the growth of the heap.
    """
    found = []
    for resource, (kind, what) in _KINDS.items():
        credits = tracer.credits.get(resource)
        if resource not in growing or not credits or steps == 0:
            continue
        if resource in _ONLY_ALONE and not alone:
            continue
        if resource.startswith("host.") and not _EXACT.isdisjoint(growing):  # then it is not native
            continue
        total = sum(credits.values())
        site, most = credits.most_common(1)[0]
        if total <= 0 or most < LEAST_SHARE * total:
            continue
        told = Told(LeakTrace(""), "", False)
        in_bytes = resource.startswith("host.")
        counted, size = (None, total / steps) if in_bytes else (total / steps, None)
        lines = type(credits)({site: most})
        found.append(Lead(kind, what, told, lines, objects_per_step=counted, bytes_per_step=size))
    return found


def _child_count() -> int:
    import multiprocessing

    return len(multiprocessing.process._children)  # type: ignore[attr-defined]
