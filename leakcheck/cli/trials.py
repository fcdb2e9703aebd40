"""Run a program with edited text in a process of its own, and read back what came of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from leakcheck.cli.stages import ended, killed
from leakcheck.cli.tried import TrialNotes, TrialOrder
from leakcheck.cure.witness import LOSS
from leakcheck.errors import RecordingError
from leakcheck.experiments import Results, Trial
from leakcheck.model import Report
from leakcheck.runtime.recording import read_recordings

# -c puts "" first on sys.path, where the program's folder comes: ours must not be looked up there
CHILD = (
    "import sys; first = sys.path.pop(0); from leakcheck.cli import tried; "
    "sys.path.insert(0, first); tried.main()"
)

FEWEST_STEADY = 30
LEAST_STEPS = 200  # a cured run needs as many to be called steady


@dataclass(slots=True)
class Trials:
    """Runs the trials of one program, each in a folder of its own."""

    args: tuple[str, ...]
    module: str | None
    steps: int
    tolerance: int
    timeout_s: float
    folder: Path
    begin: Callable[[int], None]
    _count: int = field(default=0)

    def run(self, texts: Mapping[str, str], stop_at: int | None) -> Trial:
        """Run the program with these texts, up to a step, or until the verdict is certain."""
        self._count += 1
        self.begin(self._count)
        folder = self.folder / str(self._count)
        folder.mkdir()
        order = TrialOrder(
            str(folder),
            # a program that has grown by a step has to be steady for half as many, not for long
            self.steps if stop_at is None else max(FEWEST_STEADY, stop_at // 2),
            self.tolerance,
            self.args,
            self.module,
            stop_at,
            LEAST_STEPS,
            _written(texts, folder),
        )
        command = [sys.executable, "-c", CHILD, msgspec.json.encode(order).decode()]
        status = ended(command, folder / "stdout", self.timeout_s, folder / "stderr")
        return _read_back(folder, status, self.timeout_s)


def _written(texts: Mapping[str, str], folder: Path) -> dict[str, str]:
    names = {}
    for number, (path, text) in enumerate(texts.items()):
        file = folder / f"text-{number}"
        file.write_bytes(text.encode())
        names[os.path.realpath(path)] = str(file)
    return names


def _read_back(folder: Path, status: int | None, timeout_s: float) -> Trial:
    try:
        notes = msgspec.json.decode((folder / "notes.json").read_bytes(), type=TrialNotes)
    except (OSError, msgspec.MsgspecError):
        told = f"stopped after {timeout_s:g} s (--timeout)" if status is None else killed(status)
        return Trial(None, status=1 if status is None else status, error=told)
    stdout = (folder / "stdout").read_text(encoding="utf-8", errors="surrogateescape")
    files = tuple(sorted(notes.files.items()))
    losses = _losses(folder / "losses")
    results = Results(stdout, losses, notes.weights, notes.modules, files)
    report = _report(folder)
    return Trial(report, results, notes.status, notes.error, notes.peak_bytes, notes.step_s)


def _losses(path: Path) -> tuple[tuple[int, float], ...]:
    raw = path.read_bytes() if path.exists() else b""
    return tuple(LOSS.iter_unpack(raw[: len(raw) - len(raw) % LOSS.size]))


def _report(folder: Path) -> Report | None:
    try:
        return read_recordings(folder)[0].report
    except RecordingError:
        return None
