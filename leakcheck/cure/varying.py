"""Numbers that a program prints differently each time, such as the time of a step.

Two runs of the same text show which they are. A number that varies in one line is left out in every
line of the same words, as two runs may agree on it by chance. In a log, where progress is told as
often as the clock says, whole lines may come and go. Files may have another name in each run.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import count

NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
# the time in front of a line of a log, and a warning, with the line of the source that it quotes
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d|\d\d?:\d\d(:\d\d([.,]\d+)?)?")
_WARNING = re.compile(r"^.+:\d+: \w*Warning: (?:(?:.*\n){1,4}? {2}\S.*\n?|.*\n?)", re.MULTILINE)
Files = tuple[tuple[str, int], ...]  # each with a hash of what is in it
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


def logged(text: str) -> list[str]:
    """Return the lines of a log without times and warnings: an edit may make or end a warning."""
    plain = _CLOCK.sub("#", _WARNING.sub("", text))
    return [line for line in re.split(r"[\r\n]+", plain) if line.strip()]


def says_less(one: str, other: str, edited: str) -> bool:
    """Say whether a log lacks a line that two runs of the program as it is have in common."""
    first, second, third = (Counter(logged(text)) for text in (one, other, edited))
    return bool((first & second) - third)


def renamed_alike(one: Files, other: Files, edited: Files) -> bool:
    """Say whether files differ only in names that differ in each run, as those of mkdtemp do."""
    always = set(one) & set(other)
    named = [
        sorted(crc for path, crc in each if (path, crc) not in always)
        for each in (one, other, edited)
    ]
    return one != other and always <= set(edited) and named[0] == named[1] == named[2]


def without(output: str, numbers: Varying) -> str:
    """Return an output with `#` in the place of each of these numbers."""
    return "\n".join(_blanked(line, numbers) for line in output.splitlines())


def _blanked(line: str, numbers: Varying) -> str:
    words, at = _words(line), count()
    return NUMBER.sub(lambda each: "#" if (words, next(at)) in numbers else each[0], line)


def _words(line: str) -> str:
    return NUMBER.sub("#", line)
