"""Where the text of a command goes: a terminal, a pipe, a file; in colour or not."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from leakcheck.errors import UsageError
from leakcheck.writing import replace_file

COLORS = ("auto", "always", "never")


def wants_color(choice: str, *, to_file: bool = False) -> bool:
    """Decide on colour: the option first, then FORCE_COLOR and NO_COLOR, then the terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return not to_file and sys.stdout is not None and sys.stdout.isatty()


def emit(text: str, file: str | None = None, *, color: bool = False) -> None:
    """Print a text, or write it to a file; WriteError when it cannot be written.

    What the output's encoding cannot hold is escaped.
    """
    if file is None or file == "-":
        _print(text, color)
        return
    replace_file(file, f"{text}\n")


def emit_bytes(raw: bytes) -> None:
    """Write bytes to standard output as they are; UsageError when they cannot be written."""
    if sys.stdout is None:
        return
    with _told_when_full():
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()


def _print(text: str, color: bool) -> None:
    if not text or sys.stdout is None:  # None: the program was started with it closed
        return
    encoding = sys.stdout.encoding or "utf-8"
    with _told_when_full():
        click.echo(text.encode(encoding, "backslashreplace").decode(encoding), color=color)


@contextmanager
def _told_when_full() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        # what is still buffered must not fail once more when the interpreter exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        reason = (error.strerror or "").lower()
        raise UsageError(f"standard output cannot be written: {reason}") from None
