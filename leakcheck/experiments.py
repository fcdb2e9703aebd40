"""What runs of one program show that differ in one thing: a part is left out, or an edit made."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from leakcheck.errors import EXIT_CLEAN, EXIT_FOUND, EXIT_UNCLEAR
from leakcheck.model import Edit, Reason, Report, Suspect, Trend, Verdict

ONLY_REPORTED = ("host.rss",)  # what decides between runs is counted exactly


@dataclass(frozen=True, slots=True)
class StageRun:
    """One run of `isolate`, changed as `stage` says; `reason` tells why it shows nothing.

    `failed`: the program did, or was ended.
    """

    stage: str
    verdict: Verdict | Literal["does not apply"]
    reason: Reason | None = None
    report: Report | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Isolation:
    """The runs of `isolate`, the first one unchanged, and what they say together."""

    command: str
    stages: tuple[StageRun, ...]
    conclusion: Reason


@dataclass(frozen=True, slots=True)
class Results:
    """What a program made in one run: its output, its losses, what it learned, and its files.

    A loss is a hash of its bytes with its value, for each call of backward and for each gradient
    that torch.autograd.grad returns; a weight is a hash of each parameter that an optimizer steps,
    with some of its values.
    `modules` has a hash of each parameter and buffer of all modules that are alive, `gradients` of
    each gradient that has accumulated by the end, `files` the path of each file that was written
    with a hash. `stdout` and `stderr` are the text, which a user reads.
    """

    stdout: str = ""
    stderr: str = ""
    losses: tuple[tuple[int, float], ...] = ()
    weights: tuple[tuple[int, tuple[float, ...]], ...] = ()
    modules: tuple[int, ...] = ()
    gradients: tuple[int, ...] = ()
    files: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """What is not bit-identical between two runs.

    `written`: a value is only written otherwise; `sizes`: only what tells how much is kept differs;
    `varies`: only numbers differ that do so between two runs of the program as it is; `most`: by
    how much numbers differ that are known in both runs.
    """

    what: Literal["stdout", "stderr", "losses", "weights", "modules", "gradients", "files"]
    at: int
    before: str
    after: str
    count: int = 1
    written: bool = False
    sizes: bool = False
    varies: bool = False
    most: float = 0.0

    @property
    def is_result(self) -> bool:
        """Whether the program's results differ by it."""
        return not (self.written or self.sizes or self.varies)


class SourceSpan(NamedTuple):
    """A part of a file; columns count bytes of UTF-8 from 0, as `ast` counts them."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Trial:
    """One watched run of a program, as it is or with edited text; `failure` says why it failed.

    `goes_on`: it was ended, as all that grows without the edit grew as fast with it; `turns`: of
    the loop that makes the steps, also those before it was recognised, 0 if an optimizer does;
    `counted`: the steps, also those before the loop that is judged began; `unreached`: of what was
    asked for, statements and parts of them that are not always run; `loaded`: the program's files.
    """

    report: Report | None
    results: Results = Results()
    status: int = 0
    failure: Reason | None = None
    peak_bytes: int = 0
    step_s: float = 0.0
    goes_on: bool = False
    turns: int = 0
    counted: int = 0
    unreached: frozenset[SourceSpan] = frozenset()
    loaded: tuple[str, ...] = ()

    @property
    def steps(self) -> int:
        """How many steps the run made."""
        return self.report.run.steps if self.report and self.report.run else 0


@dataclass(frozen=True, slots=True)
class Revision:
    """The text of one file before and after an edit."""

    path: str
    before: str
    after: str

    @property
    def sha256(self) -> str:
        """The digest of the text before, by which it is known again."""
        return text_digest(self.before)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edit as whole lines that are put in the place of others."""
        before, after = _lines(self.before), _lines(self.after)
        starts = [*((line, 1) for line in range(1, len(before) + 1)), _end_of(before)]
        matched = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        return tuple(
            Edit(*starts[old], *starts[old_end], _joined(after[new:new_end]))
            for kind, old, old_end, new, new_end in matched
            if kind != "equal"
        )


def text_digest(text: str) -> str:
    """Return what names a text in a record of what was proved."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _lines(text: str) -> list[str]:
    return [line for line in re.split("(?<=\n)", text) if line]


def _end_of(lines: list[str]) -> tuple[int, int]:
    whole = not lines or lines[-1].endswith("\n")
    return (len(lines) + 1, 1) if whole else (len(lines), len(lines[-1]) + 1)


def _joined(lines: list[str]) -> str:
    return "".join(lines).replace("\r\n", "\n")  # an edit is written with the file's line ends


AttemptOutcome = Literal[
    "proved",  # no leak is left, and the results are the same
    "helps",  # this leak is gone; others are left, or something that nobody can judge
    "changes",  # the leak is gone, and the results differ
    "stays",
    "fails",
    "unclear",
]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One edit that was tried: the whole change it makes, what it showed, and what differs.

    `base` is the run as it is that it was compared with: not the first one where a clock ended it.
    `leak` is what it is to end, `policy` what it decides that is the owner's to decide.
    """

    candidate: str
    title: str
    revisions: tuple[Revision, ...]
    trial: Trial
    base: Trial
    outcome: AttemptOutcome
    differences: tuple[Difference, ...] = ()
    reason: Reason | None = None
    leak: Suspect | None = None
    policy: str = ""


@dataclass(frozen=True, slots=True)
class OpenChoice:
    """An edit that only the owner can complete: what there is to choose, `...` in the text."""

    title: str
    asks: str
    revisions: tuple[Revision, ...]


@dataclass(frozen=True, slots=True)
class Cure:
    """What `fix` found: the program as it is, every edit tried, the one chosen, and choices.

    `alone`: of several leaks, the edit of each without those of the others.
    """

    command: str
    before: Trial
    attempts: tuple[Attempt, ...] = ()
    chosen: Attempt | None = None
    choices: tuple[OpenChoice, ...] = ()
    alone: tuple[Attempt, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 when an edit is proved or nothing leaks, 1 when the leak stays, 2 if none can tell."""
        report = self.before.report
        verdict = report.verdict if report else None
        failed = report is not None and report.run is not None and report.run.ended == "failed"
        if (verdict == "steady" and not failed) or (
            self.chosen and self.chosen.outcome == "proved"
        ):
            return EXIT_CLEAN
        untold = verdict != "growing" or any(each.outcome == "unclear" for each in self.attempts)
        if self.chosen:
            untold = self.chosen.reason is not None
        return EXIT_UNCLEAR if untold else EXIT_FOUND


@dataclass(frozen=True, slots=True)
class Leak:
    """One leak of a run as it is compared: its id, the same in every run, and what it is."""

    id: str
    told: str


@dataclass(frozen=True, slots=True)
class Observation:
    """What one run showed, as far as it is compared; `finished`: it came to its own end."""

    verdict: Verdict
    reason: Reason | None = None
    steps: int = 0
    trends: tuple[Trend, ...] = ()
    leaks: tuple[Leak, ...] = ()
    finished: bool = False


ChangeOutcome = Literal[
    "starts",  # it grows after the change alone
    "ends",  # before the change alone
    "rises",
    "falls",
    "same",
    "unclear",  # one run grows and another of the same program does not
    "reported",  # resident memory, which decides nothing
]


@dataclass(frozen=True, slots=True)
class Change:
    """The rate of one resource a step before and after, and the interval of the difference.

    `grows`: before or after, in some run; the rate of what does not is noise.
    """

    resource: str
    unit: str
    before: float
    after: float
    low: float
    high: float
    outcome: ChangeOutcome
    grows: bool


Compared = Literal["cures", "starts", "worsens", "lessens", "another", "same", "steady", "unclear"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs before and after a change, what moved, which leaks are gone or new, and the outcome."""

    names: tuple[str, str]
    before: tuple[Observation, ...]
    after: tuple[Observation, ...]
    changes: tuple[Change, ...]
    gone: tuple[Leak, ...]
    new: tuple[Leak, ...]
    outcome: Compared
    reason: Reason | None = None

    @property
    def exit_code(self) -> int:
        """0 when no leak is new or worse, 1 when one is, 2 when it could not be told."""
        if self.outcome == "unclear":
            return EXIT_UNCLEAR
        return EXIT_FOUND if self.outcome in ("starts", "worsens", "another") else EXIT_CLEAN
