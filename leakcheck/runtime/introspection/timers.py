"""What an event loop keeps until its time comes: timers that are due some day, or cancelled."""

from __future__ import annotations

import sys
from time import monotonic
from types import MemberDescriptorType
from typing import Any

from leakcheck.runtime.introspection.kinds import bases_of, is_exactly, namespace_of

SOON_S = 3600.0  # what is due later than that is kept for the whole of most runs
MOSTLY = 0.9  # of the elements; others may be kept beside


def is_due_in_time(container: Any) -> bool:
    """Say whether a list is an event loop's, of timers that it lets go of within the hour.

    A cancelled one goes when they are more than a hundred and half of all (asyncio.base_events).
    """
    timer = getattr(sys.modules.get("asyncio.events"), "TimerHandle", None)
    if timer is None or not is_exactly(container, list):
        return False
    elements = container[:]
    due_s = _slot(timer, "_when")
    cancelled = _slot(bases_of(timer)[1], "_cancelled")
    latest_s = monotonic() + SOON_S  # the clock of asyncio's loops
    timers = (one for one in elements if type(one) is timer)
    soon = [one for one in timers if cancelled(one) is True or _is_before(due_s(one), latest_s)]
    return bool(soon) and len(soon) >= MOSTLY * len(elements)


def _is_before(due_s: Any, latest_s: float) -> bool:
    return type(due_s) in (float, int) and due_s <= latest_s


def _slot(kind: type, name: str) -> Any:
    member = namespace_of(kind).get(name)
    return member.__get__ if type(member) is MemberDescriptorType else lambda one: None
