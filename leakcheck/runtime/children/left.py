"""What the child processes have left in the folder of the recordings, and which of them still run.

One that did not come to its end, by SIGKILL, the OOM killer or `Pool.terminate()`, has left its
samples; so has one that outlives the program.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil

from leakcheck.errors import RecordingError
from leakcheck.runtime.merge import KILLED, STILL_RUNS
from leakcheck.runtime.recording import Recording, pid_of, read_recording


def read_left(folder: Path, rank: int) -> tuple[Recording, ...]:
    """Read what the children of a rank have left, and say how those ended that did not report."""
    read = []
    for path in _paths(folder, rank):
        with suppress(RecordingError):  # one that could not be written
            read.append(_told_how_it_ended(read_recording(path)))
    return tuple(read)


def still_run(folder: Path, rank: int) -> bool:
    """Say whether a child that has made a step is still there."""
    return any(_runs(pid_of(path)) for path in _paths(folder, rank))


def are_waited_for() -> bool:
    """Say whether Python will wait at its end for a child that the program has not joined."""
    children = getattr(sys.modules.get("multiprocessing.process"), "_children", ())
    return any(not each.daemon for each in tuple(children))


def queues_are_waited_for() -> bool:
    """Say whether Python will wait at its end until somebody has read what was put into a queue.

    Of multiprocessing's, unless the program called `cancel_join_thread` of it.
    """
    queue = getattr(sys.modules.get("multiprocessing.queues"), "Queue", None)
    at_exit = getattr(sys.modules.get("multiprocessing.util"), "_finalizer_registry", {})
    callbacks = [each._callback for each in tuple(at_exit.values())]
    return queue is not None and any(each is queue._finalize_join for each in callbacks)


def _paths(folder: Path, rank: int) -> Sequence[Path]:
    return sorted(folder.glob(f"rank-{rank:05d}-child-*.jsonl"))


def _told_how_it_ended(recording: Recording) -> Recording:
    if recording.run.ended != "cut off":
        return recording
    told = STILL_RUNS if _runs(recording.pid) else KILLED
    run = replace(recording.run, stopped_by=told)
    report = recording.report and replace(recording.report, run=run)
    return replace(recording, run=run, report=report)


def _runs(pid: int | None) -> bool:
    try:
        return pid is not None and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
