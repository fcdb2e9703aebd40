"""Write a file that an option asks for, or say in one line why not."""

from __future__ import annotations

from pathlib import Path

from leakcheck.errors import UsageError


def write_file(path: Path, text: str) -> None:
    """Write the text. Raises UsageError for a path that cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
