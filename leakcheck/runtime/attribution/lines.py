"""Which line of the user's did it: every counter that changed is credited to the line that ran.

While the tracer is on, each line event in the user's own files reads the autograd sequence number,
so that every Node made is dated to a line, and a few probes such as the length of a list that
grows. Library code gets events of calls and returns only: what it does is credited to the user's
line that called it. A program that traces itself (a debugger, coverage) is left alone.
"""

from __future__ import annotations

import ast
import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from itertools import pairwise
from time import perf_counter, thread_time
from types import CodeType, FrameType
from typing import Any

from leakcheck.runtime.guard import ErrorGuard
from leakcheck.runtime.introspection import frames, graph
from leakcheck.runtime.introspection.frames import Site
from leakcheck.runtime.introspection.line_events import LineEvents
from leakcheck.runtime.introspection.texts import file_of
from leakcheck.source.calls import Stacks

Probe = Callable[[], int]
_NOWHERE = Site("", 0)
_SUSPENDED = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
# while a thread is traced, each call of a method of C's binds it: one reference more to its object,
# with which numpy refuses to resize an array
BINDS_METHODS = sys.version_info < (3, 12)
# Spent inside trace functions before the tracer ends by itself: on events, of which a program has
# as many as it has lines, and with what is read at them, which takes 2 ms where blocks are counted.
BUDGET_S, MOST_S = 1.0, 3.0
_EVENTS_BETWEEN_CHECKS = 2048
_EVENT_S = 2e-6  # what one event costs, measured; calls into libraries cost a fifth
MOST_LINES = 8192  # of one function in a step, 16 ms: then the rest of them passes unseen
# a reading that is dear: of all blocks of a large heap 2 ms, of a fragmented one's memory 0.7 ms
DEAR_S = 1e-4
MOST_READINGS = 200  # of these in a step: then only where a line comes for the first time in it
MOST_CALLERS = 16  # of a line that adds, that are noted: frameworks call each other in a dozen
READINGS = 3  # to measure what one takes: the shortest was interrupted least
AS_NEAR, AS_GOOD = 3.0, 0.02  # a second line that adds about as much: one of them, who knows which
AS_EXACT = 0.005  # of what is looked for, that a line may add more or less and be the one
AS_MUCH = 0.001  # apart, for one line to free what another one makes
LEAST_SHARE, MOST_SHARE = 0.5, 1.5  # of all that a counter gained, in the line that is to blame


class LineTracer:
    """Credits changes to lines between `start` and `stop`, in the thread that starts it."""

    def __init__(self) -> None:
        self.credits: dict[str, Counter[Site]] = {}
        self.visits: dict[tuple[str, int], int] = {}  # how often each line ran
        self._stacks: dict[Site, tuple[Site, ...]] = {}  # of the first time that a line added
        self._probes: dict[str, tuple[Probe, int]] = {}
        self._numbers = array("Q")
        self._made_by: list[Site] = []
        self._own: dict[str, bool] = {}  # by path
        self._codes: dict[int, CodeType] = {}  # that were called, by id: to hash one takes its time
        self._number = 0
        self._site: Site | None = None
        self._next_number: Callable[[], int] = graph.sequence_number
        self._count = 0  # of events
        self._spent_s, self._counted_to = 0.0, 0  # when the newest probe came, and the count then
        self._event_s = _EVENT_S  # what each costs since, with its probes
        self._stop_at_s = 0.0
        self._dear: dict[str, float] = {}  # probes that take long, and how long
        self._dear_s = 0.0  # that these took
        self._readings = 0  # of these in this step
        self._lines_of_step: set[tuple[str, int]] = set()
        self._lines_of: dict[tuple[str, str], int] = {}  # of each function in this step
        self._adding: set[tuple[str, str]] = set()  # functions that add to a container
        self._rested = False  # in some frame lines pass unseen
        self._whole: dict[str, Counter[Site]] = {}  # the credits, as the step began
        self._was_new = self._blind = False  # at the last event: a new line, and nothing was read
        self._steps = 0
        self._ended_at: int | None = None  # the step at which the budget was spent
        self._on = False
        self._guard = ErrorGuard()
        self._events = LineEvents(
            called=self._guard.guarded(self._called),
            line=self._guard.guarded(self._line),
            returned=self._guard.guarded(self._returned),
        )

    @property
    def spent_s(self) -> float:
        """About how long the trace functions have run, in seconds."""
        counted_s = (self._count - self._counted_to) * self._event_s
        return self._spent_s + counted_s + self._dear_s

    @property
    def stacks(self) -> Stacks:
        """The calls that led to each line that added to a container, by path as reports show it."""
        return {
            (frames.shown(site.path), site.line): tuple(
                (frames.shown(caller.path), caller.line, called.function)
                for called, caller in pairwise((site, *callers))
            )
            for site, callers in self._stacks.items()
        }

    @property
    def called(self) -> Set[CodeType]:
        """The functions that were called so far; one that has run since `start` is not.

        Nor is a generator or coroutine that was only resumed: its locals outlast a step.
        """
        return set(self._codes.values())

    def start(self) -> bool:
        """Begin; False when something else traces this thread, or nothing may."""
        if sys.gettrace() is not None or (BINDS_METHODS and _arrays_are_resized()):
            return False
        self._next_number = graph.sequence_reader()
        self._number = self._next_number()
        self._on = True
        self._trace_on()
        return True

    def _trace_on(self) -> None:
        self._stop_at_s = perf_counter() + 60 * BUDGET_S
        frame = frames.own_caller(sys._getframe(1))
        self._site = _site(frame) if frame else None
        self._see_all_lines()
        self._events.start()

    def _see_all_lines(self) -> None:
        self._rested = False
        for frame in frames.stack():
            frame.f_trace_lines = self._is_own(frame)

    def stop(self) -> None:
        """End, and leave nothing in the frames of this thread that still run."""
        self._probes = {}
        self._events.stop()
        self._on = False
        for frame in frames.stack():
            frame.f_trace_lines = True

    def forget(self, suspended: Iterable[Any]) -> None:
        """Leave nothing in suspended frames either."""
        for frame in filter(None, map(frames.suspended_frame, suspended)):
            frame.f_trace_lines = True

    def watch(self, key: str, probe: Probe) -> None:
        """Credit every change of `probe()` from now on under `key`."""
        if self._on and key not in self._probes:
            self.credits[key] = Counter()
            self._spent_s, self._counted_to = self.spent_s - self._dear_s, self._count
            takes_s = _reading_s(probe)
            if takes_s >= DEAR_S:
                self._dear[key] = takes_s
            else:
                self._event_s += takes_s
            self._probes = {**self._probes, key: (probe, probe())}

    def settle(self) -> None:
        """Credit what changed so far; what happens until `resume` is ours and nobody's."""
        if self._is_on():
            self._settle()
            self._events.stop()  # or every instruction of ours takes twice as long

    def resume(self) -> None:
        """Go on from what the probes read now."""
        if self._is_on():
            self._trace_on()
        self._read_anew()

    @contextmanager
    def ours(self) -> Iterator[None]:
        """Credit what changed in a step; what changes within is ours, and no line's."""
        self._steps += 1
        self._readings, self._lines_of_step = 0, set()
        self._lines_of = {}
        if self._on and self._events.are_on():
            self._settle()
            self._whole = {key: counted.copy() for key, counted in self.credits.items()}
            if self._rested:
                self._see_all_lines()
        yield
        self._read_anew()

    def traced_of(self, steps: int) -> int:
        """Return how many of a window's `steps` were traced before the budget was spent."""
        return steps if self._ended_at is None else min(steps, self._ended_at)

    def _read_anew(self) -> None:
        self._probes = {key: (probe, probe()) for key, (probe, _) in self._probes.items()}

    def check(self) -> None:
        """Raise what went wrong while a line of the program's was traced."""
        self._guard.check()

    def _is_on(self) -> bool:
        # another tracer is the program's own
        self._on = self._on and (self._events.are_on() or sys.gettrace() is None)
        return self._on

    def made_by(self, number: int) -> Site | None:
        """Return the line that made the Node with this sequence number, None if unseen."""
        index = bisect_left(self._numbers, number + 1)
        site = self._made_by[index] if 0 < index < len(self._made_by) else _NOWHERE
        return site if site.path else None

    def _is_own(self, frame: FrameType) -> bool:
        path = frame.f_code.co_filename
        own = self._own.get(path)
        if own is None:
            own = self._own[path] = frames.is_own(path)
        return own

    def _called(self, frame: FrameType) -> None:
        if not self._on:  # it was switched off by another thread
            self._events.stop()
            return
        if not _is_resumed(frame):
            self._codes.setdefault(id(frame.f_code), frame.f_code)
        if self._is_own(frame):
            self._settle()
            site = _site(frame)
            frame.f_trace_lines = seen = self._lines_of.get(_where(site), 0) < MOST_LINES
            self._site = site if seen else None
        else:
            frame.f_trace_lines = False

    def _line(self, frame: FrameType) -> None:
        if not self._on:
            self._events.stop()
        elif self._is_own(frame):
            site = _site(frame)
            line = (site.path, site.line)
            self._settle(is_new=line not in self._lines_of_step)
            self._site = site
            self._lines_of_step.add(line)
            self.visits[line] = self.visits.get(line, 0) + 1
            self._count_line(frame, _where(site))

    def _count_line(self, frame: FrameType, where: tuple[str, str]) -> None:
        """Count a line of a function, and see no more of them in this step if they are many.

        Not where they add to a container. What the rest of them does is no line's.
        """
        self._lines_of[where] = count = self._lines_of.get(where, 0) + 1
        if count < MOST_LINES:
            return
        if where in self._adding:
            self._lines_of[where] = 0
        else:
            frame.f_trace_lines, self._site, self._rested = False, None, True

    def _returned(self, frame: FrameType) -> None:
        if self._on and self._is_own(frame):
            self._settle()
            caller = frames.own_caller(frame.f_back)
            self._site = _site(caller) if caller and caller.f_trace_lines else None

    def _settle(self, *, is_new: bool = False) -> None:
        """Credit the line that ran with what changed; `is_new`: the one that comes now."""
        number = self._next_number()
        if number != self._number:
            self._note_nodes(number)
        reads = self._readings < MOST_READINGS or is_new or self._was_new
        for key, (probe, before) in self._probes.items():  # replaced as a whole by who changes it
            if key in self._dear:
                if not reads:
                    continue
                self._readings += 1
                self._dear_s += self._dear[key]
            value = probe()
            if value != before:
                self._probes[key] = (probe, value)
                unseen = self._blind and key in self._dear  # other lines ran since
                if self._site is not None and not unseen:
                    self.credits[key][self._site] += value - before
                    of_container = key.isdecimal()  # its id
                    if value > before and of_container:
                        self._adding.add(_where(self._site))
                        if self._site not in self._stacks:
                            self._stacks[self._site] = _callers(self._site)
        self._was_new, self._blind = is_new, not reads
        self._count += 1
        if self._count % _EVENTS_BETWEEN_CHECKS == 0:
            self._keep_to_budget()

    def _note_nodes(self, number: int) -> None:
        if not self._numbers:
            self._numbers.append(self._number)
            self._made_by.append(_NOWHERE)
        if number > self._number:
            self._numbers.append(number)
            self._made_by.append(self._site or _NOWHERE)
        self._number = number

    def _keep_to_budget(self) -> None:
        is_spent = self._count * _EVENT_S > BUDGET_S or self.spent_s > MOST_S
        if is_spent or perf_counter() > self._stop_at_s:
            self._ended_at = self._steps
            # what a step allocates before it frees would be a line's
            self.credits = {key: self._whole.get(key, Counter()) for key in self.credits}
            self._on = False
            self._events.stop()


def _where(site: Site) -> tuple[str, str]:
    return site.path, site.function


def _reading_s(probe: Probe) -> float:
    """Measure what one reading takes: 20 ns for a length, 2 ms for all blocks of a large heap."""
    times_s = [thread_time()]  # a busy machine does not eat the budget
    for _ in range(READINGS):
        probe()
        times_s.append(thread_time())
    return min(after - before for before, after in pairwise(times_s))


def _is_resumed(frame: FrameType) -> bool:
    code = frame.f_code
    return frame.f_lineno != code.co_firstlineno and bool(code.co_flags & _SUSPENDED)


def _arrays_are_resized() -> bool:
    """Say whether the user's code resizes in place, as by `rows.resize(n)`, which gives nothing."""
    return "numpy" in sys.modules and any(
        isinstance(call.func, ast.Attribute) and isinstance(file.above[call], ast.Expr)
        for file in map(file_of, frames.own_files_with(".resize("))
        for call in file.calls("resize")
    )


def culprit(credits: Counter[Site], expected: float = 0.0) -> Counter[Site]:
    """Return the line to which a counter's growth is due; empty if none clearly is.

    A forward pass adds far more memory than leaks, and backward frees it on another line. So the
    line is looked for that added about `expected`, or what all lines together added if that is
    not known; else it is the only one that added much.
    """
    added = sum(n for n in credits.values() if n > 0)
    # a line that frees more than all lines added gives back what is older than the window
    seen = float(sum(n for n in credits.values() if n >= -added))
    gained = expected if expected > 0 else seen
    if gained <= 0:
        return Counter()
    ranked = sorted(credits.items(), key=lambda each: abs(each[1] - gained))
    near = [(site, n) for site, n in ranked if LEAST_SHARE * gained <= n <= MOST_SHARE * gained]
    if seen < LEAST_SHARE * gained:  # what grows was not added meanwhile, or much was freed beside
        return _exactly(gained, near, credits)
    if len(near) > 1:
        near = [each for each in near if not _is_given_back(each[1], credits)] or near
    if near:
        off = [abs(added - gained) for _, added in near]
        alone = len(near) == 1 or off[1] > AS_NEAR * off[0] + AS_GOOD * gained
        return Counter(dict(near[:1])) if alone else Counter()
    adding = [each for each in credits.items() if each[1] > (1 - LEAST_SHARE) * gained]
    return Counter(dict(adding)) if len(adding) == 1 else Counter()


def _exactly(
    gained: float, near: Sequence[tuple[Site, int]], credits: Counter[Site]
) -> Counter[Site]:
    """Return the one line that added what is looked for, whatever a collection freed on another."""
    exact = [each for each in near if abs(each[1] - gained) <= AS_EXACT * gained]
    exact = [each for each in exact if not _is_given_back(each[1], credits)]
    return Counter(dict(exact)) if len(exact) == 1 else Counter()


def _is_given_back(added: int, credits: Counter[Site]) -> bool:
    """Say whether another line freed as much: a name that gets a new value drops the old one."""
    return any(abs(added + n) <= AS_MUCH * added for n in credits.values() if n < 0)


def _callers(site: Site) -> tuple[Site, ...]:
    """Return the lines of the user's that called the function of a site, which runs now."""
    own: list[Site] = []
    frame = frames.own_caller(sys._getframe(1))
    while frame is not None and len(own) < MOST_CALLERS:
        own.append(_site(frame))
        frame = frames.own_caller(frame.f_back)
    here = ((each.path, each.function) == (site.path, site.function) for each in own)
    at = next((index for index, same in enumerate(here) if same), len(own))
    return tuple(own[at + 1 :])


def _site(frame: FrameType) -> Site:
    code = frame.f_code
    return Site(code.co_filename, frame.f_lineno or 0, code.co_name)
