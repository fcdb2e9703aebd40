"""Child processes, such as a DataLoader's workers: which there are, and what memory is theirs."""

from __future__ import annotations

import os
from collections.abc import Iterable

from leakcheck.runtime.readings.proc import rows_of

CHILDREN = "host.children"  # resident, not of a file, of all child processes together


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
