"""The watch in a child process: its own, from before its function runs until after it has ended.

Of the parent's watch, which a forked child has a copy of, nothing goes on. The child is never
stopped: the others would wait for it. Its recording begins with its first step, so that a child
that never trains leaves nothing, and is written line by line: what SIGKILL or the OOM killer leaves
of it is judged by its samples, as of any recording that was cut off. At the end the report follows.
multiprocessing calls its finalizers, ours as the last, before it shows what went wrong, or from
Python 3.13 on after; by `os._exit`, which runs none of them, the report is made just before.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from leakcheck.model import Ended, Report
from leakcheck.runtime.clock.steps import StepClock
from leakcheck.runtime.conclusion import Ending
from leakcheck.runtime.readings.watching import Watch
from leakcheck.runtime.recording import Recorder
from leakcheck.runtime.script import before_os_exit
from leakcheck.runtime.sentinel import Sentinel

LAST = -1_000_000  # the priority among the finalizers of multiprocessing


@dataclass(frozen=True, slots=True)
class ChildOrder:
    """What each child is told: the options of the run, and where to leave its recording.

    Plain values only: a spawned child gets them as text.

    `program` is the script, "" of a module; `own`: the folder of the user's own files;
    `rank`: of the process that was launched, in the names of the recordings.
    """

    recordings: str
    command: str
    program: str
    own: str
    rank: int
    steps: int
    tolerance_bytes: int
    tolerance_per_hour_bytes: int
    tolerance_total_bytes: int


def begin_watch(order: ChildOrder, name: str, process: Any = None) -> None:
    """Watch the child process that we are in; it never raises.

    `process`: as multiprocessing has it, None of one that the program forked itself.
    """
    with suppress(Exception):
        watch = ChildWatch(order, name)
        watch.begin()
        # errors are handled there before the finalizers run
        if process is not None and sys.version_info >= (3, 13):
            process.run = _noting(process.run, watch.note)


class ChildRecorder:
    """The recording of a child; it is begun with the first step, when the rank is known."""

    def __init__(self, order: ChildOrder, process: str) -> None:
        self._order, self._process = order, process
        self._recorder: Recorder | None = None
        self.rank: int | None = None
        self.world_size: int | None = None

    def sample(self, step: int, elapsed_s: float, watch: Watch, clock: str) -> None:
        """Write the newest readings, the first ones too."""
        if self._recorder is None:
            self.rank, self.world_size = _rank_and_world_size()
            self._recorder = Recorder.of_child(
                Path(self._order.recordings),
                of_rank=self._order.rank,
                command=self._order.command,
                process=self._process,
                rank=self.rank,
                world_size=self.world_size,
                tolerance_bytes=self._order.tolerance_bytes,
            )
        self._recorder.sample(step, elapsed_s, watch, clock)

    def leak(self, report: Report) -> None:
        """Write what is known of a leak."""
        if self._recorder is not None:
            self._recorder.leak(self._named(report))

    def finish(self, report: Report) -> None:
        """Write the report, if there was a step."""
        if self._recorder is not None:
            self._recorder.finish(self._named(report))

    def _named(self, report: Report) -> Report:
        if report.run is None:
            return report
        run = replace(
            report.run,
            command=self._order.command,
            process=self._process,
            rank=self.rank,
            world_size=self.world_size,
        )
        return replace(report, run=run)


class ChildWatch:
    """A sentinel, a clock and a recording in a child process."""

    def __init__(self, order: ChildOrder, process: str) -> None:
        self._recorder = ChildRecorder(order, process)
        self._sentinel = Sentinel(
            steps=order.steps,
            tolerance_bytes=order.tolerance_bytes,
            tolerance_per_hour_bytes=order.tolerance_per_hour_bytes,
            tolerance_total_bytes=order.tolerance_total_bytes,
            recorder=self._recorder,
        )
        self._clock = StepClock(self._sentinel, _go_on, self._sentinel.guard)
        self._pid = os.getpid()
        self._over = False
        self._status = 0
        self._interrupted = False

    def begin(self) -> None:
        """Count the steps from now on, and report when the process ends."""
        from multiprocessing.util import Finalize

        self._clock.listen()
        os.register_at_fork(after_in_child=self._clock.stop)
        os.register_at_fork(after_in_child=self._sentinel.leave)
        Finalize(None, self.end, exitpriority=LAST)
        atexit.register(self.end)  # runs in a spawned process alone
        before_os_exit(self._end_with)

    def end(self) -> None:
        """Write the report, as the function of the process has ended, by an exception or not.

        Threads that it leaves behind may train on: the process waits for them, and so do we.
        """
        self.note(sys.exc_info()[1])
        if not _others_run():
            self._end_with(self._status, interrupted=self._interrupted)

    def note(self, error: BaseException | None) -> None:
        """Remember by what error the function of the process ended, if by any."""
        self._status = self._status or _status(error)
        self._interrupted |= isinstance(error, KeyboardInterrupt)

    def _end_with(self, status: int, *, interrupted: bool = False) -> int:
        if os.getpid() != self._pid or self._over:
            return status
        self._over = True
        with suppress(Exception):
            self._clock.stop()
            self._sentinel.stop(cut_short=bool(status))
            ended: Ended = "interrupted" if interrupted else "failed" if status else "finished"
            ending = Ending(exit_status=status, ended=ended)
            self._recorder.finish(self._sentinel.report(ending))
        return status


def _noting(run: Callable[[], None], note: Callable[[BaseException], None]) -> Callable[[], None]:
    """Return `run`, which tells `note` by what it ended; a traceback is as without us."""

    def run_and_note() -> None:
        try:
            run()
        except BaseException as error:
            note(error)
            if error.__traceback__ is not None:  # ours, and `raise` adds none
                error.__traceback__ = error.__traceback__.tb_next
            raise

    return run_and_note


def _others_run() -> bool:
    others = (each for each in threading.enumerate() if each is not threading.current_thread())
    return any(not each.daemon for each in others)


def _go_on() -> None:
    """After a step: a child is not stopped."""


def _status(error: BaseException | None) -> int:
    """Return the exit status that multiprocessing gives a process that ends by `error`."""
    if error is None or (isinstance(error, SystemExit) and error.code is None):
        return 0
    code = error.code if isinstance(error, SystemExit) else 1
    return code if isinstance(code, int) else 1


def _rank_and_world_size() -> tuple[int | None, int | None]:
    """Return the process's place in torch's process group; of no group, neither."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
    except Exception:  # a group that is being made or taken down
        pass
    return None, None
