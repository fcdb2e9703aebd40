"""The course of a cure: run, propose, try, compare, choose; what runs and reads is handed in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import pairwise

from leakcheck.cure.candidates import Candidate, Lost, proposals
from leakcheck.cure.outcome import best, compared, growing, outcome, stays
from leakcheck.cure.reached import Lines
from leakcheck.cure.reads import added_at, added_to
from leakcheck.cure.sites import LeakSite, SourceTree, imported_files, read
from leakcheck.cure.sizes import names_of, without_sizes
from leakcheck.cure.unreached_reads import Taken, may_miss
from leakcheck.cure.varying import logged, renamed_alike, says_other, varying, without
from leakcheck.experiments import (
    Attempt,
    Cure,
    Difference,
    OpenChoice,
    Revision,
    SourceSpan,
    Trial,
)
from leakcheck.model import Reason, Report, Suspect
from leakcheck.runtime.readings.meters import is_of_device

MOST_LEAKS = 5
_OUTPUTS = ("stdout", "stderr")
ENOUGH_PROVED = 2  # with the same results: the better one of them is chosen
ENOUGH_RUNS = 2  # as many steps as so many whole runs make, and one is proved
PER_TURN = 3  # edits of one row, before those of the next: each of a pair, and both
SHORTER = 0.5  # of a run that a clock ends: a slower one makes that many steps, too
MOST_FILES = 64  # of the program's own, in which a line may miss something: each is parsed
Texts = Mapping[str, str]
RunTexts = Callable[[Texts, "int | None", str, bool, Lines], Trial]

_MISSED: Mapping[Lost, Callable[[Taken, Collection[SourceSpan]], Reason | None]] = {
    "": lambda taken, unreached: None,
    "graph": Taken.missed_graph,
    "again": Taken.missed_again,
    "number": Taken.missed_tensor,
    "value": Taken.missed_value,
    "all": Taken.missed_anywhere,
}


@dataclass(frozen=True, slots=True)
class _Proposal:
    """Texts to run, and their row of the table."""

    candidate: Candidate
    texts: Texts


@dataclass(slots=True)
class CureSearch:
    """Looks for the edits that cure one program.

    `run` runs it with texts in place of its files, up to a step, to end the leak with this id, at
    once or later, and notes which of some lines it comes to;
    `text_of` reads a file of the user's, None for one that is not; `size` is what the owner chose,
    `script` the path of the program's own file.
    """

    run: RunTexts
    text_of: Callable[[str], str | None]
    tries: int
    size: int | None = None
    script: str = ""
    stops_at: Callable[[Trial], int] = lambda trial: trial.counted
    _originals: dict[str, str] = field(default_factory=dict)
    _attempts: list[Attempt] = field(default_factory=list)
    _choices: dict[str, OpenChoice] = field(default_factory=dict)
    _base: Trial = field(init=False)  # the run as it is that edited ones are compared with
    _stop_at: int = 0
    _again: Trial | None = None
    _plain: dict[object, Trial] = field(default_factory=dict)

    def follow(self, command: str) -> Cure:
        """Run the program as it is, then with edits, one leak after another."""
        before = self.run({}, None, "", False, {})
        self._base, self._stop_at = before, self.stops_at(before)
        state, given_up = before, set[str]()
        ended: list[Attempt] = []  # one leak after another, each on top of those before
        for _ in range(MOST_LEAKS):
            suspect = _first(state, given_up)
            if suspect is None:
                break
            found = best([*self._tried(suspect, _texts(ended[-1]) if ended else {})])
            if found is None:
                given_up.add(suspect.fingerprint)
                continue
            state = found.trial
            ended.append(found)
        alone = (*ended[:1], *self._alone(ended, before.report)) if len(ended) > 1 else ()
        chosen, choices = ended[-1] if ended else None, tuple(self._choices.values())
        return Cure(command, before, tuple(self._attempts), chosen, choices, alone)

    def _alone(self, ended: Sequence[Attempt], report: Report | None) -> Iterator[Attempt]:
        """Try each edit but the first without those before it, at the lines of the first run."""
        suspects = {each.fingerprint: each for each in report.suspects} if report else {}
        for before, attempt in pairwise(ended):
            suspect = suspects.get(attempt.leak.fingerprint) if attempt.leak else None
            if suspect is None:
                continue
            wanted = _new_lines(_texts(before), _texts(attempt), self._originals)
            for each in self._proposed(suspect, {}):
                if each.candidate.name == attempt.candidate and (
                    wanted <= _new_lines({}, each.texts, self._originals)
                ):
                    yield self._try(each, suspect)
                    break

    def _tried(self, suspect: Suspect, texts: Texts) -> Iterator[Attempt]:
        proved = steps = 0
        for proposal in self._proposed(suspect, texts):
            attempt = self._try(proposal, suspect)
            self._attempts.append(attempt)
            yield attempt
            told = attempt.outcome in ("proved", "helps") and attempt.reason is None
            proved += told and not attempt.differences
            steps += attempt.trial.steps
            if proved == ENOUGH_PROVED or (proved and steps >= ENOUGH_RUNS * self._base.steps):
                return

    def _proposed(self, suspect: Suspect, texts: Texts) -> list[_Proposal]:
        """Return the changes to try, each once: a few of each row of the table, then more."""
        found: dict[str, tuple[int, int, _Proposal]] = {}
        made_by = Counter[int]()
        for path, site in self._sites(suspect, texts):
            for row, candidate, after in proposals(site, self.size):
                changed = {**texts, path: after}
                if after in found or not self._may_help(candidate):
                    continue
                if candidate.choice and (self.size is None or candidate.on_device):
                    made = self._revisions(changed)
                    self._choices[after] = OpenChoice(candidate.title, candidate.choice, made)
                else:
                    turn = made_by[row] // PER_TURN
                    made_by[row] += 1
                    found[after] = turn, row, _Proposal(candidate, changed)
        ranked = sorted(found.values(), key=lambda each: each[:2])
        return [proposal for *_, proposal in ranked][: self.tries]

    def _sites(self, suspect: Suspect, texts: Texts) -> Iterator[tuple[str, LeakSite]]:
        """Yield the places of a leak, then those that add to what holds it."""
        sources = {}
        for place in suspect.locations:
            text = self._text(place.path, texts)
            source = read(text) if text is not None else None
            if source is not None:
                sources[place.path] = source
                yield place.path, LeakSite(source, place.line, suspect)
        for path, source in sources.items():
            for line in added_at(source, suspect.holder.named):
                yield path, LeakSite(source, line, suspect)

    def _taken(self, proposal: _Proposal, suspect: Suspect) -> Taken | None:
        """Return what an edit takes, with the files of the program in which something may miss it.

        None for an edit that takes nothing.
        """
        if not proposal.candidate.loses:
            return None
        paths = sorted(self._paths(suspect) | {*self._base.loaded})
        texts = {path: self._text(path, proposal.texts) for path in paths}
        left = {path: text for path, text in texts.items() if text is not None}
        edited = {
            path: _changed_lines(self._originals[path], text)
            for path, text in proposal.texts.items()
        }
        holder, files = suspect.holder.named, dict[str, SourceTree]()
        names = {holder.name, holder.owner.rpartition(".")[2]} - {""}
        while True:
            more = [path for path in left if path in edited or may_miss(left[path], names)]
            room = MOST_FILES - len(files)
            found = {path: source for path in more[:room] if (source := read(left.pop(path)))}
            files |= found
            taken = Taken(dict(files), holder, edited)
            if not found:
                return taken
            names = taken.names()
            for path, source in found.items():  # an import in a branch may not have been run
                for other in imported_files(source, path):
                    text = None if other in texts else self._text(other, proposal.texts)
                    if text is not None:
                        texts[other] = left[other] = text

    @staticmethod
    def _missed(taken: Taken | None, lost: Lost, after: Trial) -> Reason | None:
        """Return what the edited program may still do with what an edit takes from it."""
        return _MISSED[lost](taken, after.unreached) if taken is not None else None

    def _may_help(self, candidate: Candidate) -> bool:
        """Say whether a row is of use, by how the run as it is ended and where memory grew."""
        if candidate.to_end and not self._came_to_its_end:
            return False
        grew = (each.resource for each in growing(self._base.report))
        return not candidate.on_device or any(map(is_of_device, grew))

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

    def _try(self, proposal: _Proposal, suspect: Suspect) -> Attempt:
        candidate, texts = proposal.candidate, proposal.texts
        # what is limited or emptied grows for a while
        at_once = candidate.loses in ("graph", "again")
        taken = self._taken(proposal, suspect)
        asked: Lines = taken.asked() if taken is not None else {}
        after = self.run(texts, self._stop_at, suspect.fingerprint, at_once, asked)
        if self._is_ended_by_clock(after, suspect):
            self._stop_earlier(after)
            after = self.run(texts, self._stop_at, suspect.fingerprint, at_once, asked)
        base = self._base
        found = compared(base.results, after.results)
        told, reason = outcome(base, after, suspect, found)
        if told == "changes" and self._is_told_by_sizes(found, texts, suspect):
            found = tuple(replace(each, sizes=True) for each in found)
            told, reason = outcome(base, after, suspect, found)
        if told == "changes" and (alike := self._varying_alike(after)):
            found = tuple(replace(each, varies=each.what in alike) for each in found)
            told, reason = outcome(base, after, suspect, found)
        if told == "changes" and (unsteady := self._unsteady()):
            left = tuple(each for each in found if each.what not in unsteady)
            told, _ = outcome(base, after, suspect, left)
            if told in ("proved", "helps"):
                told = "unclear"
                reason = Reason.of("differs-without-the-edit", results=tuple(sorted(unsteady)))
        missed = self._missed(taken, candidate.loses, after)
        if missed is not None and told in ("proved", "helps"):
            told, reason = "unclear", missed
        made, policy = self._revisions(texts), candidate.policy
        edit = candidate.name, candidate.title, made
        return Attempt(*edit, after, base, told, found, reason, suspect, policy)

    def _is_told_by_sizes(
        self, found: Sequence[Difference], texts: Texts, suspect: Suspect
    ) -> bool:
        """Whether the results are the same without what the program prints of how much is kept."""
        sites = [site for _, site in self._sites(suspect, {})]
        added = (added_to(part, site.source) for site in sites for part in site.parts())
        names = names_of(suspect).union(added) - {""}
        originals = {path: text for path in self._paths(suspect) if (text := self._text(path, {}))}
        plain = {path: without_sizes(text, names) for path, text in originals.items()}
        if any(each.what not in _OUTPUTS for each in found) or plain == originals:
            return False
        edited = {path: without_sizes(text, names) for path, text in {**originals, **texts}.items()}
        runs = (self._run_plain(each) for each in (plain, edited))
        before, after = (each.results for each in runs)
        return not any(each.is_result for each in compared(before, after))

    def _run_plain(self, texts: Texts) -> Trial:
        key = tuple(sorted(texts.items())), self._stop_at
        if key not in self._plain:
            self._plain[key] = self.run(texts, self._stop_at, "", False, {})
        return self._plain[key]

    def _paths(self, suspect: Suspect) -> set[str]:
        """Return the files that may print how much is kept: the script, and those of the leak."""
        return {each.path for each in suspect.locations} | ({self.script} if self.script else set())

    def _is_ended_by_clock(self, after: Trial, suspect: Suspect) -> bool:
        """Whether the steps differ in number, and do so without the edit too."""
        told = after.goes_on or after.report is None or after.status
        if told or after.steps == self._base.steps:
            return False
        assert after.report is not None
        if stays(after.report, suspect) or self._base.counted == self._stop_at:
            return False
        return self._run_again().steps != self._base.steps

    def _stop_earlier(self, after: Trial) -> None:
        """Compare, from now on, what is made up to a step that every run comes to."""
        fewest = min(each.counted for each in (self._base, after, self._run_again()))
        self._stop_at = max(1, round(SHORTER * fewest))
        self._base, self._again = self.run({}, self._stop_at, "", False, {}), None

    def _varying_alike(self, after: Trial) -> set[str]:
        """Return the outputs that are the same but for what differs between two runs as it is."""
        before, again, now = (each.results for each in (self._base, self._run_again(), after))
        numbers = varying(before.stdout, again.stdout)
        same = numbers and without(before.stdout, numbers) == without(now.stdout, numbers)
        found = {"stdout"} if same else set()
        if renamed_alike(before.files, again.files, now.files):
            found |= {"files"}
        if logged(before.stderr) != logged(again.stderr):
            differs = says_other(before.stderr, again.stderr, now.stderr)
            found |= set() if differs else {"stderr"}
        return found

    def _unsteady(self) -> set[str]:
        """Return which results differ between two runs of the program as it is."""
        found: tuple[Difference, ...] = compared(self._base.results, self._run_again().results)
        return {str(each.what) for each in found} - {"stderr"}  # of which what stays is compared

    def _run_again(self) -> Trial:
        if self._again is None:
            self._again = self.run({}, self._stop_at, "", False, {})
        return self._again


def _texts(attempt: Attempt) -> Texts:
    return {each.path: each.after for each in attempt.revisions}


def _changed_lines(before: str, after: str) -> frozenset[int]:
    """Return the lines of an edited text that are not as they were."""
    was, now = (re.split(r"\r\n|\r|\n", text) for text in (before, after))  # Python's lines
    found = SequenceMatcher(None, was, now, autojunk=False).get_opcodes()
    changed = (range(at, max(end, at + 1)) for tag, _, _, at, end in found if tag != "equal")
    return frozenset(each + 1 for lines in changed for each in lines)


def _new_lines(before: Texts, after: Texts, originals: Texts) -> set[str]:
    """Return the lines that are in edited texts and were not there."""
    pairs = ((after[path], before.get(path, originals[path])) for path in after)
    return {line for now, was in pairs for line in {*now.splitlines()} - {*was.splitlines()}}


def _first(trial: Trial, given_up: set[str]) -> Suspect | None:
    suspects = trial.report.suspects if trial.report and trial.report.verdict == "growing" else ()
    return next((each for each in suspects if each.fingerprint not in given_up), None)
