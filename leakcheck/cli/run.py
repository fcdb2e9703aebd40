"""`leakcheck run`: run a program under the sentinel, print the report, exit with the verdict."""

from __future__ import annotations

from pathlib import Path

import click

from leakcheck.cli.program_options import (
    Size,
    file_option,
    module_option,
    program_argument,
    program_command,
    program_named,
    steps_option,
    tolerance_option,
)
from leakcheck.errors import EXIT_BISECT_SKIP, ConfigError, RuleError, UsageError

SETTINGS = ("leakcheck.toml", ".leakcheck.toml", "pyproject.toml")


@program_command("run")
@module_option()
@steps_option("the program counts as steady")
@click.option("--to-end", is_flag=True, help="Let the program finish after the verdict.")
@tolerance_option()
@tolerance_option(
    "--tolerance-hourly",
    "64 MiB",
    "More than this an hour is looked into, in a run of over a minute, however little a step.",
)
@tolerance_option(
    "--tolerance-total",
    "32 MiB",
    "More than this in the whole run is looked into, however little a step.",
)
@click.option("--host-limit", type=Size(), help="Stop when the process holds more than this.")
@click.option("--device-limit", type=Size(), help="Stop when a device's allocator holds more.")
@click.option(
    "--every-seconds",
    type=click.FloatRange(min=0.01),
    help="Count time instead of steps: one every so many seconds.",
)
@file_option("--json", "Write the report as JSON too.")
@file_option("--html", "Write the report as one HTML page too.")
@file_option(
    "--refs", "Draw who holds the worst leaks: FILE.dot, or FILE.svg, .png or .pdf by Graphviz."
)
@click.option(
    "--record",
    "record_folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the readings to DIR/rank-<n>.jsonl while the program runs.",
)
@click.option(
    "--known-leaks",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="A TOML file of leaks of libraries that you know, beside those of `known-leaks` in "
    "[tool.leakcheck]; may be given more than once.",
)
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever the verdict.")
@click.option(
    "--bisect",
    is_flag=True,
    help="Exit 0 (steady), 1 (growing), 125 (cannot tell) or 128 (wrong options), as `git bisect "
    "run` counts.",
)
@program_argument()
def command(as_module: bool, program: tuple[str, ...], **options: object) -> None:
    """Run SCRIPT (or -m MODULE) unmodified and say whether it leaks, where and who holds it.

    The program is stopped, as by sys.exit(), when the verdict is certain: growing and attributed,
    or steady over --steps settled steps. Its standard output is its own; the report goes to
    standard error. Exit status: 0 steady, 1 growing, 2 could not tell; a program that fails keeps
    its own status.
    """
    from leakcheck.cli.session import RunSettings, Session
    from leakcheck.runtime.script import find_module, find_script

    name, *arguments = program_named(program)
    try:
        find = find_module if as_module else find_script
        target = find(name, tuple(arguments))
        _heed(options.pop("known_leaks"))  # type: ignore[arg-type]
    except (UsageError, ConfigError, RuleError) as error:
        if options["bisect"]:  # other commits have it; status 2 would call this one bad
            error.exit_code = EXIT_BISECT_SKIP
        raise
    settings = RunSettings(**options)  # type: ignore[arg-type]
    raise SystemExit(Session(target, settings).run())


def _heed(files: tuple[Path, ...]) -> None:
    """Read the leaks and the words that the project knows: after the run is too late to say no."""
    if files or _is_set():  # else the program has no module more in its process
        from leakcheck import known
        from leakcheck.config import find_config
        from leakcheck.source import words

        located = find_config(Path.cwd())
        known.use([*files, *(located.root / file for file in located.config.known_leaks)])
        for folder in located.config.rule_sets:
            words.add_from(located.root / folder)


def _is_set() -> bool:
    """Say whether a file of settings may have one that a run heeds."""
    folder = Path.cwd()
    settings = (each / name for each in (folder, *folder.parents) for name in SETTINGS)
    texts = [file.read_bytes() for file in settings if file.is_file()]
    return any(name in text for text in texts for name in (b"known-leaks", b"rule-sets"))
