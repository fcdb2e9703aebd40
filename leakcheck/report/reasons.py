"""The words for the reasons of an outlook: one sentence a code, filled with its fields."""

from __future__ import annotations

from collections.abc import Iterable

from leakcheck.model import Reason

_SAID = {
    "due-in-time": "the event loop lets go of it when its time comes",
    "lasting-graph": "a graph of past steps is kept, and no backward is to free it",
    "over-its-limit": "it has {length} elements, more than the {most} that it is to hold",
    "taken-in-vain": "`{code}` ({path}:{line}) ran again and again, and it went on growing",
    "left-by-some-requests": "`{code}` ({path}:{line}) takes a request's own entry away, and not "
    "every request comes to it",
    "came-down": "it was emptied, and may be again",
    "stands": "it is full: it no longer grows",
    "published": "a leak of the installed version that is known",
    "fills-to-a-number": "it fills to at most {most} elements",
    "fills-to-a-limit": "it fills to a limit: {code} ({path}:{line})",
    "emptied-now-and-then": "`{code}` ({path}:{line}) is to empty it now and then",
    "emptied-at-a-turn": "`{code}` ({path}:{line}) is to empty it when the loop turns",
    "emptied-elsewhere": "`{code}` ({path}:{line}) may still take it away",
    "gathered": "`{code}` ({path}:{line}) uses it after the loop",
    "memo": "`{code}` ({path}:{line}) adds only what is new",
    "keyed": "it finds things by key, and may be a cache that fills up",
    "held-by-nothing-known": "nothing that is known holds it",
    "grows": "nothing takes it away",
}
# the same as conditions, for a table of what decides
CONDITIONS = {
    "due-in-time": "timers of an event loop, due within the hour or cancelled",
    "lasting-graph": "a graph of past steps, and no backward that has not run yet takes it",
    "over-its-limit": "a quarter longer than its limit",
    "taken-in-vain": "what takes away ran twice, nothing else may, and it went on growing",
    "left-by-some-requests": "each request takes away its own entry by key, and nothing else does",
    "came-down": "its length has come down",
    "stands": "its length stands",
    "published": "a known leak of a library, and nothing that takes away has run",
    "fills-to-a-number": "a limit is known, and it is below",
    "fills-to-a-limit": "a ring, added below n, or cut above n, and n is not known",
    "emptied-now-and-then": "taken, replaced or cut at each n-th step",
    "emptied-at-a-turn": "taken, replaced or cut when a loop turns",
    "emptied-elsewhere": "taken, replaced, cut or handed on elsewhere",
    "gathered": "after a loop over something joined or saved, or used where no optimizer steps",
    "memo": "every line that adds does so only for what is new, on first steps, or by a flag",
    "keyed": "found by key",
    "held-by-nothing-known": "held by nothing known, shapes vary, or once for each training",
    "grows": "otherwise",
}
_KINDS = {
    "leak": "a leak",
    "fills": "it fills up",
    "emptied": "it is emptied",
    "memo": "it slows down",
    "unsure": "nothing is known",
}
_VERDICTS = {"look again": "looked at again"}
_WAITS = {
    "due-in-time": "the end of the run",
    "fills-to-a-number": "half as long again as it seems to need",
    "fills-to-a-limit": "{steps:,} steps, then twice as long",
    "gathered": "the end of the run",
    "emptied-now-and-then": "half as long again as n, or {steps:,} steps if n is not known",
}
_HEAD = ("what is known of it", "what is to come", "waited for", "if it goes on")


def said(reason: Reason) -> str:
    """Return a reason as a sentence."""
    return _SAID[reason.code].format(**dict(reason.fields))


def table(decisions: Iterable[tuple[str, str, int, str]]) -> str:
    """Return in Markdown what decides: of each row its code, outlook, steps and verdict."""
    rows = [_HEAD]
    rows += [
        (CONDITIONS[code], _KINDS[kind], _waited(code, steps), _VERDICTS.get(verdict, verdict))
        for code, kind, steps, verdict in decisions
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [_row(row, widths) for row in rows]
    rule = "|".join("-" * (width + 2) for width in widths)
    return "\n".join((lines[0], f"|{rule}|", *lines[1:]))


def _waited(code: str, steps: int) -> str:
    return _WAITS.get(code, "{steps:,} steps" if steps else "").format(steps=steps)


def _row(cells: Iterable[str], widths: list[int]) -> str:
    return "| " + " | ".join(map(str.ljust, cells, widths)) + " |"
