"""What /dev/shm holds: blocks of shared memory, which stay until somebody unlinks them.

A block outlives who made it and is in no process's size once it is closed, so nothing else that is
read shows one that is never unlinked. All processes' blocks are there side by side: that one of
the program's lines adds to them, in time with its steps, is the only evidence that they are its
own. They are counted by name, as torch and multiprocessing unlink what they pass to each other at
once.
"""

from __future__ import annotations

import os
import sys

FOLDER = "/dev/shm"
BLOCKS, BYTES = "shared-memory", "host.shared"
_MAKES_BLOCKS = "multiprocessing.shared_memory"


def read() -> dict[str, int]:
    """Return how many blocks there are, and their bytes; {} where the program can make none."""
    if _MAKES_BLOCKS not in sys.modules:
        return {}
    try:
        return {BLOCKS: count(), BYTES: _bytes_in_use()}
    except (AttributeError, OSError):  # not on this system
        return {}


def count() -> int:
    """Return how many blocks there are (8 us for a few); OSError where they have no folder."""
    return len(os.listdir(FOLDER))


def _bytes_in_use() -> int:
    there = os.statvfs(FOLDER)
    return (there.f_blocks - there.f_bfree) * there.f_frsize


def room_bytes() -> int | None:
    """Return how many bytes may still be shared, None if that is not known."""
    try:
        there = os.statvfs(FOLDER)
    except (AttributeError, OSError):
        return None
    return there.f_bavail * there.f_frsize
