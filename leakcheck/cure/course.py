"""The course of a cure: run, propose, try, compare, choose; what runs and reads is handed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from leakcheck.cure.candidates import Candidate, proposals
from leakcheck.cure.proof import best, compared, outcome
from leakcheck.cure.sites import Site, read
from leakcheck.experiments import Attempt, Cure, Difference, OpenChoice, Revision, Trial
from leakcheck.model import Suspect

MOST_LEAKS = 5
ENOUGH_PROVED = 2  # with the same results: the better one of them is chosen
Texts = Mapping[str, str]
Run = Callable[[Texts, "int | None"], Trial]


@dataclass(slots=True)
class Course:
    """Looks for the edits that cure one program.

    `run` runs it with texts in place of its files, up to a step; `text_of` reads a file of the
    user's, None for one that is not; `size` is what the owner chose.
    """

    run: Run
    text_of: Callable[[str], str | None]
    tries: int
    size: int | None = None
    stops_at: Callable[[Trial], int] = lambda trial: trial.steps
    _originals: dict[str, str] = field(default_factory=dict)
    _attempts: list[Attempt] = field(default_factory=list)
    _choices: dict[str, OpenChoice] = field(default_factory=dict)
    _again: Trial | None = None

    def follow(self, command: str) -> Cure:
        """Run the program as it is, then with edits, one leak after another."""
        before = self.run({}, None)
        state, given_up = before, set[str]()
        chosen: Attempt | None = None
        for _ in range(MOST_LEAKS):
            suspect = _first(state, given_up)
            if suspect is None:
                break
            revisions = chosen.revisions if chosen else ()
            texts = {each.path: each.after for each in revisions}
            found = best([*self._tried(suspect, before, texts)])
            if found is None:
                given_up.add(suspect.fingerprint)
                continue
            state, chosen = found.trial, found
        return Cure(command, before, tuple(self._attempts), chosen, tuple(self._choices.values()))

    def _tried(self, suspect: Suspect, before: Trial, texts: Texts) -> Iterator[Attempt]:
        proved = 0
        for candidate, changed in self._proposed(suspect, texts):
            attempt = self._try(candidate, changed, suspect, before)
            self._attempts.append(attempt)
            yield attempt
            same = attempt.outcome in ("proved", "helps") and not attempt.differences
            proved += same
            if proved == ENOUGH_PROVED:
                return

    def _proposed(self, suspect: Suspect, texts: Texts) -> list[tuple[Candidate, Texts]]:
        """Return the changes to try, each once, the table's first rows first."""
        found: dict[str, tuple[Candidate, Texts]] = {}
        for place in suspect.locations:
            text = self._text(place.path, texts)
            source = read(text) if text is not None else None
            if source is None:
                continue
            for candidate, after in proposals(Site(source, place.line, suspect), self.size):
                changed = {**texts, place.path: after}
                if candidate.choice and self.size is None:
                    made = self._revisions(changed)
                    self._choices[after] = OpenChoice(candidate.title, candidate.choice, made)
                else:
                    found.setdefault(after, (candidate, changed))
        return [*found.values()][: self.tries]

    def _text(self, path: str, texts: Texts) -> str | None:
        if path not in self._originals:
            text = self.text_of(path)
            if text is None:
                return None
            self._originals[path] = text
        return texts.get(path, self._originals[path])

    def _revisions(self, texts: Texts) -> tuple[Revision, ...]:
        return tuple(Revision(path, self._originals[path], texts[path]) for path in sorted(texts))

    def _try(self, candidate: Candidate, texts: Texts, suspect: Suspect, before: Trial) -> Attempt:
        after = self.run(texts, self.stops_at(before))
        found = compared(before.results, after.results)
        told, reason = outcome(before, after, suspect, found)
        if told == "changes" and (unsteady := self._unsteady(before)):
            left = tuple(each for each in found if each.what not in unsteady)
            told, _ = outcome(before, after, suspect, left)
            if told in ("proved", "helps"):
                told, reason = "unclear", f"{', '.join(sorted(unsteady))}: differs without the edit"
        made = self._revisions(texts)
        return Attempt(candidate.name, candidate.title, made, after, told, found, reason)

    def _unsteady(self, before: Trial) -> set[str]:
        """Return which results differ between two runs of the program as it is."""
        if self._again is None:
            self._again = self.run({}, self.stops_at(before))
        found: tuple[Difference, ...] = compared(before.results, self._again.results)
        return {each.what for each in found}


def _first(trial: Trial, given_up: set[str]) -> Suspect | None:
    suspects = trial.report.suspects if trial.report and trial.report.verdict == "growing" else ()
    return next((each for each in suspects if each.fingerprint not in given_up), None)
