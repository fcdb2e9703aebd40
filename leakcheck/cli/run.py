"""`leakcheck run`: run a program under the sentinel, print the report, exit with the verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from leakcheck.errors import EXIT_BISECT_SKIP, ConfigError, RuleError, UsageError
from leakcheck.units import parse_size_bytes

_Command = TypeVar("_Command", bound=Callable[..., Any])
SETTINGS = ("leakcheck.toml", ".leakcheck.toml", "pyproject.toml")
TOLERANCE_HELP = "Growth of plain Python objects a step that is no leak."


class Size(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """A size in bytes, written as "512 B", "4 KiB" or "1.5 GiB"."""

    name = "size"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read the size; a usage error when it is none."""
        if isinstance(value, int):
            return value
        try:
            return parse_size_bytes(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def tolerance_option(name: str, default: str, told: str) -> Callable[[_Command], _Command]:
    """Return an option that takes a size, of what may grow."""
    return click.option(name, default=default, show_default=True, type=Size(), help=told)


@click.command(
    "run",
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@click.option("-m", "as_module", is_flag=True, help="SCRIPT is a module, run as `python -m` does.")
@click.option(
    "--steps",
    default=1000,
    show_default=True,
    type=click.IntRange(min=30),
    help="Settled steps without growth after which the program counts as steady.",
)
@click.option("--to-end", is_flag=True, help="Let the program finish after the verdict.")
@tolerance_option("--tolerance", "1 KiB", TOLERANCE_HELP)
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
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the report as JSON too.",
)
@click.option(
    "--html",
    "html_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the report as one HTML page too.",
)
@click.option(
    "--refs",
    "refs_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw who holds the worst leaks: FILE.dot, or FILE.svg, .png or .pdf by Graphviz.",
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
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[SCRIPT] [ARGS]...")
def command(as_module: bool, program: tuple[str, ...], **options: object) -> None:
    """Run SCRIPT (or -m MODULE) unmodified and say whether it leaks, where and who holds it.

    The program is stopped, as by sys.exit(), when the verdict is certain: growing and attributed,
    or steady over --steps settled steps. Its standard output is its own; the report goes to
    standard error. Exit status: 0 steady, 1 growing, 2 could not tell; a program that fails keeps
    its own status.
    """
    from leakcheck.cli.session import RunSettings, Session
    from leakcheck.runtime.script import find_module, find_script

    if not program:
        raise UsageError("name a script to run, or a module with -m")
    try:
        find = find_module if as_module else find_script
        target = find(program[0], program[1:])
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
