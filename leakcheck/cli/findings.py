"""What becomes of the findings of a check: some are accepted, the rest are printed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leakcheck.cli.output import emit, wants_color
from leakcheck.errors import EXIT_CLEAN, EXIT_FOUND
from leakcheck.model import Finding, Report
from leakcheck.report import render

if TYPE_CHECKING:
    from leakcheck.cli.choice import Chosen


@dataclass(frozen=True, slots=True)
class Options:
    """What to do with the findings, as given on the command line."""

    fix: bool
    unsafe_fixes: bool
    diff: bool
    add_ignore: str | None
    output_format: str | None
    output_file: str | None
    exit_zero: bool
    statistics: bool
    baseline: str | None
    no_baseline: bool
    stdin_filename: str | None
    show_files: bool
    color: str
    quiet: bool
    verbose: bool
    proofs: tuple[str, ...]


def conclude(report: Report, options: Options, format: str) -> int:
    """Print the report, and return the exit status that goes with it."""
    color = wants_color(options.color, to_file=options.output_file is not None)
    if options.statistics:
        text = _statistics(report, format)
    elif format == "full" and options.quiet:
        from leakcheck.report.full import render as render_full

        text = render_full(report, color=color, summary=False)
    else:
        text = render(report, format, color=color)
    emit(text, options.output_file, color=color)
    clean = options.exit_zero and report.exit_code == EXIT_FOUND
    return EXIT_CLEAN if clean else report.exit_code


def without_accepted(report: Report, chosen: Chosen, options: Options) -> Report:
    """Take away what the baselines accept; stale entries are told on stderr."""
    from leakcheck.baseline import compare, read_baseline, relative_path

    if options.no_baseline:
        return report
    findings = report.findings
    for path in sorted(_baselines(chosen, options)):
        judged = {relative_path(file, path.parent) for file in chosen.files}
        compared = compare(findings, read_baseline(path), path.parent, judged)
        findings = compared.new
        if compared.stale and not options.quiet:
            count = sum(entry.count for entry in compared.stale)
            gone = "finding is gone" if count == 1 else "findings are gone"
            note(f"{path.name}: {count} accepted {gone}; run `leakcheck baseline`")
    return replace(report, findings=findings)


def with_proofs(report: Report, chosen: Chosen, options: Options) -> Report:
    """Give findings the edits that runs have proved, where their files are still the same."""
    from leakcheck.proved_edits import offered, read_proofs
    from leakcheck.static.checker import open_document
    from leakcheck.static.files import display_path

    own = (g.located.root / name for g in chosen.groups for name in g.located.config.proofs)
    proofs = read_proofs([*map(Path, options.proofs), *dict.fromkeys(own)])
    found: list[Finding] = []
    files = {display_path(path): path for path in chosen.files} if proofs else {}
    for path, group in groupby(report.findings, key=lambda each: each.location.path):
        text = open_document(files[path]).text if path in files else ""
        found += offered(group, text, proofs)
    return replace(report, findings=tuple(found))


def note(text: str) -> None:
    """Print a line about the check, not a finding, on stderr."""
    click.echo(f"leakcheck: {text}", err=True)


def _baselines(chosen: Chosen, options: Options) -> set[Path]:
    if options.baseline:
        return {Path(options.baseline).absolute()}
    paths = {group.located.root / group.located.config.baseline for group in chosen.groups}
    return {path for path in paths if path.is_file()}


def _statistics(report: Report, format: str) -> str:
    counts = Counter((finding.code, finding.rule) for finding in report.findings)
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    if format == "json":
        import json

        return json.dumps([{"code": c, "rule": r, "count": n} for (c, r), n in rows], indent=2)
    return "\n".join(f"{count:>5}  {code}  {rule}" for (code, rule), count in rows)
