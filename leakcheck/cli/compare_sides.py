"""The two sides of `leakcheck compare`: programs that are run, commits, recordings and reports."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import msgspec

from leakcheck.cli.isolate_stages import Plan, as_it_is
from leakcheck.comparison import compare, leak_of, observed
from leakcheck.errors import RecordingError, UsageError
from leakcheck.experiments import Comparison, Observation
from leakcheck.model import Reason, Trend, Verdict


@dataclass(frozen=True, slots=True)
class Side:
    """One side: a program to run, in a folder, or what a recording or a report showed."""

    name: str
    args: tuple[str, ...] = ()
    module: str | None = None
    cwd: Path | None = None
    seen: Observation | None = None


class _Link(msgspec.Struct, frozen=True):
    edge: str


class _Suspect(msgspec.Struct, frozen=True):
    kind: str
    what: str
    holder: str = ""
    root: str | None = None
    trace: tuple[_Link, ...] = ()


class _Run(msgspec.Struct, frozen=True):
    steps: int = 0


class _Reason(msgspec.Struct, frozen=True):
    said: str = ""


class _Report(msgspec.Struct, frozen=True):
    """The parts of a JSON report that are compared."""

    format: int
    verdict: Verdict | None = None
    reason: _Reason | None = None
    trends: tuple[Trend, ...] = ()
    suspects: tuple[_Suspect, ...] = ()
    run: _Run | None = None


def side_of(text: str, *, module: bool) -> Side:
    """Return what an argument names: a recording, a report or a program with its arguments."""
    path = Path(text)
    if path.is_dir() or path.suffix in (".jsonl", ".json"):
        return read(path)
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"{text}: {error}") from None
    if not words:
        raise UsageError("an empty name is no program, recording or report")
    return program(words, module=module)


def program(words: Sequence[str], *, module: bool, cwd: Path | None = None) -> Side:
    """Return a program to run; raises UsageError where there is none."""
    from leakcheck.runtime.script import find_script

    name = " ".join(("-m", *words) if module else words)
    if module:
        return Side(name, tuple(words[1:]), words[0], cwd)
    if cwd is None:
        find_script(words[0], tuple(words[1:]))
    return Side(name, tuple(words), None, cwd)


def read(path: Path) -> Side:
    """Return what a recording or a JSON report showed; raises RecordingError if it is neither."""
    from leakcheck.runtime.merge import merge
    from leakcheck.runtime.recording import read_recording, read_recordings

    if path.suffix == ".json":
        return Side(str(path), seen=_of_json(path))
    recordings = read_recordings(path) if path.is_dir() else (read_recording(path),)
    return Side(str(path), seen=observed(merge(recordings)))


def _of_json(path: Path) -> Observation:
    try:
        report = msgspec.json.decode(path.read_bytes(), type=_Report)
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise RecordingError(f"{path}: no report of `leakcheck run --json`: {error}") from error
    if report.verdict is None:
        raise RecordingError(f"{path}: the report of a check, not of a run: it has no verdict")
    leaks = (
        leak_of(one.kind, one.what, one.holder, one.root, [link.edge for link in one.trace])
        for one in report.suspects
    )
    steps = report.run.steps if report.run is not None else 0
    return Observation(
        report.verdict,
        Reason.of("told", said=report.reason.said) if report.reason else None,
        steps,
        report.trends,
        tuple(leaks),
    )


@contextmanager
def at_commits(
    commits: str, words: Sequence[str], folder: Path, *, module: bool
) -> Iterator[tuple[Side, Side]]:
    """Yield the program at two commits, in worktrees that are gone afterwards."""
    before, dots, after = commits.partition("..")
    if not dots or not before:
        raise UsageError(f"--commits {commits}: write it as A..B, two commits of this repository")
    prefix = _git("rev-parse", "--show-prefix")
    sides: list[Side] = []
    trees: list[Path] = []
    try:
        for commit in (before, after.lstrip(".") or "HEAD"):
            hash_ = _git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", of=commit)
            tree = folder / f"tree-{len(trees)}"
            _git("worktree", "add", "--detach", "--quiet", str(tree), hash_, of=commit)
            trees.append(tree)
            side = program(words, module=module, cwd=tree / prefix)
            if not module and not (tree / prefix / words[0]).is_file():
                raise UsageError(f"{words[0]}: no such file at {commit}")
            sides.append(Side(f"{commit} {side.name}", side.args, side.module, side.cwd))
        yield sides[0], sides[1]
    finally:
        for tree in trees:
            with suppress(UsageError):
                _git("worktree", "remove", "--force", str(tree))


def _git(*arguments: str, of: str = "") -> str:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"--commits needs git: {error.strerror}") from None
    if done.returncode:
        told = (done.stderr.strip().splitlines() or ["no such commit"])[-1]
        raise UsageError(f"--commits: {f'{of}: ' if of else ''}{told}")
    return done.stdout.strip()


@dataclass(slots=True)
class Runs:
    """Runs the programs of both sides by turns, each in a process and a folder of its own."""

    folder: Path
    steps: int
    tolerance: int
    timeout_s: float
    begin: Callable[[int, int, str], None]
    _count: int = field(default=0)

    def compare(self, sides: tuple[Side, Side], pairs: int) -> Comparison:
        """Run what is to be run, in pairs of which every second one begins with the other side."""
        wanted = pairs * sum(side.seen is None for side in sides)
        seen: tuple[list[Observation], list[Observation]] = ([], [])
        turns = chain.from_iterable((0, 1) if at % 2 == 0 else (1, 0) for at in range(pairs))
        for which in turns:
            side = sides[which]
            if side.seen is None:
                seen[which].append(self._run(side, wanted))
        for side, found in zip(sides, seen, strict=True):
            if side.seen is not None:
                found.append(side.seen)
        return compare((sides[0].name, sides[1].name), *seen)

    def _run(self, side: Side, count: int) -> Observation:
        self._count += 1
        self.begin(self._count, count, side.name)
        folder = self.folder / f"run-{self._count}"
        folder.mkdir()
        plan = Plan(
            side.args, side.module, (), self.steps, self.tolerance, self.timeout_s, folder, side.cwd
        )
        run = as_it_is(plan)
        return observed(run.report, run.reason if run.verdict == "unclear" else None)
