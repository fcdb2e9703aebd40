"""What `fix` found, in words, as JSON and as a patch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from difflib import unified_diff
from itertools import chain
from typing import Any

from leakcheck import __version__
from leakcheck.experiments import Attempt, AttemptOutcome, Cure, Difference, Revision, Trial
from leakcheck.model import Report, Suspect, Trend
from leakcheck.report.json import reason_as_json
from leakcheck.report.reasons import said
from leakcheck.report.reasons import told as noticed
from leakcheck.report.terminal import failure_text, what_text
from leakcheck.units import format_bytes, format_count

FORMAT = 1
_OUTCOMES: dict[AttemptOutcome, str] = {
    "proved": "proved: nothing grows any more",
    "helps": "this leak is gone; something else is left",
    "changes": "not proved: the leak is gone, but the results differ",
    "stays": "not proved: it still grows",
    "fails": "not proved: the program fails with it, or ends otherwise",
    "unclear": "not proved: could not tell",
}
_NO_END = "\n\\ No newline at end of file\n"
_SAME = {
    "stderr": "the same but for times and warnings",
    "gradients": "none is another one",  # an edit may drop some
}
_SHOWN = ("graph.nodes", "tensors", "host.heap", "host.rss")


def render(cure: Cure) -> str:
    """Write the diff and the proof of the chosen edit, the other edits in a line each."""
    parts = (_head, _chosen, _alone, _others, _choices)
    return "\n".join(chain.from_iterable(part(cure) for part in parts))


def render_json(cure: Cure) -> str:
    """Write everything that was tried as one JSON object."""
    answer = {
        "format": FORMAT,
        "version": __version__,
        "command": cure.command,
        "before": _trial_json(cure.before),
        "chosen": cure.attempts.index(cure.chosen) if cure.chosen else None,
        "proved": _proved_json(cure),
        "attempts": [_attempt_json(each) for each in cure.attempts],
        "alone": [_attempt_json(each) for each in cure.alone],
        "choices": [
            {"title": each.title, "asks": each.asks, "diff": patch(each.revisions)}
            for each in cure.choices
        ],
    }
    return json.dumps(answer, indent=2, ensure_ascii=False)


def patch(revisions: tuple[Revision, ...]) -> str:
    """Write the change as `git apply` takes it, in the folder that the paths are relative to."""
    pieces: list[str] = []
    for each in revisions:
        names = f"a/{each.path}", f"b/{each.path}"
        before, after = (_lines(text) for text in (each.before, each.after))
        diff = unified_diff(before, after, *names)
        pieces.extend(line if line.endswith("\n") else f"{line}{_NO_END}" for line in diff)
    return "".join(pieces)


def _lines(text: str) -> list[str]:
    r"""Split after each \n alone, as git does."""
    return [line for line in text.replace("\n", "\n\0").split("\0") if line]


def _proved_json(cure: Cure) -> list[dict[str, Any]]:
    """Say the proved edit of each file by places in its text, for `check` and editors."""
    chosen, report = cure.chosen, cure.before.report
    if chosen is None or chosen.outcome != "proved" or report is None:
        return []
    if len(chosen.revisions) == 1:
        return [_edit_json(chosen, report.suspects)]
    # an editor takes one file at a time: of each leak, what was shown without the others' edits
    shown = (each for each in cure.alone if each.outcome in ("proved", "helps") and each.leak)
    return [_edit_json(each, [each.leak]) for each in shown if each.leak]


def _edit_json(attempt: Attempt, leaks: Sequence[Suspect]) -> dict[str, Any]:
    (revision,) = attempt.revisions
    places = {(at.path, at.line) for leak in leaks for at in leak.locations}
    return {
        "path": revision.path,
        "sha256": revision.sha256,
        "title": attempt.title,
        "lines": sorted(line for path, line in places if path == revision.path),
        "edits": [asdict(edit) for edit in revision.edits],
    }


def _head(cure: Cure) -> Iterator[str]:
    report = cure.before.report
    if report is None:
        yield f"could not tell: {said(cure.before.failure)}"
    elif report.verdict != "growing" and report.run is not None and failure_text(report.run):
        yield f"could not tell: {cure.command}: {failure_text(report.run)}"
    elif report.verdict != "growing":
        told = said(report.reason) if report.verdict != "steady" else "there is nothing to fix"
        yield f"{report.verdict}: {cure.command}: {told}"
        yield from _notices(cure.before)
    elif cure.chosen is None:
        unclear = sum(each.outcome == "unclear" for each in cure.attempts)
        told = f", of which {unclear} could not be judged" if unclear else ""
        yield f"no edit is proved: {cure.command} still leaks; {len(cure.attempts)} tried{told}"
        yield from (f"  leak     {what_text(each)}" for each in report.suspects)
    elif cure.chosen.outcome == "helps":
        left = said(cure.chosen.reason) if cure.chosen.reason else "another leak is left"
        yield f"fixed in part: {cure.command}: {left}"
    else:
        yield f"fixed: {cure.command}: {cure.chosen.title}"


def _chosen(cure: Cure) -> Iterator[str]:
    if cure.chosen is None:
        return
    yield f"\n{patch(cure.chosen.revisions)}"
    yield from _proof(cure.before, cure.chosen)
    yield from _notices(cure.chosen.trial)
    if cure.chosen.policy:
        yield f"\nyours to decide: {cure.chosen.policy}"


def _notices(trial: Trial) -> Iterator[str]:
    """Say what still grows and is no leak, or ends."""
    notices = trial.report.notices if trial.report is not None else ()
    yield from (f"  note     {noticed(each)}" for each in notices)


def _alone(cure: Cure) -> Iterator[str]:
    if cure.alone:
        yield "\neach alone:"
    for each in cure.alone:
        yield from _tried(each)


def measures(before: Trial, attempt: Attempt) -> Iterator[tuple[str, str, str]]:
    """Yield what was measured without the edit and with it: its name and both in words."""
    after = attempt.trial
    for was in before.report.trends if before.report else ():
        if was.verdict == "growing" or was.resource in _SHOWN:
            now = _trend(after.report, was.resource)
            yield was.resource, _rate(was), _rate(now) if now else "not read"
    yield "peak memory", format_bytes(before.peak_bytes), format_bytes(after.peak_bytes)
    yield "time a step", f"{before.step_s * 1e3:.3g} ms", f"{after.step_s * 1e3:.3g} ms"
    yield "steps", str(attempt.base.steps), f"{after.steps}{_cut(attempt.base)}"


def _proof(before: Trial, attempt: Attempt) -> Iterator[str]:
    for name, was, now in measures(before, attempt):
        yield f"  {name:<15}{was} -> {now}"
    yield from _results(attempt)


def _cut(trial: Trial) -> str:
    run = trial.report.run if trial.report else None
    stopped = run is not None and run.ended == "stopped"
    return ", stopped there: what comes later is not compared" if stopped else ""


def _results(attempt: Attempt) -> Iterator[str]:
    before = attempt.base
    counts = {
        "stdout": (len(before.results.stdout.splitlines()), "lines"),
        "stderr": (len(before.results.stderr.splitlines()), "lines"),
        "losses": (len(before.results.losses), "calls of backward"),
        "weights": (len(before.results.weights), "parameters"),
        "modules": (len(before.results.modules), "parameters and buffers"),
        "gradients": (len(before.results.gradients), "accumulated"),
        "files": (len(before.results.files), "written"),
    }
    unlike = {each.what: each for each in attempt.differences}
    for what, (count, unit) in counts.items():
        if what in unlike:
            yield f"  {what:<15}{_difference(unlike[what], count)}"
        elif count:
            yield f"  {what:<15}{_SAME.get(what, 'bit-identical')} ({count} {unit})"
        else:
            yield f"  {what:<15}none to compare"


def _difference(each: Difference, count: int) -> str:
    match each.what:
        case "stdout" | "stderr":
            told = "the same numbers, written otherwise" if each.written else "differs"
            told = "the same but for how much is kept," if each.sizes else told
            told = "the same but for what differs in each run," if each.varies else told
            first = f"line {each.at}: {each.before!r} -> {each.after!r}"
            return f"{told} in {each.count} of {count} lines; first at {first}"
        case "losses":
            first = f"first at {each.at}: {each.before} -> {each.after}"
            return f"differ in {each.count}{_by(each)}, {first}"
        case "modules":
            return f"{each.count} of {each.before} parameters and buffers are other ones"
        case "gradients":
            return f"{each.count} of {each.before} accumulated gradients are other ones"
        case "files" if each.varies:
            return "the same but for names that are others in each run"
        case "files":
            return f"differ in {each.count} of {count}, first: {each.before} -> {each.after}"
    return f"differ in {each.count} of {each.before}{_by(each)}, first in number {each.at}"


def _by(each: Difference) -> str:
    return f" by up to {each.most:.2g}" if each.most else ""


def _others(cure: Cure) -> Iterator[str]:
    told = [cure.chosen, *cure.alone]
    others = [each for each in cure.attempts if all(each is not one for one in told)]
    if others:
        yield "\nalso tried:"
    for each in others:
        yield from _tried(each)
        if each.outcome == "proved":
            yield f"    {_measured(each.trial)}"
        if each.reason:
            yield f"    {said(each.reason)}"
        if each.outcome == "changes":
            yield from (f"  {line}" for line in _results(each))


def _tried(attempt: Attempt) -> Iterator[str]:
    yield f"  {attempt.title}: {_OUTCOMES[attempt.outcome]}"
    yield from _added(attempt.revisions)


def _measured(trial: Trial) -> str:
    """Say what a trial cost, by which proved edits are ranked."""
    return f"peak memory {format_bytes(trial.peak_bytes)}, time a step {trial.step_s * 1e3:.3g} ms"


def _added(revisions: tuple[Revision, ...]) -> list[str]:
    lines = patch(revisions).splitlines()
    changed = (line for line in lines if line[:1] in ("+", "-"))
    return [f"    {line}" for line in changed if line[:3] not in ("+++", "---")]


def _choices(cure: Cure) -> Iterator[str]:
    chosen = cure.chosen
    if cure.choices and (chosen is None or chosen.outcome != "proved" or chosen.policy):
        yield "\nyours to choose (--size N tries it with N for ...):"
        for each in cure.choices:
            yield f"  {each.title}: {each.asks}"
            yield from _added(each.revisions)


def _trend(report: Report | None, resource: str) -> Trend | None:
    trends = report.trends if report else ()
    return next((each for each in trends if each.resource == resource), None)


def _rate(trend: Trend) -> str:
    written = format_bytes if trend.unit == "B" else format_count
    told = (written(each) for each in (trend.per_step, trend.low, trend.high))
    return "{} a step (95 %: {} to {})".format(*told)


def _trial_json(trial: Trial) -> dict[str, Any]:
    report = trial.report
    return {
        "verdict": report.verdict if report else None,
        "steps": trial.steps,
        "trends": [asdict(each) for each in report.trends] if report else [],
        "suspects": [f"{each.kind}: {each.holder}" for each in report.suspects] if report else [],
        "peak_bytes": trial.peak_bytes,
        "step_s": trial.step_s,
        "status": trial.status,
        "failure": reason_as_json(trial.failure),
        "compared": {
            "stdout_lines": len(trial.results.stdout.splitlines()),
            "stderr_lines": len(trial.results.stderr.splitlines()),
            "losses": len(trial.results.losses),
            "weights": len(trial.results.weights),
            "modules": len(trial.results.modules),
            "gradients": len(trial.results.gradients),
            "files": len(trial.results.files),
        },
    }


def _attempt_json(attempt: Attempt) -> dict[str, Any]:
    return {
        "candidate": attempt.candidate,
        "title": attempt.title,
        "outcome": attempt.outcome,
        "reason": reason_as_json(attempt.reason),
        "diff": patch(attempt.revisions),
        "policy": attempt.policy,
        "differences": [asdict(each) for each in attempt.differences],
        "after": _trial_json(attempt.trial),
    }
