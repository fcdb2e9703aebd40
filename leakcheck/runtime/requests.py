"""A server's requests as the steps: `with leakcheck.request(): ...` around each of them.

Under `leakcheck run` they are the steps of that run; else of a sentinel of the process, which warns
once if something grows. Of requests that overlap each counts once, when it ends; nested ones, as of
a middleware and a handler, are one. Nothing here raises but what the program itself raised.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from contextvars import ContextVar, Token
from dataclasses import replace
from types import TracebackType

from leakcheck.model import Entries, Load, Reason, Report, Suspect
from leakcheck.runtime.attribution.entries import entries_of
from leakcheck.runtime.clock.in_flight import LEARNT_FROM, QuietMoments
from leakcheck.runtime.conclusion import summary
from leakcheck.runtime.guard import ErrorGuard
from leakcheck.runtime.judgement.request_outcomes import (
    ABORTED,
    FEWEST_ROWS,
    FINISHED,
    goes_on,
    kept_by_outcome,
)
from leakcheck.runtime.readings.series import Series
from leakcheck.runtime.sentinel import Sentinel
from leakcheck.runtime.watched import LeakWarning

CLOCK = "requests"
MOST_FOLLOWED = 4  # containers
MOST_ANEW = 8  # times that a closer look begins anew as the load changes,
MOST_UNFOLLOWED = 2  # and as it found nothing whose length can be read: it may be what is in flight


class Requests:
    """The requests of one server: those that end are steps of its sentinel, `on_step` follows each.

    `sentinel`: one of your own, with its options; `on_first`: called once, before the first step.
    """

    def __init__(
        self,
        sentinel: Sentinel,
        on_step: Callable[[], object] = lambda: None,
        on_first: Callable[[], object] = lambda: None,
    ) -> None:
        self.sentinel, self._on_step, self._on_first = sentinel, on_step, on_first
        self._guard = ErrorGuard()
        self._lock = threading.RLock()  # a collection may end a request within it
        self._moments = QuietMoments()
        self._closely: QuietMoments | None = None  # while a closer look is under way,
        self._chances = MOST_ANEW  # and how often that may begin anew
        self._unfollowed_chances = MOST_UNFOLLOWED
        self._ended_closely = self._looks_closely = 0  # requests and looks in the newest of them
        self.in_flight = self.most_in_flight = self.finished = self.aborted = 0
        self._ended = self._looks = 0  # since the newest beginning
        self._entries = Series(2048, (FINISHED, ABORTED))
        self._is_sure = False
        self._anew = True
        self.begin = self._guard.hidden(self._begin)
        self.end = self._guard.hidden(self._end)

    def _begin(self) -> None:
        with self._lock:
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def _end(self, aborted: bool) -> None:
        with self._lock:
            self.in_flight -= 1
            self.aborted += aborted
            self.finished += not aborted
            looks = self._is_quiet(self.in_flight)
            if looks and self._anew:
                self._look_anew()
            self._ended += 1
            self._looks += looks
            if self._closely is not None:
                self._ended_closely += 1
                self._looks_closely += looks
        if looks:
            self.sentinel.step()
            self._note()
            self._on_step()

    def _is_quiet(self, in_flight: int) -> bool:
        """Say whether to look now; what looks closer slows a server down, and has its own level."""
        closely = self.sentinel.state[1] == "attributing"
        if closely != (self._closely is not None):
            self._closely = QuietMoments(LEARNT_FROM) if closely else None
            if closely:
                self._ended_closely = self._looks_closely = 0
        moments = self._closely or self._moments
        self._anew |= moments.is_learnt and moments.learn()
        return moments.comes(in_flight)

    def _look_anew(self) -> None:
        """Forget what does not compare: it was seen with more or fewer in flight."""
        self._anew = False
        if self._closely is not None and self._chances > 0:
            self._chances -= 1
            self._ended_closely = self._looks_closely = 0
            self.sentinel.look_again()
        if self.sentinel.state[1] in ("watching", "steady"):
            self._restart()

    def _restart(self) -> None:
        self._on_first()
        self._on_first = lambda: None
        self._entries.clear()
        self._ended = self._looks = 0
        self.sentinel.completes = self.completed
        self.sentinel.restart(CLOCK, trusted=True, per_request=True)

    def _note(self) -> None:
        """Note how many entries there are in what was found to grow; does it go on to?"""
        (step, stage), ways = self.sentinel.state, self.sentinel.grows_at
        if stage == "growing" and not ways and self._unfollowed_chances > 0:
            self._unfollowed_chances -= 1
            self.sentinel.look_again()
        if not ways or step < self._entries.last_step + self._entries.stride:
            return
        lengths = {str(holder): way.length() for holder, way in list(ways.items())[:MOST_FOLLOWED]}
        known = {name: length for name, length in lengths.items() if length is not None}
        self._entries.append(step, 0.0, {FINISHED: self.finished, ABORTED: self.aborted} | known)
        if len(self._entries) == FEWEST_ROWS:
            self._is_sure = any(goes_on(self._entries, name) for name in known)
            if not self._is_sure and self._chances > 0:
                self._chances -= 1
                self._entries.clear()
                self.sentinel.look_again()

    @property
    def is_sure(self) -> bool:
        """Whether what was found to grow was seen to go on, or cannot be followed."""
        return self._is_sure or not self.sentinel.grows_at

    def completed(self, report: Report) -> Report:
        """Return a report with what is known of the requests."""
        going = [one for one in report.suspects if goes_on(self._entries, str(one.holder))]
        growing = report.verdict == "growing"
        if growing and not going and self._are_followed(report.suspects):
            report = _in_doubt(report, few=len(self._entries) < FEWEST_ROWS)
        suspects = tuple(going) or report.suspects
        per_look = self._ended_closely / max(1, self._looks_closely)
        entries = map(self._by_outcome, entries_of(suspects, per_look))
        load = Load(
            self.finished,
            self.aborted,
            self.most_in_flight,
            self._moments.highest,
            self._ended / max(1, self._looks),
            tuple(entries),
        )
        return replace(report, suspects=suspects, load=load)

    def _are_followed(self, suspects: tuple[Suspect, ...]) -> bool:
        """Say whether the length of all that was found to grow can be read, or was."""
        known = {*self._entries.resources, *map(str, self.sentinel.grows_at)}
        return bool(suspects) and all(str(one.holder) in known for one in suspects)

    def _by_outcome(self, each: Entries) -> Entries:
        found = kept_by_outcome(self._entries, str(each.holder))
        if found is None:
            return each
        finished, aborted = found
        ended = self.finished + self.aborted
        kept = (finished * self.finished + aborted * self.aborted) / ended
        return replace(each, kept=kept, kept_of_finished=finished, kept_of_aborted=aborted)


def _in_doubt(report: Report, *, few: bool) -> Report:
    """Return a report that accuses nothing: what was found to grow did not go on.

    `few`: too few requests came later to tell.
    """
    holders = tuple(str(one.holder) for one in report.suspects)
    trends = (
        replace(one, verdict="unclear") if one.verdict == "growing" else one
        for one in report.trends
    )
    reason = Reason.of("too-few-requests" if few else "did-not-go-on", holders=holders)
    return replace(report, verdict="unclear", reason=reason, suspects=(), trends=tuple(trends))


class request:
    """One request: what is in the block, in whichever task or thread it runs.

    It counts as aborted if an exception leaves the block, as when its task is cancelled, or if
    `abort` was called. Use it with `with` or `async with`; in another request it does nothing.
    `requests`: those of a server with a sentinel of its own.
    """

    __slots__ = ("_aborted", "_clock", "_requests", "_token")

    def __init__(self, requests: Requests | None = None) -> None:
        self._requests = requests
        self._clock: Requests | None = None
        self._token: Token[request | None] | None = None
        self._aborted = False

    def __enter__(self) -> request:
        around = _CURRENT.get()
        if around is None or around._clock is None:  # a task may outlive the request it is from
            self._clock = self._requests or _clock()
            self._token = _CURRENT.set(self)
            self._clock.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        clock, self._clock = self._clock, None
        if clock is None:
            return
        _forget(self._token)
        self._token = None
        aborted = self._aborted or (kind is not None and kind is not GeneratorExit)
        clock.end(aborted)

    async def __aenter__(self) -> request:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)

    def abort(self) -> None:
        """Count it as aborted, whatever becomes of the block: the client went away."""
        self._aborted = True


_CURRENT: ContextVar[request | None] = ContextVar("leakcheck_request", default=None)
_LISTENING: list[Requests] = []  # that of the run, or of the process
_MAKING = threading.Lock()


def listen(clock: Requests) -> None:
    """Have requests count as steps of `clock`, and of no other."""
    _LISTENING[:] = [clock]


def stop_listening() -> None:
    """Have requests count for the process again, when the run is over."""
    _LISTENING.clear()


def _clock() -> Requests:
    with _MAKING:
        if not _LISTENING:
            _LISTENING.append(_of_process())
        return _LISTENING[0]


def _of_process() -> Requests:
    sentinel = Sentinel()
    told: list[bool] = []
    process = os.getpid()

    def warn_once() -> None:
        growing = sentinel.state[1] == "growing" and clock.is_sure
        if not told and os.getpid() == process and growing:
            told.append(True)
            warnings.warn(summary(sentinel.report()), LeakWarning, stacklevel=2)

    clock = Requests(sentinel, warn_once)
    return clock


def _forget(token: Token[request | None] | None) -> None:
    try:
        if token is not None:
            _CURRENT.reset(token)
    except ValueError:  # left in another context than it was entered in, as a generator may be
        _CURRENT.set(None)
