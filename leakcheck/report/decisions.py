"""The table of what decides whether growth is a leak, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

CONDITIONS = {
    "due-in-time": "timers of an event loop, due within the hour or cancelled",
    "lasting-graph": "a graph of past steps, and no backward that has not run yet takes it",
    "over-its-limit": "a quarter longer than its limit",
    "taken-in-vain": "what takes away ran twice, nothing else may, and it went on growing",
    "left-by-some-requests": "each request takes away its own entry by key, and nothing else does",
    "published": "a known leak of a library, and nothing that takes away has run",
    "fills-to-a-number": "a limit is known, and it is below",
    "fills-to-a-limit": "a ring, added below n, or cut above n, and n is not known",
    "emptied-now-and-then": "taken, replaced or cut at each n-th step",
    "emptied-at-a-turn": "taken, replaced or cut when a loop turns",
    "took-nothing-yet": "taken from at each step, if it is there, and none was",
    "emptied-elsewhere": "taken, replaced, cut or handed on elsewhere",
    "gathers-too-much": "joined, saved or used after a loop, and memory has no room for all of it",
    "gathered": "after a loop over something joined or saved, or used where no optimizer steps",
    "memo": "every line that adds does so only for what is new, on first steps, or by a flag",
    "does-not-fit": "it has a limit, and memory has no room for so many",
    "grows": "otherwise",
}
# of all that grows together
DOUBTS = {
    "new-shapes": "memory that grows as new shapes come, held by a library or by nothing",
    "uneven": "memory that grows unevenly, held by a library or by nothing",
    "mostly-found": "what is asked for is there most often, as in a cache",
    "only-what-is-new": "it is kept only where it is new, as by a memo",
    "nothing-found-on-host": "nothing was found to hold it, and it is the host's memory",
    "nothing-found": "nothing was found to hold it",
    "held-by-nothing-known": "nothing that is known holds some of it",
    "found-by-key": "found by key, and it slows down or was seen for less than 200 steps",
    "no-doubt": "otherwise",
}
_KINDS = {
    "leak": "a leak",
    "fills": "it fills up",
    "emptied": "it is emptied",
    "memo": "it slows down",
}
_VERDICTS = {"look again": "looked at again"}
_WAITS = {
    "fills-to-a-number": "half as long again as it seems to need",
    "fills-to-a-limit": "{steps:,} steps, then twice as long",
    "emptied-now-and-then": "half as long again as n, or {steps:,} steps if n is not known",
}
_HEAD_OF_DOUBTS = ("what is known of all that grows", "to go on for")
_HEAD = ("what is known of it", "what is to come", "waited for", "if it goes on")


def table(decisions: Iterable[tuple[str, str, int | None, str]]) -> str:
    """Return in Markdown what decides: of each row its code, outlook, steps and verdict."""
    rows = [_HEAD]
    rows += [
        (CONDITIONS[code], _KINDS[kind], _waited(code, steps), _VERDICTS.get(verdict, verdict))
        for code, kind, steps, verdict in decisions
    ]
    return _table(rows)


def table_of_doubts(waits: Iterable[tuple[str, int]]) -> str:
    """Return in Markdown for how many more steps growth is looked at, of each row its code."""
    told = (
        (DOUBTS[code], f"{steps:,} steps more" if steps else "no more") for code, steps in waits
    )
    return _table([_HEAD_OF_DOUBTS, *told])


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [_row(row, widths) for row in rows]
    rule = "|".join("-" * (width + 2) for width in widths)
    return "\n".join((lines[0], f"|{rule}|", *lines[1:]))


def _waited(code: str, steps: int | None) -> str:
    if steps is None:
        return "the end of the run"
    return _WAITS.get(code, "{steps:,} steps" if steps else "").format(steps=steps)


def _row(cells: Iterable[str], widths: list[int]) -> str:
    return "| " + " | ".join(map(str.ljust, cells, widths)) + " |"
