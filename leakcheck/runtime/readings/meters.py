"""One integer a reading: what the process holds right now.

Quick readings are taken on every step (about 5 us together), some of them every few steps; slow
ones at checkpoints. What devices hold is read in `devices.py`.

Resources: host.rss, host.heap (bytes in use by malloc, mmapped blocks included), host.rss-heap
(resident, not of a file, and not in use by malloc: free chunks, arenas, memory mapped past malloc),
host.children, python.blocks, descriptors, threads, processes, shared-memory and host.shared (blocks
in /dev/shm and their bytes, those of other processes included), host.pinned (pages that devices
copy from), and for each device such as cuda:0 `<device>.allocated`, `<device>.reserved`,
`<device>.reserved-allocated` (reserved beyond the most that was ever allocated),
`<device>.external` (used on the device, not by torch's allocator, other processes included) and
`<device>.outside` (that part of this process alone, where NVML tells it). What a walk over the heap
counts, graph.nodes, tensors and hooks, is read in `census.py`.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import NamedTuple

import psutil

from leakcheck.runtime.guard import ErrorGuard
from leakcheck.runtime.readings import shared_memory
from leakcheck.runtime.readings.collector import CollectorListener
from leakcheck.runtime.readings.copies import PAGE_BYTES, CopyMeter
from leakcheck.runtime.readings.cycles import GarbageKind, Population, freed, population
from leakcheck.runtime.readings.heap import heap_reader
from leakcheck.runtime.readings.proc import CHILDREN, anonymous_bytes, child_pids, rows_of
from leakcheck.runtime.readings.series import Series

UNITS = {"python.blocks": "blocks", "graph.nodes": "Nodes", "tensors": "tensors"}
BLOCK_BYTES = 64  # a float with its slot in a list is 32 bytes, a small dictionary 184
OUTSIDE = ".outside"
BESIDE_HEAP = "host.rss-heap"  # resident, of no file, and not in use
HELD_BACK = (BESIDE_HEAP, ".reserved-allocated")  # ends of the names of what is not in use
LEAST_FREED_BYTES = 64 << 10
FEWEST_COLLECTIONS = 3  # that freed as much, before garbage is said to recur
MOST_EXAMINED = 3  # collections that are asked which types they free
OLDEST = 2  # generation
USUALLY_LITTLE = 16  # collections that freed little, before young ones as small are passed over
LEAST_HALF = 0.15  # of all that was freed, in each half of the steps
# each is a thing that was made on purpose, and its own unit: no noise moves their number
COUNTED = ("hooks", "descriptors", "threads", "processes", shared_memory.BLOCKS)
NEWEST_NODES = "graph.newest"  # of the newest step: a number to confirm others by, not judged
COUNTED_EXACTLY = ("graph.nodes", "tensors")  # by a walk over the heap
HOST, HEAP, ALLOCATED = "host", "host.heap", ".allocated"


def unit_of(resource: str) -> str:
    """Return the unit a resource is counted in: bytes unless the table says otherwise."""
    return UNITS.get(resource, resource if resource in COUNTED else "B")


def is_in_use(resource: str) -> bool:
    """Say whether a resource counts bytes in use: the heap's, or what a device's allocator gave."""
    return resource == HEAP or is_of_device(resource)


def is_of_device(resource: str) -> bool:
    """Say whether a resource counts what a device's allocator gave out."""
    return resource.endswith(ALLOCATED)


def place_name(resource: str) -> str:
    """Return where a resource is: `host`, or a device as `cuda:0`."""
    return resource.partition(".")[0]


def in_use_at(place: str) -> str:
    """Return the resource that counts the bytes in use at a place."""
    return HEAP if place == HOST else f"{place}{ALLOCATED}"


class HostMeter:
    """Reads RSS (1.5 us) and heap bytes in use (0.6 us where glibc tells, else absent)."""

    def __init__(self) -> None:
        self._statm = _open_statm()
        self._process = psutil.Process()
        self._heap = heap_reader()
        self.copies = CopyMeter()  # of what children share with us

    def read(self) -> dict[str, int]:
        """Return the quick readings."""
        readings = {"host.rss": self._rss_bytes()}
        if self._heap is not None:
            readings[HEAP] = self._heap()
        return readings

    def read_slow(self, step: int) -> dict[str, int]:
        """Return blocks (20-60 us), descriptors (8 us), threads, children, and what is shared."""
        readings = {"python.blocks": sys.getallocatedblocks()}
        readings |= {"threads": _count("/proc/self/task"), "descriptors": _count("/proc/self/fd")}
        readings |= shared_memory.read()
        children = child_pids()
        readings["processes"] = -1 if children is None else len(children)
        readings[CHILDREN] = anonymous_bytes(children) if children else -1
        if children:
            self.copies.read(step, children)
        return {resource: value for resource, value in readings.items() if value >= 0}

    def read_outside(self) -> dict[str, int]:
        """Return what is resident and not the heap's (12 us); {} where nothing tells."""
        outside = resident_bytes() - self._heap() if self._heap is not None else -1
        return {BESIDE_HEAP: outside} if outside >= 0 else {}

    def close(self) -> None:
        """Give the descriptor back."""
        if self._statm is not None:
            os.close(self._statm)
            self._statm = None

    def _rss_bytes(self) -> int:
        if self._statm is not None:
            try:
                return int(os.pread(self._statm, 64, 0).split()[1]) * PAGE_BYTES
            except (OSError, IndexError, ValueError):  # the program closed every descriptor
                self._statm = None
        return int(self._process.memory_info().rss)


class Garbage(NamedTuple):
    """What garbage collections freed, in bytes."""

    on_heap: int
    on_devices: int


class GarbageMeter:
    """Adds up the bytes that garbage collections free: cycles that waited for one.

    `heap` and `devices` read what is in use there; no heap where nothing tells.
    """

    def __init__(
        self, heap: Callable[[], int] | None, devices: Callable[[], int] | None = None
    ) -> None:
        self.step = 0  # the step that runs
        self._measuring = False  # readings are being taken,
        self._hurried = False  # with no time to look at what is freed
        self._until_read: Garbage | None = None  # in use as the first collection in them began
        self.ours = False  # what is freed now is leakcheck's own
        self.thread = 0  # that steps: other threads' collections are only added up
        self.guard = ErrorGuard()
        self._heap: Callable[[], int] = heap or int
        self._devices: Callable[[], int] = devices or int
        self._before = Garbage(0, 0)
        self._hears = heap is not None
        self.start_over()
        self._listener = CollectorListener(self._collecting, self.guard)

    def start_over(self) -> None:
        """Forget what was freed so far."""
        self.left_to_us = True  # no collection was any but ours
        self._freed = Series(64)
        self._freed_so_far = Garbage(0, 0)
        self._little = 0  # collections that freed few bytes
        self._few = 0  # objects, the most that one of them collected
        self._passed_over = False
        self._origin = self.step
        self._examined = 0
        self._population: Population | None = None
        self.kinds: tuple[GarbageKind, ...] = ()  # that one of these collections freed

    def in_use(self) -> Garbage:
        """Read what is in use, of which a collection may free some."""
        return Garbage(self._heap(), self._devices())

    @property
    def freed(self) -> Garbage:
        """What collections free over and over; none if it was now and then, as after an import."""
        middle = (self._origin + self.step) / 2
        steps, freed = self._freed.column("freed")
        so_far = (total for step, total in zip(steps, freed, strict=True) if step <= middle)
        early = max(so_far, default=0)
        freed_bytes = sum(self._freed_so_far)
        if len(steps) < FEWEST_COLLECTIONS or not freed_bytes:
            return Garbage(0, 0)
        recurs = LEAST_HALF <= early / freed_bytes <= 1 - LEAST_HALF
        return self._freed_so_far if recurs else Garbage(0, 0)

    @contextmanager
    def measuring(self, *, hurried: bool) -> Iterator[None]:
        """Take readings: what they hold of what is collected meanwhile is freed at their end.

        `hurried`: with no time to look at what is freed. Where the program has switched the
        collector off there is: no other collection will tell.
        """
        self._measuring, self._until_read = True, None
        self._hurried = hurried and gc.isenabled()
        try:
            yield
        finally:
            self._measuring = self._hurried = False
            before, self._until_read = self._until_read, None
            if before is not None:
                self._add(self._freed_since(before))

    @property
    def stays(self) -> bool:
        """Whether the program has switched the collector off, and never collects by hand."""
        return self.left_to_us and not gc.isenabled()

    def listen(self) -> None:
        """Listen to the collector from now on: not while a program imports, which is collecting."""
        if self._hears and not self._listener.listens:
            self._listener.begin()

    def close(self) -> None:
        """Listen to the collector no more, until `listen` is called again."""
        self._listener.end()

    def _collecting(self, phase: str, info: dict[str, int]) -> None:
        if self.ours:
            return
        self.left_to_us &= self._measuring
        if phase == "start":
            # a step may collect the young often, and to read the heap twice can take 0.2 ms
            often = self._little >= USUALLY_LITTLE
            self._passed_over = often and info["generation"] < OLDEST
            if not self._passed_over:
                self._begin()
        elif not self._passed_over:
            self._end(info["collected"])
        elif info["collected"] > self._few:
            self._little = 0

    def _begin(self) -> None:
        recurs = len(self._freed) >= FEWEST_COLLECTIONS and not self._hurried
        here = self.thread == get_ident()
        if recurs and here and not self.kinds and self._examined < MOST_EXAMINED:
            self._examined += 1
            self._population = population(named=True)
        self._before = self.in_use()
        if self._measuring:
            self._until_read = self._until_read or self._before

    def _end(self, collected: int) -> None:
        newest = self._freed_since(self._before)
        before, self._population = self._population, None
        much = sum(newest) >= LEAST_FREED_BYTES
        if before is not None and much and self.thread == get_ident():
            self.kinds = freed(before, population(named=False))
        if not self._measuring:
            self._add(newest, collected)

    def _freed_since(self, before: Garbage) -> Garbage:
        pairs = zip(before, self.in_use(), strict=True)
        return Garbage(*(max(0, past - now) for past, now in pairs))

    def _add(self, newest: Garbage, collected: int = 0) -> None:
        if sum(newest) < LEAST_FREED_BYTES:
            self._little += 1
            self._few = max(self._few, collected)
            return
        self._little = self._few = 0
        self._freed_so_far = Garbage(*map(sum, zip(self._freed_so_far, newest, strict=True)))
        self._freed.append(self.step, 0.0, {"freed": sum(self._freed_so_far)})


def _count(folder: str) -> int:
    try:
        return len(os.listdir(folder))
    except OSError:
        return -1


def resident_bytes() -> int:
    """Return the resident bytes that belong to no file (10 us); negative where nothing tells."""
    rows = rows_of("/proc/self/status", b"RssAnon", b"RssShmem")
    return -(1 << 60) if rows is None else sum(rows)


def mapped_bytes() -> int:
    """Return how much is mapped (2 us), exact after each call: the kernel counts RSS in batches."""
    with open("/proc/self/statm", "rb") as statm:
        return int(statm.read().split()[0]) * PAGE_BYTES


def _open_statm() -> int | None:
    try:
        return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
