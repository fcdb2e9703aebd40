"""Numbers that a program prints differently each time, such as the time of a step.

Two runs of the same text show which they are. A number that varies in one line is left out in every
line of the same words, as two runs may agree on it by chance.
"""

from __future__ import annotations

import re
from itertools import count

NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
Varying = frozenset[tuple[str, int]]  # the words of a line, and which number of it


def varying(one: str, other: str) -> Varying:
    """Return the numbers that differ between two outputs; none if anything else does."""
    found: set[tuple[str, int]] = set()
    lines, others = one.splitlines(), other.splitlines()
    if len(lines) != len(others):
        return frozenset()
    for first, second in zip(lines, others, strict=True):
        words = _words(first)
        if words != _words(second):
            return frozenset()
        pairs = zip(NUMBER.findall(first), NUMBER.findall(second), strict=True)
        found.update((words, at) for at, (was, now) in enumerate(pairs) if was != now)
    return frozenset(found)


def without(output: str, numbers: Varying) -> str:
    """Return an output with `#` in the place of each of these numbers."""
    return "\n".join(_blanked(line, numbers) for line in output.splitlines())


def _blanked(line: str, numbers: Varying) -> str:
    words, at = _words(line), count()
    return NUMBER.sub(lambda each: "#" if (words, next(at)) in numbers else each[0], line)


def _words(line: str) -> str:
    return NUMBER.sub("#", line)
