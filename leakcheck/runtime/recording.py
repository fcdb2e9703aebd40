"""A run on disk: one JSON-lines file a rank, readable after the process was killed.

`DIR/rank-00000.jsonl` (five digits of the rank), and `DIR/rank-00000-child-<pid>-<any>.jsonl` of
each child process of its that trained. Every line is one object with a "type":

    {"type": "run", "format": 1, "command": ..., "rank": 0, "world_size": 1, ...}          first
    {"type": "clock", "clock": "optimizer step"}    what makes the steps that follow
    {"type": "sample", "step": 40, "elapsed_s": 1.25, "readings": {"host.rss": ..., ...}}  many
    {"type": "leak", "report": {...}}       once a leak is established: what is known then
    {"type": "report", "report": {...}}     last, if the run ended well: `Report` as JSON

A sample is written when the step reaches the next of a geometric series (every step up to 512,
then 0.2 % further each time), so a million steps take under 5,000 lines, about 1 MB. Each line is
written at once. A torn last line, as after SIGKILL or on a full disk, is ignored.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import msgspec

from leakcheck.errors import RecordingError
from leakcheck.model import Reason, Report, Run, Sample
from leakcheck.runtime.judgement.tolerance import DEFAULT_TOLERANCE_BYTES
from leakcheck.runtime.readings.watching import Watch
from leakcheck.writing import Descriptor, reason_of

FORMAT = 1
DENSE_STEPS = 512
SPACING = 0.002
LARGEST = 2**62
OF_CHILD = "-child-"  # in the name of a file, before the number of the process
LONGEST_S = 1e9  # thirty years

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Recording:
    """What one rank wrote; `report` is None when the run was cut off before a leak was known."""

    run: Run
    samples: tuple[Sample, ...]
    report: Report | None
    tolerance_bytes: int = DEFAULT_TOLERANCE_BYTES
    pid: int | None = None  # of a child process


class Recorder:
    """Writes one rank's file; what fails once it is made ends the recording, and nothing else.

    `failed` says then where it ended and why. RecordingError when it cannot be made,
    and `required`.
    """

    def __init__(
        self,
        path: Path,
        header: Mapping[str, object],
        *,
        makes_folder: bool = False,
        required: bool = False,
    ) -> None:
        self.path = path
        self.failed: Reason | None = None
        self._clock = ""
        self._step = 0
        self._next_step = 1
        self._file: Descriptor | None = None
        try:
            if makes_folder:
                path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                self._file = Descriptor(file.fileno())
        except OSError as error:
            if required:
                raise RecordingError(f"{path}: {error.strerror}") from error
            self._fail(error)
        self._write({"type": "run", "format": FORMAT, **header})

    @classmethod
    def of_rank(
        cls,
        folder: Path,
        command: str,
        rank: int = 0,
        world_size: int = 1,
        tolerance_bytes: int = DEFAULT_TOLERANCE_BYTES,
        *,
        required: bool = True,
    ) -> Recorder:
        """Return the recorder of a rank in a folder, which is made if there is none."""
        header = {"command": command, "rank": rank, "world_size": world_size}
        header |= {"tolerance_bytes": tolerance_bytes}
        path = folder / f"rank-{rank:05d}.jsonl"
        return cls(path, header, makes_folder=True, required=required)

    @classmethod
    def of_child(cls, folder: Path, *, of_rank: int, **header: str | int | None) -> Recorder:
        """Return the recorder of this process, a child of the one that was launched as `of_rank`.

        The `rank` in its header is its own, in a group of processes that the program made itself.
        The folder is the parent's: where it is gone, nobody will read.
        """
        unique = secrets.token_hex(3)  # numbers of processes come again
        return cls(folder / f"rank-{of_rank:05d}{OF_CHILD}{os.getpid()}-{unique}.jsonl", header)

    def sample(self, step: int, elapsed_s: float, watch: Watch, clock: str) -> None:
        """Write the newest readings if it is their turn."""
        if clock != self._clock:
            self._clock = clock
            self._write({"type": "clock", "clock": clock})
        if step < self._next_step:
            return
        self._step = step
        readings = watch.quick.newest() | (
            watch.slow.newest() if watch.slow.last_step == step else {}
        )
        sample = {"type": "sample", "step": step, "elapsed_s": round(elapsed_s, 6)}
        self._write(sample | {"readings": readings})
        self._next_step = step + 1 + (int(step * SPACING) if step > DENSE_STEPS else 0)

    def leak(self, report: Report) -> None:
        """Write what is known of a leak: a run that leaks often ends by being killed."""
        self._write({"type": "leak", "report": msgspec.to_builtins(report)})

    def finish(self, report: Report) -> None:
        """Write the report and close the file."""
        self._write({"type": "report", "report": msgspec.to_builtins(report)})
        self.close()

    def close(self) -> None:
        """Close the file; what comes later is dropped."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, line: Mapping[str, object]) -> None:
        if self._file is None:
            return
        try:
            self._file.write(f"{json.dumps(line)}\n".encode())
        except OSError as error:
            self._fail(error)
            self.close()

    def _fail(self, error: OSError) -> None:
        self.failed = Reason.of(
            "recording-stopped", step=self._step, path=str(self.path), error=reason_of(error)
        )


def read_recording(path: Path) -> Recording:
    """Read one rank's file; raises RecordingError when it is no recording."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror}") from error
    entries = [
        entry
        for number, line in enumerate(lines, 1)
        if (entry := _entry(path, number, line, len(lines)))
    ]
    if not entries or entries[0].get("type") != "run":
        raise RecordingError(f"{path}: not a leakcheck recording")
    if entries[0].get("format") != FORMAT:
        raise RecordingError(f"{path}: written in format {entries[0].get('format')}, not {FORMAT}")
    try:
        return replace(_recording(entries), pid=pid_of(path))
    except (msgspec.ValidationError, KeyError, TypeError) as error:
        raise RecordingError(f"{path}: damaged: {error}") from error


def read_recordings(folder: Path) -> tuple[Recording, ...]:
    """Read every rank's file of a folder, by rank; RecordingError when there is none."""
    paths = sorted(folder.glob("rank-*.jsonl"))
    if not paths:
        raise RecordingError(f"{folder}: no recording (rank-*.jsonl) in there")
    return tuple(read_recording(path) for path in paths)


def pid_of(path: Path) -> int | None:
    """Return the number of the child process that a recording is of, None if of no child."""
    pid = path.name.rpartition(OF_CHILD)[2].partition("-")[0]
    return int(pid) if OF_CHILD in path.name and pid.isdecimal() else None


def _entry(path: Path, number: int, line: str, last: int) -> dict[str, object] | None:
    try:
        entry = json.loads(line, parse_constant=_float, parse_float=_float, parse_int=_int)
    except (ValueError, RecursionError) as error:
        if number == last:
            return None
        raise RecordingError(f"{path}:{number}: damaged line") from error
    return entry if isinstance(entry, dict) else None


def _float(text: str) -> float:
    return _bounded(float(text))


def _int(text: str) -> int:
    return _bounded(int(text)) if len(text) < 20 else int(_float(text))


def _bounded(number: Number) -> Number:
    """Refuse what no meter can have read: not a number, or beyond 64 bits."""
    if not abs(number) < LARGEST:  # also so of NaN
        raise ValueError(f"{number} is no reading")
    return number


def _recording(entries: list[dict[str, object]]) -> Recording:
    clocks = [at for at, entry in enumerate(entries) if entry.get("type") == "clock"]
    samples = tuple(
        msgspec.convert(
            {key: value for key, value in entry.items() if key != "type"}, Sample, strict=True
        )
        for entry in entries[clocks[-1] if clocks else 0 :]  # those before are another loop's
        if entry["type"] == "sample"
    )
    steps = [sample.step for sample in samples]
    if any(later <= earlier for earlier, later in pairwise(steps)):
        raise TypeError("its steps do not rise")
    if any(not 0 <= sample.elapsed_s <= LONGEST_S for sample in samples):
        raise TypeError("its clock is impossible")
    reports = [entry["report"] for entry in entries if entry["type"] == "report"]
    report = msgspec.convert(reports[-1], Report) if reports else None
    if report is not None and report.run is not None:
        return Recording(report.run, samples, report)
    header = entries[0]
    last = samples[-1] if samples else Sample(0, 0.0, {})
    run = Run(
        command=msgspec.convert(header["command"], str),
        steps=last.step,
        seconds=last.elapsed_s,
        clock=msgspec.convert(entries[clocks[-1]]["clock"] if clocks else "", str),
        rank=msgspec.convert(header.get("rank"), int | None),
        world_size=msgspec.convert(header.get("world_size"), int | None),
        process=msgspec.convert(header.get("process", ""), str),
        stopped_by="cut off",
        ended="cut off",
    )
    leaks = [entry["report"] for entry in entries if entry["type"] == "leak"]
    if not leaks:
        tolerance_bytes = header.get("tolerance_bytes", DEFAULT_TOLERANCE_BYTES)
        return Recording(run, samples, None, msgspec.convert(tolerance_bytes, int))
    known = msgspec.convert(leaks[-1], Report)
    return Recording(run, samples, replace(known, run=_cut_off(known.run or run, run)))


def _cut_off(known: Run, end: Run) -> Run:
    """Say how far the run came in which a leak was known earlier."""
    return replace(
        known,
        command=end.command,
        steps=end.steps,
        seconds=end.seconds,
        rank=end.rank,
        world_size=end.world_size,
        process=end.process,
        stopped_by=end.stopped_by,
        ended=end.ended,
    )
