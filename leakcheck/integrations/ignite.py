"""An Ignite handler: `LeakcheckHandler().attach(trainer)`; a step is an iteration."""

from __future__ import annotations

from typing import Any

from leakcheck.integrations.loop import LoopWatch
from leakcheck.model import Report


class LeakcheckHandler:
    """Watches an engine's run and tells on standard error what leaks; options as of `LoopWatch`."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._watch: LoopWatch | None = None

    def attach(self, engine: Any) -> LeakcheckHandler:
        """Watch this engine."""
        from ignite.engine import Events

        engine.add_event_handler(Events.STARTED, self._begin)
        engine.add_event_handler(Events.ITERATION_COMPLETED, self._step)
        engine.add_event_handler(Events.COMPLETED, self._end)
        return self

    def report(self) -> Report:
        """Return what is known now; empty before the run."""
        return self._watch.report() if self._watch is not None else Report()

    def _begin(self, engine: Any) -> None:
        self._watch = LoopWatch(**self._options)
        self._watch.begin()

    def _step(self, engine: Any) -> None:
        if self._watch is not None:
            self._watch.step()

    def _end(self, engine: Any) -> None:
        if self._watch is not None:
            self._watch.end()
