"""What the kernel says in /proc of a process, and which children it has, as a DataLoader's workers.

The files whose rows are read have them as `RssAnon:  512 kB`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

CHILDREN = "host.children"  # resident, not of a file, of all child processes together


def rows_of(path: str, *names: bytes) -> tuple[int, ...] | None:
    """Return some rows of such a file in bytes; None where there is no such file, or no such row.

    None, too, of a process that has ended meanwhile, or that is not ours.
    """
    try:
        with open(path, "rb") as file:
            text = file.read()
        after = (text.split(b"\n%b:" % name, 1)[1] for name in names)
        return tuple(int(row.split(None, 1)[0]) << 10 for row in after)
    except (OSError, ValueError, IndexError):
        return None


def child_pids() -> list[int] | None:
    """Return the processes that this one has started and not waited for; None if nothing tells."""
    try:
        found: list[int] = []
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/children", "rb") as children:
                found += map(int, children.read().split())
        return found
    except OSError:
        return None


def anonymous_bytes(pids: Iterable[int]) -> int:
    """Return what these processes hold resident beside files, shared pages included (30 us each).

    What the parent had when it forked counts from the start, so writing to it changes nothing.
    """
    return sum(sum(rows_of(f"/proc/{pid}/status", b"RssAnon") or ()) for pid in pids)
