"""Stop before the machine is exhausted: a limit per process on the host, one on each device.

The device limit counts what torch's allocator has reserved, not the context, as allocators' own
limits do.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from leakcheck.units import format_bytes

_CGROUP_FILES = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """The most RSS and the most reserved bytes on any one device; None is no limit."""

    host_bytes: int | None = None
    device_bytes: int | None = None

    def __bool__(self) -> bool:
        """Whether there is a limit at all."""
        return self != Limits()

    def exceeded(self, readings: Mapping[str, int]) -> str:
        """Name the limit that the readings exceed, or return ""."""
        rss_bytes = readings.get("host.rss", 0)
        if self.host_bytes is not None and rss_bytes > self.host_bytes:
            limit = format_bytes(self.host_bytes)
            return f"host memory reached {format_bytes(rss_bytes)}, over the limit of {limit}"
        if self.device_bytes is None:
            return ""
        for resource, value in readings.items():
            if resource.endswith(".reserved") and value > self.device_bytes:
                device, limit = resource.removesuffix(".reserved"), format_bytes(self.device_bytes)
                return f"{device} memory reached {format_bytes(value)}, over the limit of {limit}"
        return ""


def host_room_bytes() -> int:
    """Return how much memory the process can still take: the machine's, or the container's."""
    room = int(psutil.virtual_memory().available)
    rooms = [_group_room_bytes(Path(limit), Path(usage)) for limit, usage in _CGROUP_FILES]
    return max(0, min([room, *(each for each in rooms if each is not None)]))


def _group_room_bytes(limit: Path, usage: Path) -> int | None:
    try:
        return int(limit.read_text()) - int(usage.read_text())
    except (OSError, ValueError):  # no such group, or "max"
        return None


def shapes_kept() -> int:
    """Return for how many shapes oneDNN keeps memory at most in this process.

    Its documentation, "Primitive Cache": ONEDNN_PRIMITIVE_CACHE_CAPACITY, by default 1,024.
    """
    asked = os.environ.get("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "")
    return int(asked) if asked.isdecimal() else 1024
