"""One `leakcheck run`: sentinel, clock and program put together; and the exit status."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import monotonic, sleep

from leakcheck.cli import die_of_ctrl_c
from leakcheck.cli.graphviz import IN_DOT, drawn
from leakcheck.cli.sigterm import report_at_sigterm
from leakcheck.cli.stderr import FirstStderr
from leakcheck.errors import (
    EXIT_BISECT_SKIP,
    EXIT_CLEAN,
    EXIT_FOUND,
    EXIT_UNCLEAR,
    UsageError,
    WriteError,
)
from leakcheck.model import Ended, Notice, Reason, Report
from leakcheck.proof import proved
from leakcheck.runtime import requests
from leakcheck.runtime.children.left import (
    are_waited_for,
    queues_are_waited_for,
    read_left,
    still_run,
)
from leakcheck.runtime.children.reach import Reach
from leakcheck.runtime.children.watch import ChildOrder
from leakcheck.runtime.clock.seconds import TimeClock
from leakcheck.runtime.clock.steps import StepClock
from leakcheck.runtime.conclusion import Ending, summary
from leakcheck.runtime.guard import in_main_thread
from leakcheck.runtime.introspection.frames import own_codes_elsewhere
from leakcheck.runtime.judgement.tolerance import DEFAULT_PER_HOUR_BYTES, DEFAULT_TOTAL_BYTES
from leakcheck.runtime.live import LiveLine
from leakcheck.runtime.merge import with_children
from leakcheck.runtime.readings.limits import Limits
from leakcheck.runtime.recording import Recorder
from leakcheck.runtime.script import (
    Program,
    ProgramEnd,
    before_os_exit,
    end_as_python_does,
    run_program,
    show,
    stop_run,
    would_be_caught,
)
from leakcheck.runtime.sentinel import Sentinel
from leakcheck.writing import replace_file

RECORDED = "leakcheck: recorded; `leakcheck report {folder}` tells which ranks grow"
MOST_STOPS = 3  # a program that swallows SystemExit unforeseen is left alone after that
SERVES_ON = "leakcheck: growing: {told}; the server goes on, the report comes at its end"
CHILDREN_END_S = 10.0  # for children that got the same Ctrl-C to end


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The options of `leakcheck run`."""

    steps: int
    tolerance: int
    tolerance_hourly: int = DEFAULT_PER_HOUR_BYTES
    tolerance_total: int = DEFAULT_TOTAL_BYTES
    to_end: bool = False
    host_limit: int | None = None
    device_limit: int | None = None
    every_seconds: float | None = None
    json_path: Path | None = None
    html_path: Path | None = None
    refs_path: Path | None = None
    record_folder: Path | None = None
    exit_zero: bool = False
    bisect: bool = False


class Session:
    """Runs one program under one sentinel, and each child process that trains under another."""

    watches_children = True

    def __init__(self, program: Program, settings: RunSettings) -> None:
        self.program = program
        self.settings = settings
        self.command = shlex.join(program.argv)
        self.world_size = int(os.environ.get("WORLD_SIZE") or 1)
        self.report: Report | None = None
        self._stderr = FirstStderr()
        self._recorder = self._make_recorder()
        self._json_path = writable("--json", self._of_rank(settings.json_path))
        self._html_path = writable("--html", self._of_rank(settings.html_path))
        self._refs_path = writable("--refs", self._of_rank(settings.refs_path))
        self._sentinel = Sentinel(
            steps=settings.steps,
            tolerance_bytes=settings.tolerance,
            tolerance_per_hour_bytes=settings.tolerance_hourly,
            tolerance_total_bytes=settings.tolerance_total,
            limits=Limits(settings.host_limit, settings.device_limit),
            recorder=self._recorder,
        )
        self._clock = StepClock(self._sentinel, self._after_step, self._sentinel.guard)
        self._live = LiveLine(sys.stderr)
        self._stops = 0
        self._reach: Reach | None = None
        self._own_folder = Path()  # of the recordings of children, if there is no other
        self._told = False  # that it leaks, while it goes on
        self._unwritten = False
        self._pid = os.getpid()

    @property
    def alone(self) -> bool:
        """True unless other ranks run beside this one: stopping one would hang the others."""
        return self.world_size == 1

    def run(self) -> int:
        """Run the program to its end, or to the verdict; report; return the exit status."""
        self._sentinel.start()
        clock = self._clock
        timer = self._start_clock(clock)
        os.register_at_fork(after_in_child=clock.stop)
        os.register_at_fork(after_in_child=self._sentinel.leave)
        self._reach_children()
        os.register_at_fork(after_in_child=self._stderr.forget)
        before_os_exit(lambda status: self._finish(ProgramEnd(status, "exit")))
        report_at_sigterm(lambda: self._finish(ProgramEnd(128 + signal.SIGTERM, "terminated")))
        outcome = run_program(self.program)
        if timer is not None:
            timer.stop()
        clock.stop()
        requests.stop_listening()
        self._wait_for_children(outcome)
        status = self._finish(outcome)
        if outcome.interrupt is not None:
            show(outcome.interrupt)
            die_of_ctrl_c()
        return status

    def _of_rank(self, path: Path | None) -> Path | None:
        """Name this rank in the file it writes, or the ranks would overwrite each other's."""
        if path is None or self.alone:
            return path
        return path.with_name(f"{path.stem}-rank-{_rank():05d}{path.suffix}")

    def _start_clock(self, clock: StepClock) -> TimeClock | None:
        if self.settings.every_seconds is not None:
            return TimeClock(self._sentinel, self.settings.every_seconds)
        clock.listen()
        self._requests = requests.Requests(self._sentinel, self._after_request, clock.stop)
        requests.listen(self._requests)
        return None

    def _reach_children(self) -> None:
        """Watch the training in child processes, which record it in a folder that is private."""
        if not self.watches_children or self.settings.every_seconds is not None:
            return
        settings = self.settings
        with suppress(OSError):  # nowhere to leave anything: they are not watched
            if self._recorder is None:
                self._own_folder = Path(tempfile.mkdtemp(prefix="leakcheck-"))
            order = ChildOrder(
                recordings=str(self._records.absolute()),
                command=self.command,
                program="" if self.program.spec is not None else str(self.program.path),
                own=str(self.program.folder),
                rank=_rank(),
                steps=settings.steps,
                tolerance_bytes=settings.tolerance,
                tolerance_per_hour_bytes=settings.tolerance_hourly,
                tolerance_total_bytes=settings.tolerance_total,
            )
            self._reach = Reach(order)
            self._reach.install()

    def _wait_for_children(self, outcome: ProgramEnd) -> None:
        """Have children that run on end as they do without us: joined, or terminated, at exit.

        Python does that after the program's last line, in what it calls at exit; where a child is
        to report, that is done before our report. Those that got the program's Ctrl-C, too, are
        waited for: they are ending.
        """
        if self._reach is None or os.getpid() != self._pid:
            return
        if not (self._children_run() or are_waited_for()):
            return
        if outcome.ended == "interrupted":
            until_s = monotonic() + CHILDREN_END_S
            while self._children_run() and monotonic() < until_s:
                sleep(0.05)
        elif outcome.ended != "stopped":
            end_as_python_does()

    def _children_run(self) -> bool:
        return still_run(self._records, _rank())

    @property
    def _records(self) -> Path:
        return self._recorder.path.parent if self._recorder else self._own_folder

    def _forget_children(self) -> None:
        if self._own_folder != Path():
            shutil.rmtree(self._own_folder, ignore_errors=True)

    def _after_step(self) -> None:
        if self._live.on:
            self._live.show(self._sentinel)
        certain = self._sentinel.certain and not self.settings.to_end
        if certain and not self._sentinel.certain_to_grow:
            certain = not self._clock.awaits_training()
        if not (certain or self._sentinel.hit_limit) or not self.alone:
            return
        in_thread = not in_main_thread()
        if (in_thread or others_run()) and not self._sentinel.hit_limit:
            return  # who waits for the thread would go on with half of its work, or it for ever
        children = self._reach is not None and (self._children_run() or are_waited_for())
        if children and not self._sentinel.hit_limit:
            return  # they train, or wait for the program, and Python at its end for them
        if not self._sentinel.hit_limit and self._is_caught:
            return
        if os.getpid() == self._pid and self._stops < MOST_STOPS:
            self._stops += 1
            if in_thread:
                raise SystemExit(0)  # of its kinds a thread takes this one alone without a word
            stop_run()

    @cached_property
    def _is_caught(self) -> bool:
        return would_be_caught()

    def _after_request(self) -> None:
        """Tell a leak as soon as it is certain: a server is not stopped, its clients wait."""
        if self._live.on:
            self._live.show(self._sentinel)
        growing = self._sentinel.state[1] == "growing" and self._requests.is_sure
        if growing and not self._told and os.getpid() == self._pid:
            self._told = True
            self._stderr.tell(SERVES_ON.format(told=summary(self._sentinel.report())))

    def _finish(self, outcome: ProgramEnd) -> int:
        if self.report is not None or os.getpid() != self._pid:
            return outcome.status
        self._live.clear()
        stopped_by = self._stopped_by(outcome)
        ending = Ending(self.command, stopped_by, outcome.status, _ended(outcome))
        self._sentinel.stop(
            cut_short=outcome.ended in ("interrupted", "terminated", "error"),
            exhausted=outcome.ended == "out of memory",
        )
        report = self._joined(self._sentinel.report(ending))
        report = self._with_children(self._recorded(report))
        self.report = report
        self._forget_children()
        self._write_files(report)
        if self.alone:
            self._print(report)
        elif self._recorder is not None:
            self._tell_of_rank(self._recorder)
        return self._status(report, outcome)

    def _with_children(self, report: Report) -> Report:
        """Join what child processes have recorded; of ranks, `leakcheck report` does so."""
        left = read_left(self._records, _rank()) if self._reach and self.alone else ()
        if not left:
            return report
        report = with_children(replace(report, samples=self._sentinel.samples()), left)
        return proved(report) if report.verdict == "growing" else report

    def _recorded(self, report: Report) -> Report:
        """Close the recording; one that could not be written costs a note, not the verdict."""
        if self._recorder is None:
            return report
        self._recorder.finish(report)
        if self._recorder.failed is None:
            return report
        return replace(report, notices=(*report.notices, Notice("note", self._recorder.failed)))

    def _tell_of_rank(self, recorder: Recorder) -> None:
        if recorder.failed is not None:
            from leakcheck.report.reasons import said

            self._stderr.tell(f"leakcheck: rank {_rank()}: {said(recorder.failed)}")
        elif _rank() == 0:
            self._stderr.tell(RECORDED.format(folder=recorder.path.parent))

    def _write_files(self, report: Report) -> None:
        from leakcheck.report import render

        if self._json_path is not None:
            self._write(self._json_path, render(report, "json"))
        if self._html_path is not None:
            samples = report.samples or self._sentinel.samples()
            charted = replace(report, samples=samples)
            self._write(self._html_path, render(charted, "html"))
        if self._refs_path is not None:
            self._draw_refs(self._refs_path, render(report, "dot"))

    def _draw_refs(self, path: Path, dot: str) -> None:
        """Draw by Graphviz; where it cannot the graph itself is written, beside."""
        if path.suffix in IN_DOT:
            self._write(path, dot)
            return
        try:
            picture = drawn(dot, path.suffix.lstrip("."))
        except OSError as error:
            beside = path.with_name(f"{path.name}.dot")
            self._stderr.tell(f"leakcheck: {path}: {error}; the graph is in {beside}")
            self._write(beside, dot)
        else:
            self._write(path, picture)

    def _write(self, path: Path, text: str | bytes) -> None:
        """Write a file; one that fails costs a line and the status, not the report."""
        try:
            replace_file(path, f"{text}\n" if isinstance(text, str) else text)
        except WriteError as error:
            self._unwritten = True
            self._stderr.tell(f"leakcheck: {error}")

    def _joined(self, report: Report) -> Report:
        if report.reason is not None and report.reason.code == "no-steps":
            code = "steps-in-children" if _children_did_the_work() else "no-steps-in"
            return replace(report, reason=Reason.of(code, program=self.program.path.name))
        return proved(report) if report.verdict == "growing" else report

    def _print(self, report: Report) -> None:
        from leakcheck.report.reasons import said
        from leakcheck.report.terminal import failure_text, render

        failed = report.reason is not None and report.reason.code == "stopped-watching"
        if report.run is not None and report.run.steps == 0 and not failed:
            self._stderr.tell(f"leakcheck: {failure_text(report.run) or said(report.reason)}")
        else:
            self._stderr.tell(render(report, color=self._stderr.on_terminal))

    def _stopped_by(self, outcome: ProgramEnd) -> str:
        if outcome.ended == "stopped":
            return self._sentinel.hit_limit or "the verdict is certain"
        told = {
            "interrupted": "Ctrl-C",
            "error": "an error",
            "out of memory": "running out of memory",
            "terminated": "SIGTERM",
        }
        return told.get(outcome.ended, "")

    def _status(self, report: Report, outcome: ProgramEnd) -> int:
        if self.settings.bisect and outcome.ended != "interrupted":  # Ctrl-C ends the bisection
            known = {"growing": EXIT_FOUND, "steady": EXIT_CLEAN}
            verdict = known.get(report.verdict or "", EXIT_BISECT_SKIP)
            return EXIT_BISECT_SKIP if outcome.status and verdict != EXIT_FOUND else verdict
        if not self.alone or outcome.status:
            return outcome.status
        if self._unwritten:
            return EXIT_UNCLEAR
        if self.settings.exit_zero:
            return EXIT_CLEAN
        return (
            EXIT_UNCLEAR if self._sentinel.hit_limit and not report.exit_code else report.exit_code
        )

    def _make_recorder(self) -> Recorder | None:
        asked = self.settings.record_folder
        if asked is None and self.alone:
            return None
        name = os.environ.get("TORCHELASTIC_RUN_ID", "run")
        return Recorder.of_rank(
            asked or Path(f"leakcheck-{name}"),
            self.command,
            _rank(),
            self.world_size,
            self.settings.tolerance,
            required=asked is not None,
        )


def _ended(outcome: ProgramEnd) -> Ended:
    match outcome.ended:
        case "stopped" | "interrupted" | "terminated":
            return outcome.ended
    return "failed" if outcome.status else "finished"


def _children_did_the_work() -> bool:
    spent = os.times()
    return spent.children_user > spent.user


def _rank() -> int:
    return int(os.environ.get("RANK") or 0)


def others_run() -> bool:
    """Say whether threads run that the program must stop: Python waits for them at its end.

    Or they are in the program's own functions: one in torch as Python ends aborts the process. Or
    they feed a queue of multiprocessing's, for which it waits until a reader took what is in it.
    """
    executor = sys.modules.get("concurrent.futures.thread")
    stopped_by_python = getattr(executor, "_threads_queues", {})
    others = (each for each in threading.enumerate() if each is not threading.current_thread())
    waited_for = any(not each.daemon and each not in stopped_by_python for each in others)
    return waited_for or bool(own_codes_elsewhere()) or queues_are_waited_for()


def writable(option: str, path: Path | None) -> Path | None:
    """Check now that the file can be written: after the run it would be too late to say so."""
    if path is None:
        return None
    from leakcheck.static.files import SUFFIXES

    if path.suffix in SUFFIXES and path.exists():
        raise UsageError(f"{option} {path}: this would overwrite a program")
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent or Path()):
            return path.absolute()
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror}") from None
