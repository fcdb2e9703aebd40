"""Sizes and rates as people write and read them: "4 KiB/step", "2 GiB/h", "512 B"."""

from __future__ import annotations

import re

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_FACTORS = {
    "": 1,
    "b": 1,
    "k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10,
    "m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20,
    "g": 1 << 30, "gb": 1 << 30, "gib": 1 << 30,
    "t": 1 << 40, "tb": 1 << 40, "tib": 1 << 40,
}  # fmt: skip
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:[eE][0-9]+)?)\s*([a-zA-Z]*)\s*(?:/\s*step)?\s*\Z")


def parse_size_bytes(text: str) -> int:
    """Read "4 KiB", "4KiB/step", "2g" or "512" as bytes; "KB" is 1024 bytes, as allocators count.

    Raises ValueError when the text is no size.
    """
    match = _SIZE.match(text)
    if match is None or match.group(2).lower() not in _FACTORS:
        raise ValueError(f'"{text}" is not a size; write it as "512 B", "4 KiB" or "1.5 GiB"')
    return round(float(match.group(1)) * _FACTORS[match.group(2).lower()])


def format_bytes(count: float) -> str:
    """Write a byte count with the unit that leaves one to four digits before the point."""
    size, unit = abs(float(count)), 0
    while size >= 1000 and unit < len(UNITS) - 1:
        size /= 1024
        unit += 1
    sign = "-" if count < 0 else ""
    return f"{sign}{_digits(size, exact=unit == 0)} {UNITS[unit]}"


def format_count(count: float) -> str:
    """Write a plain number with no more digits than it needs: 11, 0.1, 12,345."""
    if abs(count) >= 1000 or abs(count - round(count)) < 0.005:
        return f"{round(count):,}"
    return f"{count:,.2f}".rstrip("0").rstrip(".")


def format_duration(seconds: float) -> str:
    """Write a duration in its two leading units at most: 45 s, 3 min, 2.5 h, 12 days."""
    for limit, size, unit in ((90, 1, "s"), (5400, 60, "min"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{format_count(round(seconds / size, 1))} {unit}"
    return f"{format_count(round(seconds / 86400, 1))} days"


def _digits(size: float, *, exact: bool) -> str:
    if exact and size == int(size):
        return str(int(size))
    return f"{size:.0f}" if size >= 100 else f"{size:.1f}"
