"""How many keys may a dictionary get? Sample numbers and cells of a grid are drawn from so many.

Steps, times and addresses go on for ever, and tell no number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

FEWEST_KEYS = 24
MOST_KEYS = 4096  # that are looked at, evenly spaced
# of the range of all keys, that the older half of them has, and the newer half: numbers that
# ascend show a half each; of 24 drawn at random one half has less in 17 of 100 cases
LEAST_COVERED = 0.7


def number_of_keys(container: Any) -> int | None:
    """Return about how many keys there are for a dictionary, None if they do not tell.

    Keys are whole numbers, or tuples of such, that came in any order. The range of n that are drawn
    at random is about (n - 1) / (n + 1) of what they are drawn from (the German tank problem).
    """
    if not issubclass(type(container), dict) or dict.__len__(container) < FEWEST_KEYS:
        return None
    keys = list(dict.keys(container))
    rows = [_as_row(key) for key in keys[:: math.ceil(len(keys) / MOST_KEYS)]]
    if not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        return None
    half = len(rows) // 2
    number = 1
    for values in zip(*rows, strict=True):
        span = _span(values)
        if min(_span(values[:half]), _span(values[half:])) < LEAST_COVERED * span:
            return None
        all_seen = len(set(values)) == span
        number *= span if all_seen else math.ceil(span * (len(rows) + 1) / (len(rows) - 1))
    return max(number, len(keys))


def _as_row(key: Any) -> Sequence[int]:
    """Return a number or a tuple of numbers as a tuple, empty for any other key."""
    row = key if type(key) is tuple else (key,)
    return row if all(type(part) is int for part in row) else ()


def _span(values: Sequence[int]) -> int:
    return max(values) - min(values) + 1
