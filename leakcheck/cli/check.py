"""`leakcheck check`: find leaks in source files."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leakcheck.cli.choice import Choice, Chosen, choose_files, rules_option, split_path_rules
from leakcheck.cli.findings import Options, conclude, note, with_proofs, without_accepted
from leakcheck.cli.output import COLORS, emit
from leakcheck.errors import EXIT_CLEAN, EXIT_FOUND
from leakcheck.report import FINDING_FORMATS
from leakcheck.writing import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leakcheck.model import Report
    from leakcheck.static.checker import Checker

# Fixing a meter in one file can settle a finding in another; more rounds than this do not.
MOST_ROUNDS = 5


def _reason(_ctx: object, _option: object, given: str | None) -> str | None:
    """Refuse a path that the option swallowed: `--add-ignore src` would mean the whole tree."""
    if given and os.path.exists(given):
        raise click.BadParameter(f'"{given}" is a path; write the reason as --add-ignore=REASON')
    return given


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATHS]...")
@rules_option("--select", help="Run only these rules; ALL for all.")
@rules_option("--extend-select", help="Run these rules as well.")
@rules_option("--ignore", help="Do not run these rules.")
@click.option(
    "--per-file-ignores",
    multiple=True,
    callback=split_path_rules,
    metavar="PATH:RULE",
    help="Do not run RULE on files at PATH.",
)
@click.option("--fix", is_flag=True, help="Apply the fixes that keep the program's behaviour.")
@click.option("--unsafe-fixes", is_flag=True, help="Count the fixes that may change behaviour in.")
@click.option("--diff", is_flag=True, help="Print what --fix would change, and change nothing.")
@click.option(
    "--add-ignore",
    callback=_reason,
    is_flag=False,
    flag_value="",
    metavar="REASON",
    help="Accept every finding by a comment; --add-ignore=REASON gives the reason.",
)
@click.option("--output-format", type=click.Choice(FINDING_FORMATS), help="How to report.")
@click.option("--output-file", type=click.Path(), help="Where to, instead of standard output.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even when something is found.")
@click.option("--statistics", is_flag=True, help="Print how often each rule finds something.")
@click.option("--baseline", type=click.Path(), help="The file of accepted findings.")
@click.option("--no-baseline", is_flag=True, help="Report accepted findings too.")
@click.option(
    "--proofs",
    multiple=True,
    type=click.Path(),
    help="A JSON file of `leakcheck fix`: offer the edits that it proved.",
)
@click.option("--no-cache", is_flag=True, help="Check every file anew.")
@click.option("--cache-dir", type=click.Path(), help="Where to keep findings between runs.")
@click.option(
    "--config", multiple=True, help="A settings file, or a setting: 'ignore = [\"LK1\"]'."
)
@click.option("--isolated", is_flag=True, help="Read no configuration file.")
@click.option("--force-exclude", is_flag=True, help="Exclude also files that PATHS name.")
@click.option("--stdin-filename", type=click.Path(), help="The name of what `-` reads.")
@click.option("--show-files", is_flag=True, help="List the files that would be checked.")
@click.option("-j", "--jobs", type=click.IntRange(1), help="Worker processes; default: all cores.")
@click.option("--color", type=click.Choice(COLORS), default="auto", help="Colour the output.")
@click.option("-q", "--quiet", is_flag=True, help="Print findings and nothing else.")
@click.option("-v", "--verbose", is_flag=True, help="Say which settings count.")
def command(paths: tuple[str, ...], **options: Any) -> None:
    """Find leaks in source files: PATHS are files, notebooks, folders, or `-` for stdin.

    Exits with 0 when nothing is found, 1 when something is, 2 when a file could not be checked.
    """
    names = {field.name for field in fields(Choice)}
    choice = Choice(**{name: value for name, value in options.items() if name in names})
    chosen = Options(**{name: value for name, value in options.items() if name not in names})
    if "-" in paths:
        from leakcheck.cli.stdin import check_stdin

        raise SystemExit(check_stdin(paths, choice, chosen))
    raise SystemExit(_check(choose_files(paths, choice), chosen))


def _check(chosen: Chosen, options: Options) -> int:
    _tell(chosen, options)
    if options.show_files:
        from leakcheck.static.files import display_path

        emit("\n".join(display_path(path) for path in chosen.files), options.output_file)
        return EXIT_CLEAN
    report = chosen.check()
    if options.diff:
        return _diff(chosen, report, options)
    if options.add_ignore is not None:
        _accept(chosen, report, options.add_ignore)
        report = chosen.check()
    if options.fix:
        report = _fix(chosen, report, options)
    report = with_proofs(without_accepted(report, chosen, options), chosen, options)
    return conclude(report, options, _format(chosen, options))


def _format(chosen: Chosen, options: Options) -> str:
    configured = [group.located.config.output_format for group in chosen.groups]
    return options.output_format or (configured[0] if configured else "full")


def _tell(chosen: Chosen, options: Options) -> None:
    if not options.quiet and not chosen.files:
        note("no Python files found")
    if options.verbose:
        for group in chosen.groups:
            note(f"{len(group.files)} files with {group.located.file or 'the default settings'}")


def _fixable(chosen: Chosen, report: Report, unsafe: bool) -> Iterator[tuple[Checker, Path]]:
    """Yield the files in which a fix can be tried, each with the checker to prove it."""
    from leakcheck.static.checker import Checker
    from leakcheck.static.files import display_path
    from leakcheck.static.fix import applicable

    paths = {f.location.path for f in report.findings if applicable(f.fix, unsafe=unsafe)}
    for group in chosen.groups:
        files = [path for path in group.files if display_path(path) in paths]
        checker = Checker(group.settings) if files else None
        for path in files:
            assert checker is not None
            yield checker, path


def _fix(chosen: Chosen, report: Report, options: Options) -> Report:
    unsafe = _unsafe(chosen, options)
    count = 0
    for _ in range(MOST_ROUNDS):
        settled = 0
        for checker, path in _fixable(chosen, report, unsafe):
            rewritten = checker.fix(path, unsafe=unsafe)
            if rewritten is not None:
                replace_file(path, rewritten.raw)
                settled += len(rewritten.settled)
        if not settled:
            break
        count += settled
        report = chosen.check()
    if count and not options.quiet:
        note(f"fixed {count} finding{'s' if count > 1 else ''}")
    return report


def _diff(chosen: Chosen, report: Report, options: Options) -> int:
    from leakcheck.static.files import display_path
    from leakcheck.static.fix import unified_diff

    unsafe = _unsafe(chosen, options)
    patches = []
    for checker, path in _fixable(chosen, report, unsafe):
        rewritten = checker.fix(path, unsafe=unsafe)
        if rewritten is not None:
            patches.append(unified_diff(rewritten.before, rewritten.after, display_path(path)))
    emit("".join(patches).removesuffix("\n"), options.output_file)
    return EXIT_FOUND if patches and not options.exit_zero else EXIT_CLEAN


def _accept(chosen: Chosen, report: Report, reason: str) -> None:
    from leakcheck.static.checker import Checker
    from leakcheck.static.files import display_path

    paths = {finding.location.path for finding in report.findings}
    for group in chosen.groups:
        checker = Checker(group.settings)
        for path in group.files:
            rewritten = checker.accept(path, reason) if display_path(path) in paths else None
            if rewritten is not None:
                replace_file(path, rewritten.raw)


def _unsafe(chosen: Chosen, options: Options) -> bool:
    return options.unsafe_fixes or any(group.located.config.unsafe_fixes for group in chosen.groups)
