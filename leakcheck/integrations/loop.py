"""What every framework's callback does: watch from the first step to the last, tell what leaks."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

from leakcheck.integrations.trackers import Tracker, track
from leakcheck.model import Report
from leakcheck.proof import proved
from leakcheck.runtime.judgement.tolerance import DEFAULT_TOLERANCE_BYTES
from leakcheck.runtime.sentinel import DEFAULT_STEPS, Sentinel

LOG_EVERY_STEPS = 100


def tell(report: Report) -> None:
    """Write the report to standard error, where it does not disturb the program's output."""
    from leakcheck.report.terminal import render

    print(render(report), file=sys.stderr)


class LoopWatch:
    """A sentinel with the life of a training loop.

    `on_report` gets the report when a leak is established and, if none was, at the end of
    training when the verdict is not steady; `tracker` gets the rates every `log_every` steps.
    What either raises is a warning: training goes on.
    """

    def __init__(
        self,
        *,
        steps: int = DEFAULT_STEPS,
        tolerance_bytes: int = DEFAULT_TOLERANCE_BYTES,
        on_report: Callable[[Report], object] = tell,
        tracker: Tracker | None = None,
        log_every: int = LOG_EVERY_STEPS,
    ) -> None:
        self._sentinel = Sentinel(
            steps=steps, tolerance_bytes=tolerance_bytes, on_leak=self._leaked
        )
        self._on_report = on_report
        self._tracker = tracker
        self._log_every = log_every
        self._steps = 0
        self._told = False

    def begin(self) -> None:
        """Training begins, for the first time or again."""
        self._told = False
        self._sentinel.start()

    def step(self) -> None:
        """One training step is over."""
        self._sentinel.step()
        self._steps += 1
        if self._tracker is not None and self._steps % self._log_every == 0:
            self._track(self._sentinel.report())

    def end(self, *, cut_short: bool = False) -> None:
        """Training is over; `cut_short`: it did not come to its own end."""
        self._sentinel.stop(cut_short=cut_short)
        report = self._sentinel.report()
        if self._tracker is not None:
            self._track(report)
        if report.verdict != "steady" and not self._told:
            self._tell(report)

    def report(self) -> Report:
        """Return what is known now, with the rules that the run proves."""
        return proved(self._sentinel.report())

    def _leaked(self, report: Report) -> None:
        self._told = True
        self._tell(report)

    def _track(self, report: Report) -> None:
        assert self._tracker is not None
        try:
            track(report, self._tracker, self._steps)
        except Exception as error:  # training does not end because a metric was refused
            _warn("the tracker failed", error)
            self._tracker = None

    def _tell(self, report: Report) -> None:
        try:
            self._on_report(proved(report))
        except Exception as error:
            _warn("on_report failed", error)


def _warn(what: str, error: Exception) -> None:
    told = f"leakcheck: {what}: {type(error).__name__}: {error}"
    warnings.warn(told, RuntimeWarning, stacklevel=4)
