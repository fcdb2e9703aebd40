"""What commands share that run a program several times: options, a line of progress, SIGTERM."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn, TypeVar

import click

from leakcheck.cli.program_options import file_option, steps_option, tolerance_option
from leakcheck.errors import UsageError

_Command = TypeVar("_Command", bound=Callable[..., Any])


def trial_options(steady: str, stopped: str) -> Callable[[_Command], _Command]:
    """Return the options --steps, --timeout, --tolerance and --json.

    `steady` says what is told after --steps settled steps, `stopped` what --timeout stops.
    """
    options = (
        steps_option(steady),
        click.option(
            "--timeout",
            default=600.0,
            show_default=True,
            type=click.FloatRange(min=1.0),
            help=f"Seconds after which {stopped} is stopped.",
        ),
        tolerance_option(),
        file_option("--json", "Write the result as JSON too."),
    )

    def decorated(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


def one_process(command: str) -> None:
    """Raise UsageError under a launcher of several ranks: each would run them all."""
    if os.environ.get("WORLD_SIZE", "1") not in ("", "1"):
        raise UsageError(
            f"{command} watches one process: run it without torchrun or another launcher"
        )


def end_trial_at_sigterm() -> None:
    """Leave by an exception at SIGTERM, so that the running trial is ended too."""
    signal.signal(signal.SIGTERM, _leave)


def show_progress(told: str) -> None:
    """Tell which run this is, on one line of a terminal."""
    if sys.stderr.isatty():
        click.echo(f"\r\033[Kleakcheck: {told}", err=True, nl=False)


def clear_progress() -> None:
    """Take that line away."""
    if sys.stderr.isatty():
        click.echo("\r\033[K", err=True, nl=False)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
