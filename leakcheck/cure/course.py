"""The course of a cure: run, propose, try, compare, choose; what runs and reads is handed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from leakcheck.cure.candidates import Candidate, proposals
from leakcheck.cure.proof import best, compared, outcome, stays
from leakcheck.cure.sites import LeakSite, read
from leakcheck.experiments import Attempt, Cure, Difference, OpenChoice, Revision, Trial
from leakcheck.model import Suspect

MOST_LEAKS = 5
ENOUGH_PROVED = 2  # with the same results: the better one of them is chosen
ENOUGH_RUNS = 2  # as many steps as so many whole runs make, and one is proved
SHORTER = 0.5  # of a run that a clock ends: a slower one makes that many steps, too
Texts = Mapping[str, str]
Run = Callable[[Texts, "int | None", str], Trial]


@dataclass(slots=True)
class CureSearch:
    """Looks for the edits that cure one program.

    `run` runs it with texts in place of its files, up to a step, to end the leak with this id;
    `text_of` reads a file of the user's, None for one that is not; `size` is what the owner chose.
    """

    run: Run
    text_of: Callable[[str], str | None]
    tries: int
    size: int | None = None
    stops_at: Callable[[Trial], int] = lambda trial: trial.steps
    _originals: dict[str, str] = field(default_factory=dict)
    _attempts: list[Attempt] = field(default_factory=list)
    _choices: dict[str, OpenChoice] = field(default_factory=dict)
    _base: Trial = field(init=False)  # the run as it is that edited ones are compared with
    _stop_at: int = 0
    _again: Trial | None = None

    def follow(self, command: str) -> Cure:
        """Run the program as it is, then with edits, one leak after another."""
        before = self.run({}, None, "")
        self._base, self._stop_at = before, self.stops_at(before)
        state, given_up = before, set[str]()
        chosen: Attempt | None = None
        for _ in range(MOST_LEAKS):
            suspect = _first(state, given_up)
            if suspect is None:
                break
            revisions = chosen.revisions if chosen else ()
            texts = {each.path: each.after for each in revisions}
            found = best([*self._tried(suspect, texts)])
            if found is None:
                given_up.add(suspect.fingerprint)
                continue
            state, chosen = found.trial, found
        return Cure(command, before, tuple(self._attempts), chosen, tuple(self._choices.values()))

    def _tried(self, suspect: Suspect, texts: Texts) -> Iterator[Attempt]:
        proved = steps = 0
        for candidate, changed in self._proposed(suspect, texts):
            attempt = self._try(candidate, changed, suspect)
            self._attempts.append(attempt)
            yield attempt
            proved += attempt.outcome in ("proved", "helps") and not attempt.differences
            steps += attempt.trial.steps
            if proved == ENOUGH_PROVED or (proved and steps >= ENOUGH_RUNS * self._base.steps):
                return

    def _proposed(self, suspect: Suspect, texts: Texts) -> list[tuple[Candidate, Texts]]:
        """Return the changes to try, each once, the table's first rows first, at every place."""
        found: dict[str, tuple[Candidate, Texts]] = {}
        rows: dict[str, int] = {}
        for place in suspect.locations:
            text = self._text(place.path, texts)
            source = read(text) if text is not None else None
            if source is None:
                continue
            for row, candidate, after in proposals(
                LeakSite(source, place.line, suspect), self.size
            ):
                changed = {**texts, place.path: after}
                if candidate.to_end and not self._came_to_its_end:
                    continue
                if candidate.choice and self.size is None:
                    made = self._revisions(changed)
                    self._choices[after] = OpenChoice(candidate.title, candidate.choice, made)
                else:
                    found.setdefault(after, (candidate, changed))
                    rows.setdefault(after, row)
        return [found[after] for after in sorted(found, key=rows.__getitem__)][: self.tries]

    @property
    def _came_to_its_end(self) -> bool:
        run = self._base.report.run if self._base.report else None
        return run is not None and run.ended == "finished"

    def _text(self, path: str, texts: Texts) -> str | None:
        if path not in self._originals:
            text = self.text_of(path)
            if text is None:
                return None
            self._originals[path] = text
        return texts.get(path, self._originals[path])

    def _revisions(self, texts: Texts) -> tuple[Revision, ...]:
        return tuple(Revision(path, self._originals[path], texts[path]) for path in sorted(texts))

    def _try(self, candidate: Candidate, texts: Texts, suspect: Suspect) -> Attempt:
        after = self.run(texts, self._stop_at, suspect.fingerprint)
        if self._is_ended_by_clock(after, suspect):
            self._stop_earlier(after)
            after = self.run(texts, self._stop_at, suspect.fingerprint)
        base = self._base
        found = compared(base.results, after.results)
        told, reason = outcome(base, after, suspect, found)
        if told == "changes" and (unsteady := self._unsteady()):
            left = tuple(each for each in found if each.what not in unsteady)
            told, _ = outcome(base, after, suspect, left)
            if told in ("proved", "helps"):
                told, reason = "unclear", f"{', '.join(sorted(unsteady))}: differs without the edit"
        made = self._revisions(texts)
        return Attempt(candidate.name, candidate.title, made, after, base, told, found, reason)

    def _is_ended_by_clock(self, after: Trial, suspect: Suspect) -> bool:
        """Whether the steps differ in number, and do so without the edit too."""
        if after.report is None or after.status or after.steps == self._base.steps:
            return False
        if stays(after.report, suspect) or self._base.steps == self._stop_at:
            return False
        return self._run_again().steps != self._base.steps

    def _stop_earlier(self, after: Trial) -> None:
        """Compare, from now on, what is made up to a step that every run comes to."""
        fewest = min(each.steps for each in (self._base, after, self._run_again()))
        self._stop_at = max(1, round(SHORTER * fewest))
        self._base, self._again = self.run({}, self._stop_at, ""), None

    def _unsteady(self) -> set[str]:
        """Return which results differ between two runs of the program as it is."""
        found: tuple[Difference, ...] = compared(self._base.results, self._run_again().results)
        return {each.what for each in found}

    def _run_again(self) -> Trial:
        if self._again is None:
            self._again = self.run({}, self._stop_at, "")
        return self._again


def _first(trial: Trial, given_up: set[str]) -> Suspect | None:
    suspects = trial.report.suspects if trial.report and trial.report.verdict == "growing" else ()
    return next((each for each in suspects if each.fingerprint not in given_up), None)
