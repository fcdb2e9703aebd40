"""A leak in under ten lines, for a failing test."""

from __future__ import annotations

from leakcheck.model import Report, Suspect
from leakcheck.report.plain import one_line
from leakcheck.report.reasons import said
from leakcheck.report.terminal import growth_text, headline, place_text, slope_text, what_text

MOST_SUSPECTS = 2  # four lines each, so that the whole stays under ten


def render(report: Report, *, color: bool = False) -> str:
    """Write the verdict and the first suspects: rate, line, holder, fix, rule."""
    lines = [headline(report)]
    for suspect in report.suspects[:MOST_SUSPECTS]:
        what = f"{growth_text(suspect)}: {what_text(suspect)}, id {suspect.fingerprint}"
        lines.append(f"  {suspect.kind}: {what}")
        lines += [f"    line: {place_text(place)}" for place in suspect.locations[:1]]
        lines += [f"    held by: {suspect.holder}"] if suspect.holder else []
        lines += _remedy(suspect)
    if not report.suspects:
        growing = [trend for trend in report.trends if trend.verdict == "growing"]
        lines += [f"  {trend.resource}: {slope_text(trend)}" for trend in growing[:4]]
    return "\n".join(map(one_line, lines))


def _remedy(suspect: Suspect) -> list[str]:
    rules = f" ({', '.join(suspect.rules)})" if suspect.rules else ""
    return [f"    fix: {said(suspect.fix)}{rules}"] if suspect.fix else []
