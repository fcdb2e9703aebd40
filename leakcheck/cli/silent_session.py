"""A session that only records: who started it tells what came of it."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import NoReturn

from leakcheck.cli.session import RunSettings, Session, others_run
from leakcheck.model import Report
from leakcheck.runtime.script import Program, ProgramEnd, stop_run


class SilentSession(Session):
    """A run of which nothing is printed; the error that the program ends with is noted."""

    watches_children = False  # one recording is compared

    def __init__(self, program: Program, settings: RunSettings) -> None:
        super().__init__(program, settings)
        self._error = ""
        self._show_error = sys.excepthook
        sys.excepthook = self._note_error

    def _stop_here(self) -> NoReturn:
        """End the program, at once where it or Python would wait for a thread of its own."""
        self._stops += 1
        if others_run():
            self._leave(ProgramEnd(0, "stopped"))
        stop_run()

    def _leave(self, outcome: ProgramEnd) -> NoReturn:
        """End the process, whatever its threads wait for."""
        self._finish(outcome)
        os._exit(outcome.status)

    def _joined(self, report: Report) -> Report:
        return report  # where it leaks and how fast is the question, not by which rule

    def _print(self, report: Report) -> None:
        pass  # the log is the program's alone

    def _note_error(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        self._error = f"{kind.__name__}: {error}" if str(error) else kind.__name__
        self._show_error(kind, error, trace)
