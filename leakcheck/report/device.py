"""Device memory in words: how much is expected, how much is not, and what grew where."""

from __future__ import annotations

from textwrap import wrap

from leakcheck.model import Category, DeviceMemory, LedgerPage
from leakcheck.units import format_bytes

WIDTH = 80


def category_name(place: str, category: Category) -> str:
    """Name a category for people: on the host, code and Python's objects need no explanation."""
    return "outside tensors" if (place, category) == ("host", "unexplained") else category


def memory_lines(memory: DeviceMemory) -> list[str]:
    """Say a device's expected and unexpected live bytes, then each growth on a line of its own.

    Last come the categories, the largest first.
    """
    page = memory.page
    source = "" if memory.measured == "device" else " (traced, no device)"
    expected, rest = format_bytes(memory.expected_bytes), format_bytes(memory.unexpected_bytes)
    head = f"{memory.device} memory, {page.phase}{source}: {expected} expected, {rest} unexpected"
    if memory.unexpected_per_step:
        head += f", {format_bytes(memory.unexpected_per_step)} a step"
    lines = [head]
    for growth in memory.grown:
        place = f"  {growth.site}" if growth.site else ""
        name = category_name(memory.device, growth.category)
        lines.append(f"  {name} +{format_bytes(growth.bytes_per_step)} a step{place}")
    rows = sorted(page.rows, key=lambda row: -row.size_bytes)
    told = [
        f"{format_bytes(row.size_bytes)} {category_name(memory.device, row.category)}"
        for row in rows
        if row.size_bytes
    ]
    text = f"of {format_bytes(page.allocated_bytes)}: {', '.join(told)}"
    return [*lines, *wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")]


def page_lines(page: LedgerPage, most_sites: int = 0) -> list[str]:
    """A page of the ledger by category; then the places that hold most of it, if asked for."""
    lines = [f"{page.phase}: {format_bytes(page.allocated_bytes)}"]
    lines += [
        f"  {row.category:<18}{format_bytes(row.size_bytes):>10}"
        for row in page.rows
        if row.size_bytes
    ]
    for category, site, size in page.sites[:most_sites]:
        lines.append(f"    {format_bytes(size):>10}  {category}, {site}")
    return lines
