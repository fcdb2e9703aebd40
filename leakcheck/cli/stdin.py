"""`leakcheck check -`: one file's text from standard input, as editors send it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leakcheck.cli.choice import Choice, Chosen, Group, locate, settings
from leakcheck.cli.findings import Options, conclude, without_accepted
from leakcheck.cli.output import emit, emit_bytes
from leakcheck.errors import EXIT_CLEAN, EXIT_FOUND, SourceError, UsageError
from leakcheck.model import Finding, Report, Unreadable
from leakcheck.report import render

if TYPE_CHECKING:
    from leakcheck.static.checker import Checker
    from leakcheck.static.files import Source
    from leakcheck.static.notebook import Notebook


def check_stdin(paths: Sequence[str], choice: Choice, options: Options) -> int:
    """Check standard input; with --fix the fixed text goes to stdout and the report to stderr."""
    from leakcheck.static.checker import Checker, open_document
    from leakcheck.static.files import absolute, display_path

    if len(paths) > 1:
        raise UsageError("`-` reads standard input, and cannot be given with other paths")
    if options.add_ignore is not None:
        raise UsageError("--add-ignore writes to files, and cannot be given with `-`")
    path = absolute(Path(options.stdin_filename or "stdin.py"))
    located = locate(path, choice)
    told = settings(located, choice)
    checker = Checker(told)
    try:
        document = open_document(path, _read())
        if options.fix or options.diff:
            return _rewrite(document, path, checker, options, located.config.unsafe_fixes)
        findings = _placed(document, checker.check_text(document.text, path))
        report = Report(findings=findings, checked_files=1)
    except SourceError as error:
        report = Report(unreadable=(Unreadable(display_path(path), str(error)),))
    report = without_accepted(report, Chosen((Group(located, told, (path,)),)), options)
    return conclude(report, options, options.output_format or located.config.output_format)


def _read() -> bytes:
    if sys.stdin is None:  # the program was started with it closed
        raise UsageError("standard input is closed")
    return sys.stdin.buffer.read()


def _rewrite(
    document: Source | Notebook, path: Path, checker: Checker, options: Options, unsafe: bool
) -> int:
    from leakcheck.static.files import display_path
    from leakcheck.static.fix import unified_diff

    fixed = checker.fix_text(document.text, path, unsafe=unsafe or options.unsafe_fixes)
    if options.diff:
        emit(unified_diff(document.text, fixed.text, display_path(path)).removesuffix("\n"))
        return EXIT_FOUND if fixed.fixed and not options.exit_zero else EXIT_CLEAN
    emit_bytes(document.encode(fixed.text))
    report = Report(findings=_placed(document, fixed.left, fixed.text), checked_files=1)
    if not options.quiet:
        click.echo(render(report, "concise"), err=True, nl=bool(report.findings))
    return EXIT_CLEAN if options.exit_zero else report.exit_code


def _placed(
    document: Source | Notebook, findings: tuple[Finding, ...], text: str | None = None
) -> tuple[Finding, ...]:
    from leakcheck.static.notebook import Notebook, in_cells

    if not isinstance(document, Notebook):
        return findings
    return in_cells(document.text if text is None else text, findings)
