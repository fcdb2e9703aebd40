"""Numbers that a program prints differently each time, such as the time of a step.

Two runs of the same text show which they are. A number that varies in one line is left out in every
line of the same words, as two runs may agree on it by chance; of numbers without words it is left
out in that line alone. In a log, where progress is told as often as the clock says, whole lines may
come and go. Files may have another name in each run.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import count

NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
# the time in front of a line of a log, and a warning, with the line of the source that it quotes
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d|\d\d?:\d\d(:\d\d([.,]\d+)?)?")
_WARNING = re.compile(
    r"(?:^|(?<=[\]\r]))[^\]\r\n]+:\d+: \w*Warning: (?:(?:.*\n){1,4}? {2}\S.*\n?|.*\n?)",
    re.MULTILINE,
)
Files = tuple[tuple[str, int], ...]  # each with a hash of what is in it
Varying = frozenset[tuple[str | int, int]]  # a line by its words or place, and which number of it
_WORDS = re.compile(r"[^\W\d_]+")


def varying(one: str, other: str) -> Varying:
    """Return the numbers that differ between two outputs; none if anything else does."""
    found: set[tuple[str | int, int]] = set()
    lines, others = one.splitlines(), other.splitlines()
    if len(lines) != len(others):
        return frozenset()
    for place, (first, second) in enumerate(zip(lines, others, strict=True)):
        words = _words(first)
        if words != _words(second):
            return frozenset()
        pairs = zip(NUMBER.findall(first), NUMBER.findall(second), strict=True)
        line = _called(words, place)
        found.update((line, at) for at, (was, now) in enumerate(pairs) if was != now)
    return frozenset(found)


def logged(text: str) -> list[str]:
    """Return the lines of a log without times and warnings: an edit may make or end a warning."""
    plain = _CLOCK.sub("#", _WARNING.sub("", text))
    return [line for line in re.split(r"[\r\n]+", plain) if line.strip()]


def says_other(one: str, other: str, edited: str) -> bool:
    """Say whether a log lacks, or has otherwise, what two runs of the program as it is agree on.

    Whole lines, the words of all its lines, and the numbers at one place of the lines of the same
    words, one after another.
    """
    first, second, third = (logged(text) for text in (one, other, edited))
    said = [{tuple(_WORDS.findall(line)) for line in lines} for lines in (first, second, third)]
    if said[0] == said[1] != said[2]:
        return True
    columns, others, now = map(_columns, (first, second, third))
    agreed = {at for at in columns.keys() & others.keys() if columns[at] == others[at]}
    numbers = frozenset((columns.keys() | others.keys() | now.keys()) - agreed)
    drawn = {line for line, _ in numbers}  # as often as the clock says, if it is a bar
    for at in agreed:
        was, is_now = columns[at], now.get(at, [])
        if set(was) != set(is_now) if at[0] in drawn else was != is_now:
            return True
    whole = [
        Counter(line for place, line in enumerate(each) if _blanked(line, place, numbers) == line)
        for each in (first, second, third)
    ]
    return bool((whole[0] & whole[1]) - whole[2])


def _columns(lines: list[str]) -> dict[tuple[str | int, int], list[str]]:
    """Return the numbers that stand at the same place of lines of the same words, in their order.

    Lines without a word are known by their place.
    """
    found = defaultdict[tuple[str | int, int], list[str]](list)
    for place, line in enumerate(lines):
        for at, number in enumerate(NUMBER.findall(line)):
            found[_called(_words(line), place), at].append(number)
    return found


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
    lines = enumerate(output.splitlines())
    return "\n".join(_blanked(line, place, numbers) for place, line in lines)


def _blanked(line: str, place: int, numbers: Varying) -> str:
    called, at = _called(_words(line), place), count()
    return NUMBER.sub(lambda each: "#" if (called, next(at)) in numbers else each[0], line)


def _called(words: str, place: int) -> str | int:
    """Return what a line is known by: its words, not how a bar is drawn; its place without any."""
    return " ".join(_WORDS.findall(words)) or place


def _words(line: str) -> str:
    return NUMBER.sub("#", line)
