"""One stage of `leakcheck isolate`, in the process that `isolate` starts for it.

The parent says what to run as JSON in the first argument and finds, in the stage's folder, the
recording and `notes.json`: how the program ended, and what the stage's change has changed.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from leakcheck.cli.session import RunSettings
from leakcheck.cli.silent_session import SilentSession
from leakcheck.errors import LeakcheckError
from leakcheck.runtime.clock.seconds import TimeClock
from leakcheck.runtime.clock.steps import StepClock
from leakcheck.runtime.isolation.changes import Loaders, Open, without_backward
from leakcheck.runtime.isolation.experiment import AS_IT_IS
from leakcheck.runtime.isolation.silence import without_logging
from leakcheck.runtime.script import Program, ProgramEnd, find_module, find_script

CHANGES_BY_STEP = 200  # a stage that has changed nothing by then does not apply
MOST_DRAINED = 10  # times --steps: what is unclear by then stays so


class StageOrder(msgspec.Struct, frozen=True):
    """What to run and how; `loader` is the number of the DataLoader that feeds the steps."""

    stage: str
    folder: str
    steps: int
    tolerance: int
    args: tuple[str, ...]
    module: str | None = None
    loader: int | None = None


class Notes(msgspec.Struct, frozen=True):
    """What the recording does not say about a stage."""

    ended: str = ""
    status: int = 0
    error: str = ""
    changed: dict[str, int] = {}
    loader: int | None = None

    @property
    def failed(self) -> bool:
        """Whether the program failed, other than by the signal that we end it with."""
        return bool(self.status) and self.ended != "terminated"


class StagedSession(SilentSession):
    """A session whose program is changed as its stage says."""

    def __init__(self, program: Program, order: StageOrder) -> None:
        folder = Path(order.folder)
        super().__init__(
            program,
            RunSettings(steps=order.steps, tolerance=order.tolerance, record_folder=folder),
        )
        self._order = order
        self._notes_path = (folder / "notes.json").absolute()
        self._changed: Counter[str] = Counter()
        self._loaders = Loaders()
        self._steps = 0

    def _start_clock(self, clock: StepClock) -> TimeClock | None:
        stage = self._order.stage
        if stage == "data-only":  # its steps are the batches: nothing else is counted
            self._loaders.drain(self._order.loader or 0, self._drain)
            return None
        started = super()._start_clock(clock)
        if stage == AS_IT_IS:
            self._loaders.observe()
        elif stage == "fixed-batch":
            self._loaders.fix(self._changed)
        elif stage == "no-backward":
            without_backward(self._changed, clock.optimizer_stepped)
        elif stage == "no-logging":
            without_logging(self._changed)
        return started

    def _drain(self, loader: Any, open_loader: Open) -> None:
        self._sentinel.restart("batch of the DataLoader", trusted=True, waits="all but graphs")
        before = -1
        while before < self._changed["batches"] < MOST_DRAINED * self.settings.steps:
            before = self._changed["batches"]
            self._sentinel.phase()
            for _ in open_loader(loader):
                self._changed["batches"] += 1
                self._sentinel.step()
                self._after_step()
        self._stop_here()

    def _after_step(self) -> None:
        self._loaders.step()
        super()._after_step()
        self._steps += 1
        may_stop = self._order.stage != AS_IT_IS and os.getpid() == self._pid
        if may_stop and not self._changed and self._steps == CHANGES_BY_STEP:
            self._stop_here()

    def _finish(self, outcome: ProgramEnd) -> int:
        if self._stops and outcome.ended == "error":
            outcome = ProgramEnd(0, "stopped")  # it failed on our way out of it
        if self.report is None:
            status = super()._finish(outcome)
            notes = Notes(
                outcome.ended,
                outcome.status,
                self._error,
                dict(self._changed),
                self._loaders.feeding(),
            )
            if self.report is not None:  # None in a forked child
                self._notes_path.write_bytes(msgspec.json.encode(notes))
            return status
        return super()._finish(outcome)


def main() -> None:
    """Run the stage that the first argument orders; exit as the program does."""
    order = msgspec.convert(json.loads(sys.argv[1]), StageOrder)
    try:
        if order.module is not None:
            program = find_module(order.module, order.args)
        else:
            program = find_script(order.args[0], order.args[1:])
        session = StagedSession(program, order)
    except LeakcheckError as error:
        notes = Notes("usage", error.exit_code, str(error))
        Path(order.folder, "notes.json").write_bytes(msgspec.json.encode(notes))
        raise SystemExit(error.exit_code) from None
    raise SystemExit(session.run())
