"""torch.distributed's flight recorder: a ring of the last collectives that fills for a long time.

It keeps 2,000 entries of about a kilobyte (measured with gloo and torch 2.13: a correct DDP loop
grows 0.5 to 3 KiB a step until it is full and not at all afterwards), so growth of the heap alone
proves nothing before that, unless it is more than all entries together take.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Literal

SIZE_VARIABLES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
DEFAULT_ENTRIES = 2000
MOST_ENTRY_BYTES = 8 << 10  # 0.3 to 4.9 KiB, more where the stack is deeper (gloo, torch 2.13)
_DUMPS = ("_dump_fr_trace_json", "_dump_nccl_trace_json")  # private: each may be absent
_last_seen: Literal["empty", "filling", "full"] = "empty"


def note() -> None:
    """See to it that a recorder that fills is known of, even if its process group goes at once.

    Asked until it was seen to hold an entry: telling 200 takes 3 ms, 2,000 take 40 (measured).
    """
    if _last_seen == "empty":
        filling()


def filling() -> bool:
    """Say whether the recorder of this process holds entries and is not full yet.

    Once the process group is gone, as at the end of most programs, the last answer stands; so it
    does once the ring is full.
    """
    global _last_seen
    distributed = sys.modules.get("torch.distributed")
    c10d = sys.modules.get("torch._C._distributed_c10d")
    initialized = getattr(distributed, "is_initialized", bool)()
    if c10d is not None and initialized and _last_seen != "full":
        counts = [count for name in _DUMPS if (count := _entries(getattr(c10d, name, None)))]
        if counts:
            _last_seen = "full" if min(counts) >= _capacity() else "filling"
    return _last_seen == "filling"


def explains(gained_bytes: float) -> bool:
    """Say whether a recorder that fills may be all of what the heap gained."""
    return gained_bytes <= _capacity() * MOST_ENTRY_BYTES and filling()


def _entries(dump: object) -> int:
    if not callable(dump):
        return 0
    try:
        return len(json.loads(dump()).get("entries", ()))
    except (RuntimeError, TypeError, ValueError, AttributeError):
        return 0


def _capacity() -> int:
    for name in SIZE_VARIABLES:
        text = os.environ.get(name, "")
        if text.isdecimal():
            return int(text)
    return DEFAULT_ENTRIES
