"""What the stages of one loop share: its readings, what is excused in them, what is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from leakcheck.model import DeviceMemory, Holder, Notice, Suspect
from leakcheck.runtime.judgement import judge, patience
from leakcheck.runtime.judgement.harmless import (
    PLAIN,
    Excuses,
    dated,
    excuse,
    is_garbage,
    newest,
)
from leakcheck.runtime.judgement.judge import Reading, Recurring
from leakcheck.runtime.judgement.looks import Looks
from leakcheck.runtime.judgement.release import Waits
from leakcheck.runtime.judgement.rounds import Rounds
from leakcheck.runtime.judgement.sawtooth import Teeth
from leakcheck.runtime.judgement.span import LoopSpan
from leakcheck.runtime.judgement.tolerance import Passed, Tolerance
from leakcheck.runtime.judgement.trend import floor_rise, stood_as_high
from leakcheck.runtime.judgement.vigil import Vigil
from leakcheck.runtime.readings.heap import kept_free_bytes
from leakcheck.runtime.readings.meters import COUNTED_EXACTLY, HELD_BACK, is_in_use
from leakcheck.runtime.readings.watching import Watch

if TYPE_CHECKING:
    from leakcheck.runtime.attribution.way import Way


class LoopCourse:
    """The watch of one loop; `restart` begins that of another.

    `waits`: what is released at the end of the loop around the steps; `per_request`: the steps are
    requests; `trains`: an optimizer makes them, as far as is known; `trusted`: they are training
    steps, and growth of any kind counts; `graph_patience_steps`: a sum over so many samples may be
    meant, before the backward.
    """

    def __init__(self, watch: Watch, steps: int, tolerance: Tolerance) -> None:
        self.watch, self.steps, self.tolerance = watch, steps, tolerance
        self.waits: Waits = "nothing"
        self.per_request, self.trains, self.trusted = False, True, True
        self.graph_patience_steps = 0
        self.rounds, self.recurring = Rounds(), Recurring(patience.PHASES_THAT_CONFIRM)
        self.phase_depth = 0  # of the loop whose turns are compared
        self.restart(0)

    def restart(self, step: int) -> None:
        """Watch another loop from `step` on."""
        self.watch.start_over(step)
        self.excuses, self.vigil, self.span = Excuses(), Vigil(), LoopSpan(step, self.steps)
        self.teeth = Teeth(step)
        self.notices: tuple[Notice, ...] = ()
        self.memory: tuple[DeviceMemory, ...] = ()  # of the devices that grow
        self.suspects: tuple[Suspect, ...] = ()  # that were last waited for,
        self.waiting_since_step = step  # from this step on
        self.garbage = frozenset[str]()  # counters that rose by garbage that waits for a collection
        # whether a collection in the loop left more of a counter than the one before, and how much
        self._stayed: dict[str, bool] = {}
        self._left: dict[str, int] = {}
        self._stays_from = step
        self.acquitted: set[str] = set()  # resources whose holder was found to be emptied, or full
        self.emptied_from: dict[Holder, int] = {}  # how long containers had been before that
        self.by_phase = False  # readings are compared from turn to turn of a loop around the steps
        self.looked_again = False  # over a whole period of what may take away
        # what each step was seen to make anew, to be looked at in a longer window
        self.remade: Mapping[Holder, Way] | None = None
        self._passed: Passed = ""  # of what is tolerated,
        self._passed_per_step = 0.0  # by so many bytes a step
        self.looks = Looks(self.watch, self.span, self.excuses, self.tolerance_bytes)
        self.next_checkpoint = self.watch.next_checkpoint(step)

    @property
    def tolerance_bytes(self) -> int:
        """What plain objects may gain a step without being looked at."""
        if self._passed:
            return self.tolerance.beside(self._passed_per_step)
        return self.tolerance.per_step_bytes

    @property
    def numbers_bytes(self) -> int:
        """What a log of plain numbers may gain a step."""
        return self.tolerance.for_numbers(self._passed)

    @property
    def in_use(self) -> list[str]:
        """The resources that count the memory in use."""
        return list(filter(is_in_use, self.watch.quick.resources))

    def trust(self) -> None:
        """Take the steps for training steps."""
        self.trusted = True
        self.watch.budget_anew()

    def checkpoint(self, step: int, *, sparing: bool = False, steady: bool = False) -> None:
        """Read the slow counters, and plan when to do so again."""
        self.watch.checkpoint(step, sparing=sparing)
        self.teeth.read(step)
        settled = 0 if steady else self.span.steady_step
        self.next_checkpoint = self.watch.next_before(step, self.span.after, settled)

    def passes_tolerance(self, step: int) -> bool:
        """Say whether what is little a step has come to too much: it is looked at again then."""
        creeping = judge.creep_per_step(self.watch.quick, self.span.origin)
        gained = max(self.excuses.tolerated_per_step, creeping)
        passed = self.tolerance.passed(gained, self.span.seen(step), self.watch.elapsed_s)
        if not passed or passed == self._passed:
            return False
        self._passed, self._passed_per_step = passed, gained
        self.excuses.tolerate_no_more()
        return True

    def excuse(self, grown: Sequence[Reading], until: float) -> None:
        """Let what has grown, and the memory with it, grow until the step `until`."""
        names = (one.resource for one in grown)
        self.excuses.add({*names, *PLAIN, *self.in_use, *HELD_BACK}, until)

    def in_doubt(self, found: list[Reading], *, sure: bool = False) -> list[Reading]:
        """Return what would count as growth if the run ended now; `sure`: more than one look."""
        found = [one for one in self.looks.in_doubt(found) if not self._stood_as_high(one)]
        seen = self.span.seen(self.watch.quick.last_step)
        waits = not sure and is_garbage(found, self.watch.garbage.freed, seen, kept_free_bytes())
        excused = waits or excuse(found, self.tolerance_bytes, confirmed=sure)
        return [] if excused else found

    def _stood_as_high(self, reading: Reading) -> bool:
        """Say whether it came down again and again before from as high as it stands now."""
        for series in self.watch.sources:
            steps, values = series.column(reading.resource)
            before = [v for step, v in zip(steps, values, strict=True) if step < reading.steps[0]]
            if stood_as_high(before, reading.values[-1]):
                return True
        return False

    def find_what_stays(self, step: int) -> list[Reading]:
        """Note, in the loop, what a collection leaves of what rises; returns what stayed twice.

        At the end of a run all is gone, and so nothing tells garbage from what was kept. Looked at
        again after half as many steps more, as what stays at first may be a warm-up.
        """
        slow = self.watch.slow
        if step < self._stays_from:
            return []
        known = ((name, *slow.column(name)) for name in COUNTED_EXACTLY)  # 0.1 ms each
        rises = {name for name, *column in known if floor_rise(*column)}
        rises &= {one.resource for one in judge.still_climbing([slow], self.tolerance_bytes)}
        rises |= set(judge.counters_that_rise(slow, short=True))
        if not rises:
            return []
        self._stays_from = step + self.span.seen(step) // 2
        left = self.watch.read_beside(step, collect=True)
        before, stayed = self._left, self._stayed
        least = {name: before.get(name, min(slow.column(name)[1])) for name in rises & left.keys()}
        self._left = {name: left[name] for name in least}
        self._stayed = {n: left[n] >= low + judge.LEAST_RISEN for n, low in least.items()}
        twice = (name for name, stays in self._stayed.items() if stays and stayed.get(name))
        readings = filter(None, (judge.read(slow, name) for name in twice))
        return [one for one in readings if one.line.per_step > 0 and not one.line.deepest_drop]

    def find_garbage(self, step: int) -> None:
        """Note, at the end, which counters are as low as ever, once garbage is collected.

        What the function that trained held is gone as well, without a collection.
        """
        slow = self.watch.slow
        climbing = judge.still_climbing([slow], self.tolerance_bytes)
        rising = {*judge.counters_that_rise(slow, short=True), *(r.resource for r in climbing)}
        exact = rising.intersection(COUNTED_EXACTLY)
        with self.watch.our_garbage():  # what a function that returned had in cycles is freed too
            waiting = self.watch.read_beside(step) if exact else {}
            left = self.watch.read_beside(step, collect=True) if exact else {}
        lowest = {name: min(slow.column(name)[1]) for name in exact & left.keys()}
        gone = (name for name, low in lowest.items() if left[name] <= low)
        stayed = {name: waiting[name] <= low for name, low in lowest.items()} | self._stayed
        self.garbage = frozenset(name for name in gone if not stayed[name])

    def went_on(self) -> tuple[str, ...]:
        """Return the counters that rose to the end, though what held them was emptied or full."""
        rose = judge.rose_all_along(self.watch.slow, self.span.origin + judge.FEWEST_WARMUP_STEPS)
        return tuple(name for name in rose if name in self.acquitted)

    def tell(self, *notices: Notice, step: int) -> None:
        """Add notices, with how many steps were seen."""
        told = (dated(notice, self.span.seen(step)) for notice in notices)
        self.notices = newest((*self.notices, *told))
