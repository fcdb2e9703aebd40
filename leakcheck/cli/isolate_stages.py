"""Run the stages of `leakcheck isolate`, each in a process of its own, and read them back."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from leakcheck.cli.isolate_child import Notes, StageOrder
from leakcheck.errors import RecordingError, UsageError
from leakcheck.experiments import StageRun
from leakcheck.model import Reason, Report
from leakcheck.runtime.isolation.experiment import (
    AS_IT_IS,
    NOT_APPLICABLE,
    STAGES,
    judged,
    steps_of,
)
from leakcheck.runtime.recording import read_recordings

# -c puts "" first on sys.path, where the program's folder comes: ours must not be looked up there
CHILD = (
    "import sys; first = sys.path.pop(0); from leakcheck.cli import isolate_child; "
    "sys.path.insert(0, first); isolate_child.main()"
)
LAST_WORDS_S = 15.0  # for the report after SIGTERM
LOG_TAIL_LINES = 8
NOTHING_CHANGED = {
    "fixed-batch": Reason("no-batch-read"),
    "no-backward": Reason("no-backward-called"),
    "no-logging": Reason("nothing-logged"),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What `isolate` runs: the program's arguments, the stages, and for how long each."""

    args: tuple[str, ...]
    module: str | None
    stages: tuple[str, ...]
    steps: int
    tolerance: int
    timeout_s: float
    folder: Path
    cwd: Path | None = None  # None: where leakcheck runs

    def log(self, stage: str) -> Path:
        """Where the stage's standard output and error go."""
        return self.folder / f"{stage}.log"

    def log_tail(self, stage: str) -> list[str]:
        """The last lines that the program wrote in a stage."""
        lines = self.log(stage).read_text(encoding="utf-8", errors="replace").splitlines()
        return lines[-LOG_TAIL_LINES:]


def run_stages(plan: Plan, begin: Callable[[str], None]) -> Iterator[StageRun]:
    """Yield the runs, the unchanged one first; the others only if that one grows."""
    begin(AS_IT_IS)
    plain, notes = _run(plan, AS_IT_IS, plan.steps)
    yield plain
    if plain.verdict != "growing":
        return
    for stage in plan.stages:
        reason = _inapplicable(stage, plain, notes)
        if reason is not None:
            yield StageRun(stage, NOT_APPLICABLE, reason)
            continue
        begin(stage)
        # a stage that is steady has to be so for longer than the growth took to show
        run, _ = _run(plan, stage, max(plan.steps, steps_of(plain)), notes.loader)
        yield judged(run, plain)


def as_it_is(plan: Plan) -> StageRun:
    """Run the unchanged program alone."""
    return _run(plan, AS_IT_IS, plan.steps)[0]


def _inapplicable(stage: str, plain: StageRun, notes: Notes) -> Reason | None:
    if stage in ("data-only", "fixed-batch") and notes.loader is None:
        return Reason("no-loader")
    run = plain.report.run if plain.report is not None else None
    if stage == "no-backward" and (run is None or run.torch is None):
        return Reason("no-torch")
    return None


def _run(plan: Plan, stage: str, steps: int, loader: int | None = None) -> tuple[StageRun, Notes]:
    folder = plan.folder / stage
    folder.mkdir()
    order = StageOrder(stage, str(folder), steps, plan.tolerance, plan.args, plan.module, loader)
    command = [sys.executable, "-c", CHILD, msgspec.json.encode(order).decode()]
    status = ended(command, plan.log(stage), plan.timeout_s, cwd=plan.cwd)
    notes, report = _read_back(folder)
    if notes.ended == "usage":
        raise UsageError(notes.error)
    run = _judge(stage, report, notes)
    if status is None and run.verdict != "growing":
        return StageRun(stage, "unclear", cut_short(status, plan.timeout_s), report), notes
    if status is not None and not notes.ended:
        why = cut_short(status, plan.timeout_s)
        return StageRun(stage, "unclear", why, report, failed=status < 0), notes
    return run, notes


def ended(
    command: list[str],
    log: Path,
    timeout_s: float,
    errors: Path | None = None,
    cwd: Path | None = None,
) -> int | None:
    """Run to the end; the exit status, None when the time was over.

    Standard error goes to the log too, or to a file of its own. In the folder `cwd`, a worktree,
    the program's own packages come before those that are installed.
    """
    with log.open("wb") as output, (errors or Path(os.devnull)).open("wb") as own:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=own if errors else subprocess.STDOUT,
            start_new_session=True,
            cwd=cwd,
            env=None if cwd is None else environment_of(cwd),
        )
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.returncode is None:
                _end(process)


def environment_of(cwd: Path) -> dict[str, str]:
    """Return the environment of a program in a worktree: its own packages come first there."""
    top = next((each for each in (cwd, *cwd.parents) if (each / ".git").exists()), cwd)
    own = (str(each) for each in (cwd, top, top / "src") if each.is_dir())
    known = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (*own, known)))}


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LAST_WORDS_S)
    finally:
        _kill_group(process.pid)
        process.wait()


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)  # its worker processes too


def _read_back(folder: Path) -> tuple[Notes, Report | None]:
    try:
        notes = msgspec.json.decode((folder / "notes.json").read_bytes(), type=Notes)
    except (OSError, msgspec.MsgspecError):
        notes = Notes()
    try:
        return notes, read_recordings(folder)[0].report
    except RecordingError:
        return notes, None


def cut_short(status: int | None, timeout_s: float) -> Reason:
    """Return how a program ended that wrote no notes; no status when its time was over."""
    if status is None:
        return Reason.of("timed-out", timeout_s=timeout_s)
    if status < 0:
        return Reason.of("killed", signal=signal.Signals(-status).name)
    return Reason.of("left-early", status=status)


def _judge(stage: str, report: Report | None, notes: Notes) -> StageRun:
    """Say what a stage showed, before it is compared with the unchanged run."""
    if stage in NOTHING_CHANGED and notes.ended and not notes.changed and not notes.failed:
        return StageRun(stage, NOT_APPLICABLE, NOTHING_CHANGED[stage], report)
    if report is None or report.verdict is None:
        return StageRun(stage, "unclear", Reason("no-report"), report)
    if notes.failed and report.verdict != "growing":
        code = "program-failed" if stage == AS_IT_IS else "fails-changed"
        why = notes.error or Reason.of("left-with", status=notes.status)
        return StageRun(stage, "unclear", Reason.of(code, why=why), report, failed=True)
    if report.run is not None and not report.run.steps and stage in STAGES and notes.changed:
        return StageRun(stage, "unclear", Reason("no-steps-changed"), report)
    return StageRun(stage, report.verdict, report.reason, report)
