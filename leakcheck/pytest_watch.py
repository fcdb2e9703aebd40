"""What the pytest plugin watches: a test's own loop, or what optimizers step in it or a fixture.

Nothing is imported of leakcheck before something is watched.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import pytest

    from leakcheck.model import Report
    from leakcheck.runtime.clock.steps import StepClock

Item = TypeVar("Item")
DEFAULT_STEPS = 300


@dataclass(frozen=True, slots=True)
class LimitsOfTest:
    """What one test allows: bytes a step on host and device (None: no leak at all), and steps."""

    max_host_bytes: int | None = None
    max_device_bytes: int | None = None
    steps: int = DEFAULT_STEPS
    warmup: int = 0


class LeakSentinel:
    """The fixture's value: put it round the loop of the test in one of three ways."""

    def __init__(self, settings: LimitsOfTest) -> None:
        from leakcheck.runtime.sentinel import Sentinel

        self._settings = settings
        self._sentinel = Sentinel(steps=settings.steps)
        self._warmup_left = settings.warmup
        self._judged = False

    def watch(self, loop: Iterable[Item]) -> Iterator[Item]:
        """Yield the items of `loop`, each a step; judged at its end, while all is still alive.

        Called again, as in every epoch, it goes on with the steps of before, and what the epoch
        before released is no leak.
        """
        from leakcheck.runtime.attribution.loops import loops_around

        self._begin()
        around = list(loops_around(sys._getframe(1)))
        self._sentinel.loop_begins(around)
        for item in loop:
            yield item
            del item
            self.step()
        if not around:
            self._sentinel.pause()

    def step(self) -> None:
        """Note that a step is over."""
        if self._warmup_left > 0:
            self._warmup_left -= 1
            return
        self._begin()
        self._sentinel.step()

    def repeat(self, function: Callable[[], object], times: int | None = None) -> None:
        """Call `function` as one step, `times` times; stops when the verdict is certain."""
        for _ in range(times or self._settings.steps + self._settings.warmup):
            function()
            self.step()
            if self._sentinel.certain:
                break
        self._sentinel.stop()

    def report(self) -> Report:
        """Return what is known now."""
        return self._sentinel.report()

    @property
    def stepped(self) -> bool:
        """Whether it has seen a step that is not judged yet."""
        return self._sentinel.state[0] > 0 and not self._judged

    def stop(self, *, cut_short: bool = False) -> Report:
        """End the watch and return its report; it never raises, whatever goes wrong in here.

        The next step begins another. `cut_short`: the loop did not come to its own end.
        """
        from leakcheck.model import Reason, Report

        self._judged = True
        try:
            self._sentinel.stop(cut_short=cut_short)
            return self._sentinel.report()
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            return Report(verdict="unclear", reason=Reason.of("failed", error=told))

    def _begin(self) -> None:
        if self._judged:
            self._sentinel.start()
            self._judged = False


class WatchedTest:
    """A test, or a fixture's set-up or tear-down: its steps, and nothing imported before the first.

    `own`: the test's sentinel, if it has one; those of optimizers count where there are `settings`
    for them, until the own one sees a step.
    """

    def __init__(
        self, own: Callable[[], LeakSentinel | None], settings: LimitsOfTest | None
    ) -> None:
        self._own = own
        self._settings = settings
        self._clock: StepClock | None = None
        self._counting: LeakSentinel | None = None

    def optimizer_stepped(self, *arguments: object) -> None:
        """Count a step, unless the test does so itself."""
        if self._settings is None or self._stepped_own() is not None:
            return
        if self._clock is None:
            from leakcheck.runtime.clock.steps import StepClock

            self._counting = LeakSentinel(self._settings)
            sentinel = self._counting._sentinel
            self._clock = StepClock(sentinel, lambda: None, sentinel.guard)
        self._clock.guard.hidden(self._clock.optimizer_stepped)(*arguments)

    def end(self, *, cut_short: bool, goes_on: bool = False) -> Report | None:
        """Return what was seen, None without a step.

        `goes_on`: the own sentinel has the same loop before it still, and ends with a leak only.
        """
        own, counting = self._stepped_own(), self._counting
        counted = counting.stop(cut_short=cut_short) if counting is not None else None
        if own is None:
            return counted
        goes_on = goes_on and own.report().verdict != "growing"
        return None if goes_on else own.stop(cut_short=cut_short)

    def _stepped_own(self) -> LeakSentinel | None:
        own = self._own()
        return own if own is not None and own.stepped else None


class Phases:
    """What is watched now, the innermost last, and what the running phase of a test has leaked."""

    def __init__(self) -> None:
        self._hooked = False
        self.watched: list[WatchedTest] = []
        self.item: pytest.Item | None = None
        self.told: list[str] = []
        self.leaked = False
        self.failure: BaseException | None = None  # that it was failed with

    def hook_optimizers(self) -> None:
        """Count what optimizers step; torch's hook stays for the whole session."""
        if not self._hooked:
            from leakcheck.runtime.clock.optimizers import hook_optimizers

            hook_optimizers(self._optimizer_stepped)
            self._hooked = True

    def _optimizer_stepped(self, *arguments: object) -> None:
        if self.watched:
            self.watched[-1].optimizer_stepped(*arguments)
