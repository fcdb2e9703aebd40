"""What the commands share that run a program: its name and arguments, sizes, files to write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from leakcheck.errors import UsageError
from leakcheck.units import parse_size_bytes

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Option = Callable[[_Command], _Command]


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


def program_command(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a command whose options end where the program's own begin."""
    settings = {"allow_interspersed_args": False}
    return click.command(name, context_settings=settings, options_metavar="[OPTIONS]")


def module_option(told: str = "SCRIPT is a module, run as `python -m` does.") -> _Option[Any]:
    """Return the option -m."""
    return click.option("-m", "as_module", is_flag=True, help=told)


def program_argument() -> _Option[Any]:
    """Return the argument that is the program with its own arguments."""
    metavar = "[SCRIPT] [ARGS]..."
    return click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar=metavar)


def program_named(program: tuple[str, ...]) -> tuple[str, ...]:
    """Return the program that was named. Raises UsageError when none was."""
    if not program:
        raise UsageError("name a script to run, or a module with -m")
    return program


def module_and_arguments(
    program: tuple[str, ...], *, as_module: bool
) -> tuple[str | None, tuple[str, ...]]:
    """Return the module, None for a script, and what the program is started with.

    Raises UsageError where there is no such script, or none is named.
    """
    from leakcheck.runtime.script import find_script

    if as_module:
        return program_named(program)[0], program[1:]
    find_script(program_named(program)[0], program[1:])
    return None, program


def steps_option(steady: str) -> _Option[Any]:
    """Return the option --steps; `steady` says what is told after so many."""
    return click.option(
        "--steps",
        default=1000,
        show_default=True,
        type=click.IntRange(min=30),
        help=f"Settled steps without growth after which {steady}.",
    )


def tolerance_option(
    name: str = "--tolerance",
    default: str = "1 KiB",
    told: str = "Growth of plain Python objects a step that is no leak.",
) -> _Option[Any]:
    """Return an option that takes a size, of what may grow."""
    return click.option(name, default=default, show_default=True, type=Size(), help=told)


def file_option(name: str, told: str) -> _Option[Any]:
    """Return the option that names a file to write: --json gives `json_path`."""
    destination = f"{name.removeprefix('--')}_path"
    path = click.Path(path_type=Path, dir_okay=False)
    return click.option(name, destination, type=path, help=told)
