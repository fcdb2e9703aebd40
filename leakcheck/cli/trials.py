"""Run a program with edited text in a process of its own, and read back what came of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import msgspec

from leakcheck.cli.isolate_stages import cut_short
from leakcheck.cli.processes import Processes
from leakcheck.cli.tried import TrialNotes, TrialOrder
from leakcheck.cure.outcome import goes_on
from leakcheck.cure.reached import Lines
from leakcheck.cure.witness import LOSS, SAMPLE
from leakcheck.cure.written import hashes
from leakcheck.errors import RecordingError
from leakcheck.experiments import Results, Trial
from leakcheck.model import Reason, Report
from leakcheck.runtime.recording import read_recordings

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
    grace_s: float
    folder: Path
    begin: Callable[[int], None]
    processes: Processes
    _count: int = field(default=0)
    _before: Report | None = field(default=None)  # of the program as it is
    _threads_fail: bool = field(default=False)  # in it

    def run(
        self,
        texts: Mapping[str, str],
        stop_at: int | None,
        leak: str = "",
        at_once: bool = False,
        asked: Lines = MappingProxyType({}),
    ) -> Trial:
        """Run the program with these texts, up to a step, or until the verdict is certain.

        `leak`: the fingerprint of what the texts are to end, `at_once` if from the first step on;
        when that is certain to go on, the rest is not run. A look at what grows begins anew with
        all that is alive in sight. `asked`: the lines of which to note whether they run.
        """
        self._count += 1
        self.begin(self._count)
        frozen = stop_at is not None and self.processes.forks
        trial, notes = self._run(texts, stop_at, leak, asked, str(self._count), frozen=frozen)
        if self._before is None:
            self._before, self._threads_fail = trial.report, notes.threads_fail
        if leak and notes.doubtful:
            if at_once and self._before and trial.report and goes_on(self._before, trial.report):
                return replace(trial, goes_on=True)
            name = f"{self._count}-whole"
            trial, _ = self._run(texts, stop_at, leak, asked, name, frozen=False)
        return trial

    def _run(
        self,
        texts: Mapping[str, str],
        stop_at: int | None,
        leak: str,
        asked: Lines,
        name: str,
        *,
        frozen: bool,
    ) -> tuple[Trial, TrialNotes]:
        folder = self.folder / name
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
            leak,
            frozen,
            self.grace_s,
            self._threads_fail,
            {os.path.realpath(path): sorted(lines) for path, lines in asked.items()},
        )
        began_ns = time.time_ns()
        status = self.processes.run(order, folder, self.timeout_s)
        files = hashes(str(folder), began_ns)
        return _read_back(folder, status, self.timeout_s, asked, files)


def _written(texts: Mapping[str, str], folder: Path) -> dict[str, str]:
    names = {}
    for number, (path, text) in enumerate(texts.items()):
        file = folder / f"text-{number}"
        file.write_bytes(text.encode())
        names[os.path.realpath(path)] = str(file)
    return names


def _read_back(
    folder: Path,
    status: int | None,
    timeout_s: float,
    asked: Lines,
    files: Mapping[str, int],
) -> tuple[Trial, TrialNotes]:
    try:
        notes = msgspec.json.decode((folder / "notes.json").read_bytes(), type=TrialNotes)
    except (OSError, msgspec.MsgspecError):
        failure = cut_short(status, timeout_s)
        trial = Trial(None, status=1 if status is None else status, failure=failure)
        return trial, TrialNotes()
    stdout, stderr = (_text(folder / name) for name in ("stdout", "stderr"))
    losses = _losses(folder / "losses")
    weights = tuple(zip(notes.weights, _samples(folder / "weights"), strict=True))
    learned = (weights, notes.modules, notes.gradients)
    results = Results(stdout, stderr, losses, *learned, tuple(sorted(files.items())))
    report = _report(folder)
    raised = Reason.of("raised", error=notes.error) if notes.error else None
    measured = (notes.peak_bytes, notes.step_s)
    trial = Trial(report, results, notes.status, raised, *measured)
    called = {os.path.realpath(path): path for path in asked}
    unreached = frozenset(each._replace(path=called[each.path]) for each in notes.unreached)
    loaded = tuple(map(_as_named, notes.loaded))
    trial = replace(trial, turns=notes.turns, counted=notes.counted)
    return replace(trial, unreached=unreached, loaded=loaded), notes


def _as_named(path: str) -> str:
    """Return the path of a file as a report names it: relative, where it is below this folder."""
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""


def _losses(path: Path) -> tuple[tuple[int, float], ...]:
    raw = path.read_bytes() if path.exists() else b""
    return tuple(LOSS.iter_unpack(raw[: len(raw) - len(raw) % LOSS.size]))


def _samples(path: Path) -> tuple[tuple[float, ...], ...]:
    return tuple(SAMPLE.iter_unpack(path.read_bytes() if path.exists() else b""))


def _report(folder: Path) -> Report | None:
    try:
        return read_recordings(folder)[0].report
    except RecordingError:
        return None
