"""Child processes, such as a DataLoader's workers: which there are, and what memory is theirs."""

from __future__ import annotations

import os
from collections.abc import Iterable

CHILDREN = "host.children"  # resident, not of a file, of all child processes together
_ANONYMOUS = b"RssAnon:"


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
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status", "rb") as status:
                told = next((line for line in status if line.startswith(_ANONYMOUS)), None)
        except OSError:  # it has ended meanwhile
            continue
        total += int(told.split()[1]) << 10 if told else 0
    return total
