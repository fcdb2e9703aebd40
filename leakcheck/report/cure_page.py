"""What `fix` found as one self-contained HTML page: before and after, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from html import escape as verbatim
from itertools import zip_longest
from pathlib import Path
from string import Template

from leakcheck import __version__
from leakcheck.experiments import Attempt, Cure, Revision
from leakcheck.report.cure import measures, render
from leakcheck.report.plain import escape

FILES = Path(__file__).with_name("html")
CONTEXT_LINES = 3


def render_page(cure: Cure) -> str:
    """Write the whole page."""
    head, _, _ = render(cure).partition("\n")
    badge, _, told = head.partition(": ")
    proved = cure.chosen is not None and cure.chosen.outcome == "proved"
    return Template(_file("cure.html")).substitute(
        version=__version__,
        title=escape(f"leakcheck: {badge}"),
        page_css=_file("page.css"),
        verdict="steady" if proved or badge == "steady" else "growing",
        badge=escape(badge),
        headline=escape(told),
        measures=_measures(cure, cure.chosen) if cure.chosen else "",
        changes="".join(map(_change, cure.chosen.revisions)) if cure.chosen else "",
        text=verbatim(render(cure)),
    )


def _file(name: str) -> str:
    return (FILES / name).read_text(encoding="utf-8")


def _measures(cure: Cure, attempt: Attempt) -> str:
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(before)}</td><td>{escape(after)}</td></tr>"
        for name, before, after in measures(cure.before, attempt)
    )
    return _table("What was measured", "", rows)


def _change(revision: Revision) -> str:
    rows = "".join(
        f"<tr>{_side(before, changed)}{_side(after, changed)}</tr>"
        for before, after, changed in _side_by_side(revision)
    )
    return _table(revision.path, "trace", rows)


def _side(line: str | None, changed: bool) -> str:
    text = verbatim((line or "").rstrip("\r\n"))
    mark = ' class="source"' if changed and text else ""
    return f"<td><pre{mark}>{text}</pre></td>"


def _table(title: str, kind: str, rows: str) -> str:
    corner = "" if kind else "<th></th>"
    heads = f"<thead><tr>{corner}<th>before</th><th>after</th></tr></thead>"
    return (
        f'<h2>{escape(title)}</h2><div class="scroll" tabindex="0" role="region" '
        f'aria-label="{escape(title)}"><table class="{kind}">{heads}'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _side_by_side(revision: Revision) -> Iterator[tuple[str | None, str | None, bool]]:
    """Yield the lines of both texts around what is changed, None where one has none."""
    before, after = revision.before.splitlines(), revision.after.splitlines()
    matched = SequenceMatcher(None, before, after, autojunk=False)
    for number, group in enumerate(matched.get_grouped_opcodes(CONTEXT_LINES)):
        if number:
            yield "...", "...", False
        for kind, old, old_end, new, new_end in group:
            for pair in zip_longest(before[old:old_end], after[new:new_end]):
                yield *pair, kind != "equal"
