"""One trial of `leakcheck fix`, in the process that it starts: the program with edited text.

The parent says what to run as JSON in the first argument and finds, in the trial's folder, the
recording, the losses and `notes.json`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

import msgspec

from leakcheck.cli.session import RunSettings, others_run
from leakcheck.cli.silent_session import SilentSession
from leakcheck.cure.reached import Reached
from leakcheck.cure.witness import Witness, peak_bytes
from leakcheck.cure.written import Written
from leakcheck.errors import LeakcheckError
from leakcheck.experiments import SourceSpan
from leakcheck.runtime.clock import ticks
from leakcheck.runtime.script import Program, ProgramEnd, find_module, find_script


class TrialOrder(msgspec.Struct, frozen=True):
    """What to run, with which texts in place of which files, and at which step to stop."""

    folder: str
    steps: int
    tolerance: int
    args: tuple[str, ...]
    module: str | None = None
    stop_at: int | None = None  # None: when the verdict is certain, and not before `least`
    least: int = 0
    texts: dict[str, str] = {}  # real path -> a file with the text
    leak: str = ""  # the fingerprint of the one that the edit is to end
    frozen: bool = False  # the collector need not look at what was imported before the fork
    grace_s: float = 0.0  # for the program to end by itself once it is judged
    threads_fail: bool = False  # also without an edit
    asked: dict[str, list[int]] = {}  # real path -> lines of which to note whether they run


class TrialNotes(msgspec.Struct, frozen=True):
    """What the recording does not say about a trial."""

    status: int = 0
    error: str = ""
    peak_bytes: int = 0
    step_s: float = 0.0
    weights: tuple[int, ...] = ()
    modules: tuple[int, ...] = ()
    gradients: tuple[int, ...] = ()
    doubtful: bool = False  # something was looked into, and what is frozen was not looked at
    turns: int = 0  # of the loop that makes the steps, if it is one
    counted: int = 0  # steps, also those before the loop that is judged began
    threads_fail: bool = False
    unreached: list[SourceSpan] = []  # of the lines that were asked for
    loaded: tuple[str, ...] = ()  # files of the program's own


class TrialSession(SilentSession):
    """A session that stops where it is told to, and notes what the program made."""

    def __init__(
        self, program: Program, order: TrialOrder, witness: Witness, reached: Reached
    ) -> None:
        self._folder = Path(order.folder).absolute()
        settings = RunSettings(
            order.steps, order.tolerance, to_end=True, record_folder=self._folder
        )
        super().__init__(program, settings)
        self._order = order
        self._witness, self._reached = witness, reached
        witness.begin(self._folder / "losses")
        Written(order.folder)
        self._certain_s = 0.0
        self._doubtful = self._threads_fail = False
        self._show_in_thread = threading.excepthook
        threading.excepthook = self._note_in_thread

    def _note_in_thread(self, failed: threading.ExceptHookArgs) -> None:
        """Show the error; an edited program that waits for the thread would wait for ever."""
        self._show_in_thread(failed)
        self._threads_fail = True
        if self._order.texts and not self._order.threads_fail:
            self._error = self._error or f"{failed.exc_type.__name__}: {failed.exc_value}"
            self._leave(ProgramEnd(1, "error"))

    def _after_step(self) -> None:
        self._witness.step()
        super()._after_step()
        if os.getpid() == self._pid and self._is_over(self._sentinel.state[0]) and not self._stops:
            self._stop_here()

    def _is_over(self, step: int) -> bool:
        stage = self._sentinel.state[1]
        if self._order.leak and stage not in ("watching", "steady"):
            if self._order.frozen:
                self._doubtful = True
                return True
            if stage == "growing" and self._order.leak in self._leaks():
                return True
        if self._order.stop_at is not None:
            return step >= self._order.stop_at
        if step < self._order.least or not self._sentinel.certain:
            return False
        self._certain_s = self._certain_s or time.monotonic()
        return time.monotonic() - self._certain_s > self._order.grace_s

    def _leaks(self) -> set[str]:
        if self._certain_s:  # asked before
            return set()
        self._certain_s = time.monotonic()
        return {each.fingerprint for each in self._sentinel.report().suspects}

    def _finish(self, outcome: ProgramEnd) -> int:
        if self.report is not None or os.getpid() != self._pid:
            return super()._finish(outcome)
        peak, weights = peak_bytes(), tuple(self._witness.weights(self._folder / "weights"))
        modules, gradients = tuple(self._witness.modules()), tuple(self._witness.gradients())
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        super()._finish(outcome)
        notes = TrialNotes(
            outcome.status,
            self._error,
            peak,
            self._witness.step_s,
            weights,
            modules,
            gradients,
            self._doubtful or (self._order.frozen and not self._is_plain()),
            self._clock.turns,
            self._sentinel.state[0],
            self._threads_fail,
            self._reached.unreached(),
            self._reached.loaded(),
        )
        (self._folder / "notes.json").write_bytes(msgspec.json.encode(notes))
        return outcome.status

    def _is_plain(self) -> bool:
        """Whether nothing was looked into closer."""
        return self._sentinel.state[1] in ("watching", "steady")


def main() -> None:
    """Run the trial that the first argument orders, in this process; exit as the program does."""
    order = msgspec.convert(json.loads(sys.argv[1]), TrialOrder)
    witness = Witness()
    witness.start()
    run(order, witness)


def run(order: TrialOrder, witness: Witness) -> NoReturn:
    """Run a trial in this process, which exits as the program does."""
    for path, text in order.texts.items():
        ticks.edited[path] = Path(text).read_bytes().decode()
    reached = Reached(order.asked)
    try:
        if order.module is not None:
            program = find_module(order.module, order.args)
        else:
            program = find_script(order.args[0], order.args[1:])
        session = TrialSession(program, order, witness, reached)
    except LeakcheckError as error:
        notes = TrialNotes(error.exit_code, str(error))
        Path(order.folder, "notes.json").write_bytes(msgspec.json.encode(notes))
        raise SystemExit(error.exit_code) from None
    status = session.run()
    if status and others_run():  # an edit failed it, and who waits for its work waits for ever
        os._exit(status)
    raise SystemExit(status)
