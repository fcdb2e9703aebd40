"""How many keys may a dictionary get? Sample numbers and cells of a grid are drawn from so many.

Steps, times and addresses go on for ever, and tell no number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from leakcheck.runtime.introspection.kinds import is_exactly

FEWEST_KEYS = 24
MOST_KEYS = 4096  # that are looked at, evenly spaced
# of the range of all keys, that the older half of them has, and the newer half: numbers that
# ascend show a half each; of 24 drawn at random one half has less in 17 of 100 cases
LEAST_COVERED = 0.7
MOST_DIGITS = 12
# what id() gives: objects lie at multiples of 8 bytes or more, on a 64-bit machine far up; a heap
# that is reused hands them out in any order
LEAST_ADDRESS = 1 << 32
ALIGNMENT_BYTES = 8
_DIGITS = re.compile(r"[0-9]+")


def number_of_keys(container: Any) -> int | None:
    """Return about how many keys there are for a dictionary, None if they do not tell.

    Keys are whole numbers, text with such in it (`sample-17`), or tuples of both, that came in any
    order. The range of n that are drawn at random is about (n - 1) / (n + 1) of what they are drawn
    from (the German tank problem).
    """
    if not issubclass(type(container), dict) or dict.__len__(container) < FEWEST_KEYS:
        return None
    keys = list(dict.keys(container))
    read = [_as_row(key) for key in keys[:: math.ceil(len(keys) / MOST_KEYS)]]
    rows = [numbers for _, numbers in read]
    if not rows[0] or len({text for text, _ in read}) > 1:
        return None
    half = len(rows) // 2
    number = 1
    for values in zip(*rows, strict=True):
        span = _span(values)
        if _are_addresses(values):
            return None
        if min(_span(values[:half]), _span(values[half:])) < LEAST_COVERED * span:
            return None
        all_seen = len(set(values)) == span
        number *= span if all_seen else math.ceil(span * (len(rows) + 1) / (len(rows) - 1))
    return max(number, len(keys))


def _as_row(key: Any) -> tuple[str, Sequence[int]]:
    """Return the text of a key without its numbers, and these; no numbers of any other key."""
    parts = key if type(key) is tuple else (key,)
    if not all(is_exactly(part, int, str) for part in parts):
        return "", ()
    read = [("#", (part,)) if type(part) is int else _in_text(part) for part in parts]
    return "\n".join(text for text, _ in read), tuple(each for _, row in read for each in row)


def _in_text(text: str) -> tuple[str, tuple[int, ...]]:
    numbers = _DIGITS.findall(text)
    if any(len(each) > MOST_DIGITS for each in numbers):  # part of a hash
        return text, ()
    return _DIGITS.sub("#", text), tuple(map(int, numbers))


def _are_addresses(values: Sequence[int]) -> bool:
    return min(values) >= LEAST_ADDRESS and not any(each % ALIGNMENT_BYTES for each in values)


def _span(values: Sequence[int]) -> int:
    return max(values) - min(values) + 1
