"""`leakcheck baseline`: accept the present findings, so that only new ones are reported."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from leakcheck.cli.choice import Choice, choose_files, locate, rules_option
from leakcheck.errors import EXIT_CLEAN, EXIT_UNCLEAR


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATHS]...")
@rules_option("--select", help="Accept only these rules.")
@rules_option("--extend-select", help="Run these rules as well.")
@rules_option("--ignore", help="Do not run these rules.")
@click.option("--output-file", type=click.Path(), help="The baseline; default: from the settings.")
@click.option("--config", multiple=True, help="A settings file, or a setting in TOML.")
@click.option("--isolated", is_flag=True, help="Read no configuration file.")
def command(paths: tuple[str, ...], output_file: str | None, **options: Any) -> None:
    """Write the file of accepted findings, which `leakcheck check` takes into account.

    It replaces the old file, so entries that nothing matches any more go. Commit it.
    """
    from leakcheck.baseline import make_baseline, write_baseline

    known = {field.name for field in fields(Choice)}
    choice = Choice(**{name: value for name, value in options.items() if name in known})
    report = choose_files(paths, choice).check()
    located = locate(Path(paths[0]) if paths else Path(), choice)
    path = Path(output_file or located.root / located.config.baseline).absolute()
    write_baseline(path, make_baseline(report.findings, path.parent))
    count = len(report.findings)
    click.echo(f"accepted {count} finding{'' if count == 1 else 's'} in {path.name}")
    for each in report.unreadable:
        click.echo(f"leakcheck: {each.path}: {each.reason}", err=True)
    raise SystemExit(EXIT_UNCLEAR if report.unreadable else EXIT_CLEAN)
