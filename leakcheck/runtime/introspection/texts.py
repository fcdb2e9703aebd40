"""The source of the program's files, as tracebacks have it: also of a notebook's cell."""

from __future__ import annotations

import linecache
from functools import lru_cache

from leakcheck.source.tree import File


def text_of(path: str) -> str:
    """Return the text of a file, "" if it has none."""
    return "".join(linecache.getlines(path))


@lru_cache(maxsize=64)
def file_of(path: str) -> File:
    """Return a file, read once; an empty one if it is no Python, or very long."""
    return File(path, text_of(path))
