"""What each child process is told: the options of the run, and where to leave its recording."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChildOrder:
    """Plain values only: a spawned child gets them as text.

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
