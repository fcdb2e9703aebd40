"""Text from source files made safe to print: no control characters reach a terminal or a log."""

from __future__ import annotations

import html
from unicodedata import category, east_asian_width


def one_line(text: str) -> str:
    """Write any text on one line, with what is not printable replaced by a visible escape."""
    return "".join(map(_visible, text))


def escape(text: str) -> str:
    """Write any text as HTML or XML: no markup, and nothing that turns the reading order."""
    return html.escape(one_line(text))


def columns(text: str) -> int:
    """Count the terminal columns of printable text: a wide character takes two, a mark none."""
    return sum(map(_width, text))


def _width(character: str) -> int:
    if category(character) in ("Mn", "Me"):  # drawn over the character before
        return 0
    return 2 if east_asian_width(character) in "FW" else 1


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()
