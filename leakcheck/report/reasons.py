"""The words for reasons and notices: one sentence a code, filled with its fields."""

from __future__ import annotations

from string import Formatter
from typing import Any

from leakcheck.model import Notice, Reason
from leakcheck.report.advice import ADVICE
from leakcheck.report.stage_reasons import OF_STAGES
from leakcheck.units import format_bytes, format_count

# why what grows is judged as it is: the codes of the table of outlooks
_OF_GROWTH = {
    "due-in-time": "the event loop lets go of it when its time comes",
    "lasting-graph": "a graph of past steps is kept, and no backward is to free it",
    "over-its-limit": "it has {length} elements, more than the {most} that it is to hold",
    "taken-in-vain": "`{code}` ({path}:{line}) ran again and again, and it went on growing",
    "left-by-some-requests": "`{code}` ({path}:{line}) takes a request's own entry away, and not "
    "every request comes to it",
    "published": "a leak of the installed version that is known",
    "fills-to-a-number": "it fills to at most {most} elements",
    "fills-to-a-limit": "it fills to a limit: {code} ({path}:{line})",
    "emptied-now-and-then": "`{code}` ({path}:{line}) empties it every so often",
    "emptied-at-a-turn": "`{code}` ({path}:{line}) empties it when the loop turns",
    "took-nothing-yet": "`{code}` ({path}:{line}) runs at each step and took nothing so far",
    "emptied-elsewhere": "`{code}` ({path}:{line}) may still take it away",
    "gathered": "`{code}` ({path}:{line}) uses it after the loop: it may be gathered on purpose",
    "memo": "`{code}` ({path}:{line}) adds only what is new",
    "gathers-too-much": "the loop gathers {most:,} elements, {full_bytes:B}, before `{code}` "
    "({path}:{line}) uses it, and there is room for {room_bytes:B}",
    "does-not-fit": "its limit is {most:,} elements, {full_bytes:B}, and there is room for "
    "{room_bytes:B}",
    "grows": "nothing takes it away",
}
# why a run has no verdict
OF_VERDICTS = {
    "failed": "leakcheck failed, and no report could be made: {error}",
    "stopped-watching": "leakcheck failed and stopped watching: {error}",
    "no-steps": "no steps seen",
    "no-steps-in": "no steps seen in {program}; call leakcheck.Sentinel().step() in its loop, or "
    "pass --every-seconds 1",
    "steps-in-children": "no steps seen in {program}: its child processes did most of the work, "
    "and what `subprocess` starts is not watched; use leakcheck.Sentinel() in the "
    "function that they run, or start them with torchrun -m leakcheck run",
    "too-few-steps": "only {steps} steps were seen; {needed} are needed",
    "too-few-recorded": "only {steps} steps were recorded",
    "nothing-judged": "nothing that can be judged was recorded",
    "cut-off": "{resources: and } grew, and the run was cut off before that was confirmed",
    "unconfirmed": "{resources} seemed to grow{held}; the run ended before that was confirmed",
    "new-shapes": "{resources:grow} {per_step:B} a step{at} as tensors of new shapes come, and "
    "libraries keep memory for each shape: oneDNN for up to {most:,}, so {full_bytes:B} in all",
    "uneven": "{resources:grow} about {per_step:B} a step{at}, unevenly: a leak, or what a library "
    "keeps for each new shape, as oneDNN does for up to {most:,}, so {full_bytes:B} in all",
    "cycles-pile-up": "reference cycles pile up: gc.disable() was called, and without leakcheck "
    "nothing would collect them",
    "not-full-yet": "{limit}, and the run ended before it was full",
    "goes-on-yet": "{limit}, and the run ended before that did",
    "rose": "{resources} rose at each of the last looks; {steps} steps are too few to say",
    "went-on": "{resources} rose at every look to the end, though what was found to hold them was "
    "emptied or full: something else holds them",
    "climbs": "{resource}: still climbing{rate}, though not evenly",
    "children-grow": "child processes grow {per_step:B} a step together, and are not watched; with "
    "num_workers=0, or a sentinel of their own, the line can be told",
    "shared-memory-grows": "blocks of shared memory pile up, and no line of those that were traced "
    "makes them: another thread or process does",
    "copies-do-not-fit": "{processes} child processes copy what they share with the program, bit "
    "by bit: {shared_bytes:B} more, and there is room for {room_bytes:B}",
    "crept": "host.rss crept up by {gained_bytes:B} in all, and nothing that counts did",
    "once-a-training": "{resources:grow}{held}, once each time that training begins anew with "
    "another optimizer: a leak, or its results",
    "too-few-rises": "{resource} rises by {rise:{unit}} every {apart_steps} steps{held}: too few "
    "times to be sure that it goes on",
    "may-be-taken": "{resources:grow}{held}; {removal}",
    "loop-may-release": "{resources:grow}{held}; the loop around the steps may still release it",
    "unattributed": "{resources:grow}{held}, and it was not seen yet what holds that",
    "no-graph": "{resources:grow}{held}, in a loop that makes no autograd graph: a leak, or data "
    "gathered",
    "did-not-go-on": "{holders} had grown, and did not go on",
    "too-few-requests": "{holders} had grown, and too few requests came later to see it go on",
}
# what is worth a line and no leak
_OF_NOTICES = {
    "grew-no-more": "{resources} had grown, and grew no more",
    "grew-no-more-in-the-long-run": "{resources} had grown, and grew no more in the long run",
    "grew-no-more-between-turns": "{resources} had grown, and grew no more from one turn of the "
    "enclosing loop to the next",
    "grew-no-more-once-emptied": "{resources} had grown, and grew no more as what holds it was "
    "emptied",
    "grew-no-more-than-before": "{resources} grow, and what holds them was emptied before from "
    "about as much",
    "released-at-turns": "{resources} grow inside the enclosing loop and are released at its end",
    "released": "tensors grow in number, but those of past steps are released",
    "little-a-step": "plain objects grow about {per_step:B} a step, below the tolerance of "
    "{tolerance_bytes:B} a step",
    "log": "{holders}: a log of numbers, below the tolerance of {tolerance_bytes:B} a step",
    "library-log": "{holders}: a library's log of numbers, below the tolerance of "
    "{tolerance_bytes:B} a step",
    "flight-recorder": "the heap grew while the flight recorder of torch.distributed filled up",
    "holds": "{inside}{holder} holds {length} of at most {most}{full}",
    "holds-keys": "{inside}{holder} holds {length} of about {most} possible keys{full}",
    "made": "{made} in {steps:,} steps: {count:,}",
    "recompiled": "torch.compile keeps a graph of a function for each new shape or number: "
    "{made:,} of at most {most:,} so far{full}",
    "limited": "{names} grows, limited at {limits}",
    "moves": "{moves:; }",
    "graph-lengthens": "the graph of one step grows, and the heap with it",
    "tensors-lengthen": "the tensors of one step grow, and {memory} with them",
    "slows": "{holders} gains ever less, as what is filled by key does",
    "gathered-by-loop": "{holder} gathered {gained_bytes:B} in {steps:,} steps, and `{code}` "
    "({path}:{line}) uses it after the loop: no leak",
    "not-waited-for": "{holder} grows too, and that was not waited for: {why}",
    "passed-its-limit": "{holder} has {length} elements, more than the {most} that its source "
    "states",
    "too-much": "{holder} will hold {most:,} elements, {full_bytes:B}, when the loop ends and "
    "`{code}` ({path}:{line}) uses it: there is room for {room_bytes:B}",
    "too-large": "{holder} is limited to {most:,} elements, which take {full_bytes:B}: there is "
    "room for {room_bytes:B}",
    "cycles-freed": "reference cycles{kinds} wait for the garbage collector, which freed "
    "{freed_bytes:B} ({per_step:B} a step): not a leak",
    "cycles-freed-by-us": "reference cycles{kinds} wait for the garbage collector, which the "
    "program switched off: only leakcheck freed {freed_bytes:B} ({per_step:B} a step)",
    "copied-by-children": "{processes} child processes copied {copied_bytes:B} of what they share "
    "with the program, and may copy {most_bytes:B} in all: to read a Python object is to write to "
    "its page; {by}",
    "no-holder": "its holder could not be found: {error}",
    "device-unread": "what grew on the device could not be read: {error}",
    "recording-cut-off": "the recording was cut off; it is judged by its samples",
    "recording-stopped": "recording stopped at step {step}: {path}: {error}",
    "processes": "{told:; }",
    "ranks-diverge": "ranks diverge, growing on {count} of {all}: {rates}",
    "processes-diverge": "processes diverge, growing in {count} of {all}: {rates}",
}
# what a verdict rests on
_OF_EVIDENCE = {
    "past-nodes-alive": "{per_step:Nodes} of each past step are alive{oldest}",
    "oldest": "; the oldest is at least {age_steps} steps old",
    "rates": "{rates}",
    "rises-by": "{resource} +{per_step:{unit}} a step",
}
# why a run that is compared shows nothing, or less
_OF_TRIALS = {
    "raised": "{error}",
    "exit-status": "exit status {status}, and {before} without the edit",
    "timed-out": "stopped after {timeout_s:s} (--timeout)",
    "killed": "the program was killed by {signal}",
    "left-early": "the program left with status {status} before it could be judged",
    "fewer-steps": "{steps} steps of {before}",
    "nothing-to-compare": "the program has no output, losses, weights or files to compare",
    "backward-later": "`{code}` ({path}:{line}) may need the graph, and the run did not come there",
    "read-unnamed": "`{code}` ({path}:{line}) may read what is gone without its name",
    "read-later": "`{code}` ({path}:{line}) may read what is gone, and the run did not come there",
    "differs-without-the-edit": "{results}: differs without the edit",
}
# what the sentences above have in common
_PARTS = {
    "held": ", held by {holder}",
    "held-at": ", held by {holder} ({path}:{line})",
    "rate": " {per_step:{unit}} a step",
    "inside": "a {kind} in ",
    "of": " of {kinds}",
    "full-in": " and is full in {steps} steps{full_bytes}",
    "with": ", with {full_bytes:B}",
    "objects-in": "`{container}` has {length:,} of them: pack them into arrays or tensors",
    "collector-reads": "gc.freeze() before they start spares them what the collector alone reads",
    "full": " and is full now",
    "limit": "{path}:{line} ({code})",
    "takes-in": "{holder} takes in what {pool} gives up",
    "the-heap": "the heap",
    "graphs": "torch.compile made graphs for new shapes or numbers",
    "fft-plans": "cuFFT made plans for new shapes",
    "have-verdict": "{processes} {verdict}",
    "failed-on": "the program failed on {processes}",
    "failed-in": "{processes} failed",
    "was-killed": "{processes} was killed, and is judged by its recording",
    "were-killed": "{processes} were killed, and are judged by their recordings",
    "still-runs": "{processes} still runs, and is judged by its recording",
    "still-run": "{processes} still run, and are judged by their recordings",
    "up-to": "{resource} up to {per_step:{unit}} a step",
}
SAID = {
    **_OF_GROWTH,
    **OF_VERDICTS,
    **_OF_NOTICES,
    **_OF_EVIDENCE,
    **_OF_TRIALS,
    **OF_STAGES,
    **_PARTS,
    **ADVICE,
}


def said(reason: Reason | None) -> str:
    """Return a reason as a sentence, "" if there is none."""
    if reason is None:
        return ""
    return _WORDS.vformat(SAID[reason.code], (), dict(reason.fields))


def told(notice: Notice) -> str:
    """Return a notice as a sentence, with the step at which it was seen."""
    sentence = said(notice.reason)
    return f"at step {notice.step:,}: {sentence}" if notice.step else sentence


class _Words(Formatter):
    """Writes fields: `B` for bytes, `n` for a count or its unit; of several a separator."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Write one field."""
        if value is None:
            return ""
        if isinstance(value, Reason):
            return said(value)
        if isinstance(value, tuple):
            return _listed(value, format_spec)
        if isinstance(value, (int, float)) and format_spec.strip(","):
            return _amount(value, format_spec)
        return format(value, format_spec)


_WORDS = _Words()


def _listed(values: tuple[str | Reason, ...], separator: str) -> str:
    words = [said(each) if isinstance(each, Reason) else each for each in values]
    if separator == "grow":
        return f"{', '.join(words)} {'grow' if _are_several(words) else 'grows'}"
    return (separator or ", ").join(words)


def _are_several(resources: list[str]) -> bool:
    """Say whether resources are spoken of as several: host.heap grows, graph.nodes grow."""
    return len(resources) > 1 or (resources[0][-1] == "s" and not resources[0].endswith("rss"))


def _amount(value: float, unit: str) -> str:
    if unit == "n":
        return format_count(value)
    return format_bytes(value) if unit == "B" else f"{format_count(value)} {unit}"
