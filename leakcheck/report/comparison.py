"""Two programs beside each other: a table of their rates, what is gone and new, what it means."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator

import msgspec

from leakcheck.experiments import Change, Compared, Comparison, Observation
from leakcheck.report.json import reason_as_json
from leakcheck.report.plain import one_line
from leakcheck.report.reasons import said
from leakcheck.units import format_bytes, format_count

FORMAT = 1
WIDTH = 80
HEADINGS = ("resource", "before", "after", "difference a step (95 %)", "")
OUTCOMES: dict[Compared, str] = {
    "cures": "the change cures the leak",
    "starts": "the change starts a leak",
    "worsens": "the leak is there before and after, and a rate rises",
    "lessens": "the leak is there before and after, and slower",
    "another": "the change ends one leak and starts another",
    "same": "the change changes nothing: the same leak at the same rates",
    "steady": "no leak, before or after the change",
    "unclear": "unclear",
}
_DECIDES = ("starts", "ends", "rises", "falls", "same", "unclear")


def render(found: Comparison, *, color: bool = False) -> str:
    """Write the outcome, one row for each resource that moves, and the leaks that differ."""
    told = OUTCOMES[found.outcome] + (f": {said(found.reason)}" if found.reason else "")
    lines = textwrap.wrap(one_line(f"leakcheck: {told}"), WIDTH)
    lines += ["", *_sides(found)]
    told_of = [each for each in found.changes if each.grows or each.outcome == "reported"]
    if told_of:
        lines += ["", *_table(told_of)]
    for word, leaks in (("gone", found.gone), ("new", found.new)):
        lines += [""] if leaks else []
        for leak in leaks:
            told = one_line(f"{leak.told} (id {leak.id})")
            lines += textwrap.wrap(
                told, WIDTH, initial_indent=f"{word:<6}", subsequent_indent=" " * 6
            )
    return "\n".join(lines)


def render_json(found: Comparison) -> str:
    """Write everything, with every run's rates."""
    written = {
        "format": FORMAT,
        **msgspec.to_builtins(found),
        "before": [_observation(each) for each in found.before],
        "after": [_observation(each) for each in found.after],
        "reason": reason_as_json(found.reason),
        "said": OUTCOMES[found.outcome],
        "exit_status": found.exit_code,
    }
    return json.dumps(written, indent=2)


def _observation(seen: Observation) -> dict[str, object]:
    return {**msgspec.to_builtins(seen), "reason": reason_as_json(seen.reason)}


def _sides(found: Comparison) -> Iterator[str]:
    for word, name, runs in zip(
        ("before", "after"), found.names, (found.before, found.after), strict=True
    ):
        told = one_line(f"{name}: {', '.join(map(_run, runs))}")
        yield from textwrap.wrap(
            told, WIDTH, initial_indent=f"{word:<8}", subsequent_indent=" " * 8
        )


def _run(seen: Observation) -> str:
    return f"{seen.verdict} in {format_count(seen.steps)} steps" if seen.steps else seen.verdict


def _table(changes: list[Change]) -> Iterator[str]:
    rows = [HEADINGS, *map(_cells, changes)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:4], widths[1:4], strict=True)]
        yield "  ".join([*cells, row[4]]).rstrip()


def _cells(change: Change) -> tuple[str, ...]:
    amounts = (change.before, change.after, change.low, change.high)
    before, after, low, high = (_amount(amount, change.unit) for amount in amounts)
    told = change.outcome if change.outcome in _DECIDES else ""
    return change.resource, before, after, f"{low} to {high}", told


def _amount(amount: float, unit: str) -> str:
    told = format_bytes(amount) if unit == "B" else format_count(amount)
    return f"+{told}" if amount > 0 else told
