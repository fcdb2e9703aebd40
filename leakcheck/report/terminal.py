"""The report of a watched run as text: the verdict first, then each leak with what to do about it.

Plain text that reads well at 80 columns and in CI logs; `color=True` adds ANSI styles and changes
nothing else.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import click

from leakcheck.model import (
    Finding,
    KnownLeak,
    Link,
    Load,
    Overhead,
    Place,
    Report,
    Run,
    Suspect,
    Trend,
)
from leakcheck.processes import MOST_NAMED
from leakcheck.report.device import memory_lines
from leakcheck.report.next_steps import next_text
from leakcheck.report.plain import one_line
from leakcheck.report.reasons import said, told
from leakcheck.units import format_bytes, format_count, format_duration

WIDTH = 80
LABEL_WIDTH = 9  # the longest label, "held by", and two spaces
TITLES = {
    "graph": "the autograd graph of past steps stays reachable",
    "tensor": "tensors pile up",
    "object": "Python objects pile up",
    "native": "memory outside Python objects grows",
    "device": "device memory grows and no tensor accounts for it",
    "fragmentation": "memory that is not in use grows",
    "external": "device memory grows outside the allocator",
    "threads": "threads pile up",
    "descriptors": "open file descriptors pile up",
    "processes": "child processes pile up",
    "shared-memory": "blocks of shared memory pile up",
}
COUNTED_IN = {  # one of what a leak is counted in; others are objects
    "graph": "Node",
    "tensor": "tensor",
    "threads": "thread",
    "descriptors": "descriptor",
    "processes": "process",
    "shared-memory": "block",
}
SELDOM = 0.05  # of a thing a step, below which the steps between two are told
LEAST_SHARE = 0.01  # of the run's time, for looking closer to be worth a word
COLORS = {"growing": "red", "steady": "green", "unclear": "yellow"}


def render(report: Report, *, color: bool = False, width: int = WIDTH) -> str:
    """Write the whole report of a run; ends without a newline."""
    lines = [headline(report), *_row("next", next_text(report), width)]
    for suspect in report.suspects:
        lines += ["", *_leak(suspect, report.findings, width)]
    lines += ["", *_load(report.load, width)] if report.load else []
    lines += ["", *_trends(report.trends, width)] if report.trends else []
    for memory in report.memory:
        lines += ["", *memory_lines(memory)] if memory.unexpected_per_step else []
    for notice in report.notices:
        lines += _wrapped(told(notice), "note: ", width)
    lines += _footer(report, width) if report.run else []
    text = "\n".join(map(one_line, lines))
    return _styled(text, report) if color else text


def headline(report: Report) -> str:
    """Say the verdict, how many leaks, in how many steps of what."""
    run = report.run
    where = f" in {format_count(run.steps)} steps of {run.command}" if run else ""
    if report.verdict == "growing":
        count = len(report.suspects)
        what = f"{count} leaks" if count > 1 else "1 leak" if count else "memory grows"
        return f"leakcheck: growing: {what}{where}"
    reason = f": {said(report.reason)}" if report.reason else ""
    return f"leakcheck: {report.verdict or 'unclear'}{where}{reason}"


def _leak(suspect: Suspect, findings: tuple[Finding, ...], width: int) -> Iterator[str]:
    owner = "library leak" if suspect.library else "leak"
    yield f"{owner} ({suspect.kind}): {TITLES[suspect.kind]}"
    yield from _row("what", suspect.what, width)
    yield from _row("grows", growth_text(suspect), width)
    yield from _row("in", processes_text(suspect.processes), width)
    for place in suspect.locations[:3]:
        yield from _row("line", place_text(place), width)
    if suspect.holder:
        yield from _row("held by", str(suspect.holder), width)
    yield from _trace(suspect)
    if suspect.known:
        yield from _row("known", known_text(suspect.known), width)
    elif suspect.fix:  # in a library the cure is the library's
        yield from _row("fix", said(suspect.fix), width)
    for rule in suspect.rules:
        yield from _row("rule", rule_text(rule, findings), width)
    yield from _row("id", suspect.fingerprint, width)


def _row(label: str, text: str, width: int) -> list[str]:
    return _wrapped(text, f"  {label:<{LABEL_WIDTH}}", width) if text else []


def _wrapped(text: str, label: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=label,
        subsequent_indent=" " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
        fix_sentence_endings=False,
    )


def what_text(suspect: Suspect) -> str:
    """Say what piles up, as exactly as it is known."""
    return suspect.what or TITLES[suspect.kind]


def growth_text(suspect: Suspect) -> str:
    """Say how much a suspect grows each step."""
    parts = []
    if suspect.objects_per_step is not None:
        unit = COUNTED_IN.get(suspect.kind, "object")
        count = format_count(suspect.objects_per_step)
        several = "" if count == "1" else "es" if unit.endswith("s") else "s"
        if 0 < suspect.objects_per_step < SELDOM:
            parts.append(f"1 {unit} in {format_count(round(1 / suspect.objects_per_step))} steps")
        else:
            parts.append(f"{count} {unit}{several} a step")
    if suspect.bytes_per_step is not None:
        parts.append(f"{format_bytes(suspect.bytes_per_step)} a step")
    return ", ".join(parts)


def processes_text(names: tuple[str, ...]) -> str:
    """Say in which of the processes that were watched a leak is, and in how many."""
    if len(names) < 2:
        return "".join(names)
    listed = f" ({', '.join(names)})" if len(names) <= MOST_NAMED else ""
    return f"{len(names)} processes{listed}"


def place_text(place: Place) -> str:
    """Write path, line, share and source of a place."""
    share = f" ({place.share:.0%})" if place.share < 0.995 else ""
    return f"{place.path}:{place.line}{share}  {place.code.strip()}"


def _trace(suspect: Suspect) -> Iterator[str]:
    if suspect.trace is None or not suspect.trace.links:
        return
    indent = " " * (LABEL_WIDTH + 2)
    yield f"{indent}{suspect.trace.root}"
    last = len(suspect.trace.links) - 1
    for depth, link in enumerate(suspect.trace.links):
        arrow = "╰→" if depth == last else "├─"
        yield f"{indent}{arrow} {link_text(link)}"
        if link.suspect:
            yield f"{indent}{'   ' if depth == last else '│  '}{'~' * len(link.edge)}"


def link_text(link: Link) -> str:
    """Write a reference of a leak trace: edge, what it leads to, and what that keeps alive."""
    size = f", {format_bytes(link.retained_bytes)} in all" if link.retained_bytes else ""
    return f"{link.edge}: {link.holder}{size}"


def known_text(leak: KnownLeak) -> str:
    """Name a published leak with its versions, where it is told, and what helps."""
    name = f"{leak.package} {leak.affected}".rstrip()
    here = f"{leak.installed} is installed" if leak.installed else ""
    return f"{name} ({', '.join(filter(None, (leak.source, here)))}); {leak.cure}"


def rule_text(slug: str, findings: tuple[Finding, ...]) -> str:
    """Name a rule, and where this run proved it."""
    proved = [f for f in findings if f.rule == slug and f.proved]
    if not proved:
        return slug
    place = proved[0].location
    return f"{slug}, proved by this run at {place.path}:{place.line}"


def _load(load: Load, width: int) -> Iterator[str]:
    for number, text in enumerate(load_texts(load)):
        yield from _wrapped(text, "requests  " if not number else " " * 10, width)


def load_texts(load: Load) -> Iterator[str]:
    """Say how many requests there were, what each leaves by its outcome, and who keeps it."""
    yield (
        f"{format_count(load.finished)} finished, {format_count(load.aborted)} aborted, "
        f"at most {load.most_in_flight} at once; a step is {load.per_step:.2g} of them, "
        f"with {load.looked_at or 'none'} in flight"
    )
    for each in load.entries:
        name, added = each.holder.qualified, _functions(each.added_in)
        if each.removed_in:
            removed = f"removed only in {_functions(each.removed_in)}"
            yield f"`{name}`: added in {added}, {removed}: {_one_in(each.kept)} never removed"
        else:
            yield f"`{name}`: added in {added}, removed nowhere"
        if each.kept_of_finished is not None and each.kept_of_aborted is not None:
            finished, aborted = map(_entries, (each.kept_of_finished, each.kept_of_aborted))
            yield f"a finished request leaves {finished} in it, an aborted one {aborted}"


def _entries(count: float) -> str:
    told = f"{count:.2g}" if round(count, 1) % 1 else f"{round(count)}"
    return f"{told} entr{'y' if told == '1' else 'ies'}"


def _functions(names: tuple[str, ...]) -> str:
    return " and ".join(f"{name}()" if name != "<module>" else "the module" for name in names)


def _one_in(share: float) -> str:
    return f"1 in {round(1 / share)}" if 0 < share < 0.75 else "nearly each"


def _trends(trends: tuple[Trend, ...], width: int) -> Iterator[str]:
    told = [trend for trend in trends if trend.verdict != "steady" or trend.reason]
    name_width = max((len(trend.resource) for trend in told), default=0)
    for trend in told:
        label = f"{trend.resource:<{name_width}}  {trend.verdict:<8} "
        yield from _wrapped(slope_text(trend) or "-", label, width)
    steady = ", ".join(trend.resource for trend in trends if trend not in told)
    yield from _wrapped(steady, "steady: ", width) if steady else ()


def slope_text(trend: Trend) -> str:
    """Write a trend's rate, interval and reach; of a steady one the reason of its verdict."""
    if trend.verdict == "steady" or trend.reason:
        return trend.reason
    low, high = _amount(trend.low, trend.unit), _amount(trend.high, trend.unit)
    text = f"{rate_text(trend)} (95 %: {low} to {high})"
    text += f" over {format_count(trend.steps)} steps"
    if trend.per_hour is not None:
        text += f", {_amount(trend.per_hour, trend.unit)}/h"
    if trend.exhausts_in_s is not None:
        text += f", full in {format_duration(trend.exhausts_in_s)}"
    return text


def rate_text(trend: Trend) -> str:
    """Write how fast a trend rises."""
    return f"+{_amount(trend.per_step, trend.unit)} a step"


def _amount(value: float, unit: str) -> str:
    return format_bytes(value) if unit == "B" else format_count(value)


def _footer(report: Report, width: int) -> Iterator[str]:
    assert report.run is not None
    run = report.run
    judged = max(0, run.steps - run.warmup_steps)
    told = f"the last {format_count(judged)} judged" if judged and run.warmup_steps else ""
    details = ", ".join(filter(None, (told, run.clock)))
    text = f"watched {format_count(run.steps)} steps"
    text += f" ({details})" if details else ""
    yield text
    if report.overhead:
        yield from _row("cost", cost_text(run, report.overhead), width)
    yield from _row("ended", run.stopped_by, width)
    yield from filter(None, [failure_text(run)])


def failure_text(run: Run) -> str:
    """Say that the program failed, and how; "" when it did not."""
    if run.ended != "failed":
        return ""
    when = "" if run.steps else " before a step was seen"
    return f"the program failed (exit status {run.exit_status}){when}"


def cost_text(run: Run, overhead: Overhead) -> str:
    """Say what each step paid, and apart from it what the closer looks took of the whole run.

    The looks are a few in number however long the run is, so that their share of a short one says
    nothing about a long one.
    """
    text = f"{overhead.per_step_us:.0f} us a step"
    looks_s = overhead.share * run.seconds - run.steps * overhead.per_step_us / 1e6
    if looks_s < LEAST_SHARE * run.seconds:
        return text
    took, whole = format_duration(looks_s), format_duration(run.seconds)
    return f"{text}; looking closer took {took} of {whole}"


def _styled(text: str, report: Report) -> str:
    lines = text.split("\n")
    lines[0] = click.style(lines[0], fg=COLORS[report.verdict or "unclear"], bold=True)
    for number, line in enumerate(lines):
        if line.startswith(("leak (", "library leak (")):
            lines[number] = click.style(line, bold=True)
    return "\n".join(lines)
