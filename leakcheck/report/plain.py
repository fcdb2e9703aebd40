"""Text from source files made safe to print: no control characters reach a terminal or a log."""

from __future__ import annotations

import html

from rich.cells import cell_len


def one_line(text: str) -> str:
    """Write any text on one line, with what is not printable replaced by a visible escape."""
    return "".join(map(_visible, text))


def escape(text: str) -> str:
    """Write any text as HTML or XML: no markup, and nothing that turns the reading order."""
    return html.escape(one_line(text))


def columns(text: str) -> int:
    """Count the terminal columns that printable text takes; wide characters take two."""
    return cell_len(text)


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()
