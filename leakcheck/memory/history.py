"""Have the device's allocator remember where each new block was asked for, for a short window.

Only live blocks are remembered ("state"), not every event, so nothing grows with the length of the
window. A program that records by itself keeps its own settings, and its stacks serve us too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def allocation_stacks() -> Iterator[bool]:
    """Record Python stacks of new device blocks inside; yields whether they will be there.

    False without a CUDA context, or with a torch that cannot. The program's state is restored.
    """
    import torch

    initialised = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    record: Any = getattr(torch.cuda.memory, "_record_memory_history", None)
    if not initialised or record is None:
        yield False
        return
    if _records_already(torch):
        yield True
        return
    try:
        record(enabled="state", context="state", stacks="python")
    except (TypeError, RuntimeError):  # an older signature, or another allocator plugged in
        yield False
        return
    try:
        yield True
    finally:
        record(enabled=None)


def _records_already(torch: Any) -> bool:
    enabled = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    return bool(enabled is not None and enabled())
