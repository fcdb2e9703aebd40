"""What every run pays for: readings into two series, quick ones each step, slow ones rarely.

Slow readings (a census costs tens of milliseconds once torch is loaded) are taken at steps that
grow by a third each time, within a budget of a twentieth of the time the program has run. While no
count rises, a census is taken at every second of them.
"""

from __future__ import annotations

import gc
import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from threading import get_ident
from time import perf_counter, thread_time
from typing import TYPE_CHECKING

from leakcheck.model import Sample
from leakcheck.runtime.readings import by_shape, flight_recorder
from leakcheck.runtime.readings.devices import DeviceMeter, devices_reader
from leakcheck.runtime.readings.heap import heap_reader
from leakcheck.runtime.readings.meters import (
    NEWEST_NODES,
    GarbageMeter,
    HostMeter,
    is_in_use,
    place_name,
)
from leakcheck.runtime.readings.series import GARBAGE, Series

if TYPE_CHECKING:
    from leakcheck.runtime.readings.census import Census, Counts

# 42 steps settle whether a graph grows, 67 whether tensors pile up, 180 whether objects do
FIRST_CHECKPOINTS = (10, 15, 20, 25, 30, 36, 42, 50, 67, 89, 118, 150, 180)
CHECKPOINT_RATIO = 4 / 3
ALWAYS_COUNTED_STEPS = 42  # of a loop: a graph that grows is known by then
FEWEST_CHECKPOINTS = 6  # since the last acquittal, before anything is called steady
RISING_RATIO = 13 / 12  # while a count rises: what is added now and then needs more points
RISING_CENSUSES = 2  # in a row that each found more than there ever was
LEVEL_CENSUSES = 4  # one more in ten steps shows in fewer
# before the share below counts: one takes 65 ms with torch loaded, which is half a million of
# blocks of Python, and twice that with transformers and lightning beside it
FREE_CHECKPOINTS = 30
LARGE_HEAP_BLOCKS = 2_500_000  # of larger ones as many fewer are free
CHECKPOINT_SHARE = 0.05  # of the time the program has run
STEP_BUDGET_US = 30.0
STEADY_SHARE = 0.0005  # of the time of a steady loop, for its readings
STEADY_STRIDE = 32  # steps at most between two of them; cold caches make one take 100 to 400 us
LARGEST_SHARED_INT = 256  # CPython keeps one of each up to here
DEVICES_EVERY = 4  # torch's allocator statistics cost 20 us
OUTSIDE_EVERY = 8  # what is resident outside the heap costs 12 us


class Watch:
    """Takes the readings of one process and knows what they cost.

    `fine`: every block counts, so garbage is collected before each slow reading. Free lists, which
    a collection empties, hid one object in ten steps in half of the runs.
    """

    def __init__(self, *, fine: bool = False) -> None:
        self.fine = fine
        self.quick = Series(2048)
        self.slow = Series(256)
        self.checkpoint_s = 0.0
        self._budget_from_s = self._taken_s = 0.0
        self._taken = 0  # checkpoints that counted since then, which took `_taken_s`
        self._costs_us = array("d", bytes(8 * 512))
        self._cost_count = 0
        self.host = HostMeter()
        self.devices = DeviceMeter()
        self.garbage = GarbageMeter(heap_reader(), devices_reader())
        self._listens = True
        self._census: Census | None = None
        self._highest: dict[str, int] = {}  # count so far
        self._level = self._rising = 0  # censuses in a row that found no more than before, or more
        self._counted_last = True  # at the newest checkpoint
        self.oldest_node_age_steps: int | None = None  # at the newest census
        self._newest_nodes = self._pools = 0  # of device memory, at the newest census
        self._device_readings: dict[str, int] = {}
        self._started_s = perf_counter()
        self.origin = self._dense_from = 0
        self._stride = 1
        # what checkpoints left behind: it looked like 160 bytes and a block a step of the program's
        self._own = {"host.heap": 0, "python.blocks": 0}

    @property
    def sources(self) -> tuple[Series, Series]:
        """Both series, the slow one first: its counters are exact."""
        return self.slow, self.quick

    def start_over(self, step: int) -> None:
        """Begin anew at `step`: what was read so far was another loop's."""
        self.quick.clear()
        self.slow.clear()
        self.origin, self._stride = step, 1
        self._dense_from = step
        self._count_anew()
        self.garbage.start_over()

    def read_less(self) -> None:
        """Take quick readings further apart: the loop is steady."""
        budget_us = max(1.0, STEADY_SHARE * 1e6 * (self.quick.seconds_per_step() or 0.0))
        wanted = min(STEADY_STRIDE, round(self.reading_us / budget_us))
        self._stride = max(self._stride, wanted)

    def resume(self, step: int) -> None:
        """Read closely spaced again, within a budget anew: something has changed."""
        self._dense_from, self._stride = step, 1
        self._count_anew()
        self.budget_anew()

    def boundary(self, step: int) -> None:
        """Date the Nodes and the garbage made from now on; under a microsecond."""
        self.garbage.step, self.garbage.thread = step, get_ident()
        if self._listens:
            self.garbage.listen()
        if self._census is not None:
            self._census.boundary(step)

    def trace_lines(self, *, on: bool) -> None:
        """Listen to no collection while lines are traced: what hears it would be seen and timed."""
        self._listens = not on
        if on:
            self.garbage.close()

    def read(self, step: int) -> int:
        """Take the quick readings and return the next step to take them at."""
        elapsed_s = perf_counter() - self._started_s
        readings = self._less_our_own(self.host.read())
        if self._due(step, OUTSIDE_EVERY):
            readings |= self.host.read_outside()
        if self._due(step, DEVICES_EVERY):
            self._device_readings = self.devices.read()
            readings |= self._device_readings
        self.quick.append(step, elapsed_s, readings)
        return step + max(self._stride, self.quick.stride)

    def _due(self, step: int, every: int) -> bool:
        return (step - self.origin) % (every * self._stride) < self._stride

    def checkpoint(
        self, step: int, *, collect: bool = False, sparing: bool = False
    ) -> dict[str, int]:
        """Take the slow readings, after a garbage collection if asked; returns them.

        With `sparing`, nothing is counted at every second one if the last censuses found no more
        than those before.
        """
        self.garbage.guard.check()
        with self.garbage.measuring(hurried=not collect):
            return self._checkpoint(step, collect, counts=not (sparing and self._may_skip(step)))

    def _checkpoint(self, step: int, collect: bool, counts: bool) -> dict[str, int]:
        began_s, spent_s = perf_counter(), thread_time()
        collected = collect or self.fine
        readings: dict[str, int] = {}
        if collected:
            before = sum(self.garbage.in_use())
            gc.collect()
            readings[GARBAGE] = max(0, before - sum(self.garbage.in_use()))
        # before the census, which leaves objects in free lists and chunks in malloc's caches
        devices = self.devices.read()
        quick = self._less_our_own(self.host.read()) | self.host.read_outside() | devices
        readings |= self._less_our_own(self.host.read_slow(step))
        readings |= self._counted(step, quick) if counts else {}
        flight_recorder.note()
        readings |= self.devices.read_slow(devices) | by_shape.read()
        readings |= self.devices.read_pools() if self._pools else {}
        if step - self.origin <= FIRST_CHECKPOINTS[0]:
            self.garbage.start_over()  # the first optimizer step imports, and imports leave cycles
        self.slow.append(step, began_s - self._started_s, readings)
        readings |= quick | {NEWEST_NODES: self._newest_nodes}
        del quick, devices
        self._leave_out_our_own(readings, collected=collected)
        cost_s = thread_time() - spent_s  # a busy machine does not eat the budget
        self.checkpoint_s += cost_s
        if counts and not collect:  # that is to confirm, and paid for by the suspicion
            self._taken += 1
            self._taken_s += cost_s
        self._counted_last = counts
        return readings

    def _counted(self, step: int, quick: dict[str, int]) -> dict[str, int]:
        taken = self._census_taken(step, quick)
        if taken is None:
            return {}
        counted = _exact(taken)
        self.oldest_node_age_steps = taken.oldest_node_age_steps
        self._newest_nodes, self._pools = taken.newest_nodes, taken.pools
        more = [name for name, count in counted.items() if count > self._highest.get(name, -1)]
        self._highest |= {name: counted[name] for name in more}
        self._level = 0 if more else self._level + 1
        self._rising = self._rising + 1 if more else 0
        return counted | taken.categories

    def read_beside(self, step: int, *, collect: bool = False) -> dict[str, int]:
        """Return the quick readings and the exact counts, which join no series.

        After a collection if asked: what that frees is the program's, as at a checkpoint.
        """
        began_s = thread_time()
        with self.garbage.measuring(hurried=not collect):
            if collect:
                gc.collect()
            quick = self._less_our_own(self.host.read()) | self.devices.read()
            taken = self._census_taken(step, quick)
        self.pay(thread_time() - began_s)
        return quick if taken is None else quick | _exact(taken)

    def _may_skip(self, step: int) -> bool:
        rests = self._level >= LEVEL_CENSUSES and self._counted_last
        return rests and step - self._dense_from > ALWAYS_COUNTED_STEPS

    @property
    def rises(self) -> bool:
        """Whether the last censuses each found more than there ever was."""
        return self._rising >= RISING_CENSUSES

    def _count_anew(self) -> None:
        self._highest, self._level, self._rising = {}, 0, 0

    def next_checkpoint(self, step: int) -> int:
        """Return the step of the next checkpoint after the one at `step`."""
        return self._following(step, RISING_RATIO if self.fine or self.rises else CHECKPOINT_RATIO)

    def next_before(self, step: int, after: int, settled: int) -> int:
        """Return the step of the next checkpoint where a loop counts as steady at `settled`.

        The usual distances would put that off for thousands of steps after an acquittal at `after`.
        """
        return self._before(step, after, settled, self.next_checkpoint(step))

    def is_overdue(self, step: int, after: int, settled: int) -> bool:
        """Say whether a checkpoint is due though none is affordable: the newest is too long ago.

        As far apart as where no count rises: of such there are few, however many steps a run has.
        """
        newest = self.slow.last_step
        following = self._following(newest, CHECKPOINT_RATIO)
        return step >= self._before(newest, after, settled, following)

    def _following(self, step: int, ratio: float) -> int:
        done = step - self._dense_from
        later = self._dense_from + round(done * ratio)
        return next((self._dense_from + at for at in FIRST_CHECKPOINTS if at > done), later)

    def _before(self, step: int, after: int, settled: int, following: int) -> int:
        evenly = step + max(1, (settled - after) // FEWEST_CHECKPOINTS)
        if step < 2 * settled:  # for ever it cost 4 % of a run
            following = min(following, max(evenly, after + 1))
        return settled if step < settled < following else following

    def affordable(self, free: int = FREE_CHECKPOINTS) -> bool:
        """Say whether another checkpoint fits the budget, of which so many are `free`.

        By number, as a slow machine must come to the same verdict.
        """
        beyond = self._taken - free * min(1.0, LARGE_HEAP_BLOCKS / sys.getallocatedblocks())
        beyond_s = max(0.0, beyond) * self._taken_s / max(1, self._taken)
        return beyond_s <= CHECKPOINT_SHARE * (self.elapsed_s - self._budget_from_s)

    def budget_anew(self) -> None:
        """Count from now on what checkpoints may cost: the training begins."""
        self._budget_from_s, self._taken, self._taken_s = self.elapsed_s, 0, 0.0

    def pay(self, spent_s: float) -> None:
        """Count what was looked at more closely: the suspicion paid for it, not the budget."""
        self.checkpoint_s += spent_s

    def note_cost(self, cost_s: float) -> None:
        """Remember what one step's readings cost, and read less often when that is too much."""
        self._costs_us[self._cost_count % 512] = cost_s * 1e6
        self._cost_count += 1
        if self._cost_count % 128 == 0:
            self._stride = max(1, round(self.reading_us / STEP_BUDGET_US))

    @property
    def reading_us(self) -> float:
        """The median cost of one set of quick readings, in microseconds."""
        count = min(self._cost_count, 512)
        return median(self._costs_us[:count]) if count else 0.0

    @property
    def per_step_us(self) -> float:
        """The median cost of watching one step, in microseconds."""
        return self.reading_us / max(self._stride, self.quick.stride)

    @property
    def elapsed_s(self) -> float:
        """Seconds since watching began."""
        return perf_counter() - self._started_s

    @property
    def samples(self) -> tuple[Sample, ...]:
        """The readings that are kept, oldest first."""
        rows: dict[int, tuple[float, dict[str, int]]] = {}
        for series in self.sources:
            for step, elapsed_s, readings in series.rows():
                rows[step] = (elapsed_s, rows.get(step, (0.0, {}))[1] | readings)
        return tuple(Sample(step, *rows[step]) for step in sorted(rows))

    @contextmanager
    def our_garbage(self) -> Iterator[None]:
        """Do not count what is collected meanwhile as the program's."""
        self.garbage.ours = True
        try:
            yield
        finally:
            self.garbage.ours = False

    def close(self) -> None:
        """Give back what the meters hold."""
        self.host.close()
        self.leave()

    def leave(self) -> None:
        """In a forked child: listen no more; the descriptors are the parent's, and stay."""
        self._listens = False
        self.garbage.close()

    def _less_our_own(self, readings: dict[str, int]) -> dict[str, int]:
        for resource in self._own.keys() & readings.keys():
            readings[resource] -= self._own[resource]
        return readings

    def _leave_out_our_own(self, before: dict[str, int], *, collected: bool) -> None:
        after = self._less_our_own(self.host.read())
        passing = sum(value > LARGEST_SHARED_INT for value in before.values())  # these readings
        after["python.blocks"] = sys.getallocatedblocks() - self._own["python.blocks"] - passing
        # the next collection empties free lists: between two, what we leave there shows in none
        lasting = {"host.heap"} if collected else self._own.keys()
        for resource in lasting & before.keys() & after.keys():
            self._own[resource] += after[resource] - before[resource]

    def _census_taken(self, step: int, quick: dict[str, int]) -> Counts | None:
        census = self._census_once_torch_is_there()
        totals = {place_name(name): value for name, value in quick.items() if is_in_use(name)}
        return None if census is None else census.take(step, totals=totals)

    def _census_once_torch_is_there(self) -> Census | None:
        if self._census is None and hasattr(sys.modules.get("torch"), "autograd"):
            from leakcheck.runtime.introspection.tensors import warn_of_no_reference
            from leakcheck.runtime.readings.census import Census

            warn_of_no_reference()
            self._census = Census()
        return self._census


def _exact(taken: Counts) -> dict[str, int]:
    return {"graph.nodes": taken.graph_nodes, "tensors": taken.tensors, "hooks": taken.hooks}
