"""`leakcheck` with the tensors of the host counted as a device's: what it says without a GPU.

    cc -O2 -shared -fPIC -o device.so device.c -lpthread
    LD_PRELOAD=./device.so python run.py run train.py

Where tensors are made, what they hold and how a step ends is the program's own; only what leakcheck
asks of the device is answered here. Not stood in for: the allocator's history and its segments.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import torch

from leakcheck.cli import leakcheck
from leakcheck.runtime.introspection import corners, tensors
from leakcheck.runtime.readings import categories

DEVICE, CAPACITY_BYTES = "cuda:0", 80 << 30
device = ctypes.CDLL(None)
for name in ("device_allocated", "device_peak", "device_reserved"):
    getattr(device, name).restype = ctypes.c_size_t
device.device_owns.argtypes = [ctypes.c_size_t]


def statistics(_: int = 0) -> dict[str, Any]:
    allocated, peak = device.device_allocated(), device.device_peak()
    reserved = device.device_reserved()
    return {
        "allocated_bytes": {"all": {"current": allocated, "peak": peak}},
        "reserved_bytes": {"all": {"current": reserved}},
    }


def segments(*_: object, **__: object) -> list[dict[str, Any]]:
    size = device.device_reserved()
    return [{"device": 0, "address": 0, "total_size": size, "blocks": []}]


def no_history(*_: object, **__: object) -> None:
    raise RuntimeError("a stand-in keeps no history")


def stand_in() -> None:
    """Answer for `torch.cuda`, and say of each tensor there that it is on the device."""
    answers: dict[str, Any] = {
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "memory_stats_as_nested_dict": statistics,
        "memory_allocated": lambda _=0: device.device_allocated(),
        "mem_get_info": lambda _=0: (CAPACITY_BYTES - device.device_reserved(), CAPACITY_BYTES),
        "memory_snapshot": segments,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    torch.cuda.memory._record_memory_history = no_history
    storage_of, corner_of, device_of = categories._storage, corners._tensor, tensors.device_of

    def storage(*given: Any) -> tuple[str, int, int] | None:
        found = storage_of(*given)
        return (DEVICE, *found[1:]) if found and device.device_owns(found[1]) else found

    def corner(tensor: Any) -> Any:
        found = corner_of(tensor)
        return None if found and device.device_owns(found[0]) else found

    categories._storage, corners._tensor = storage, corner
    tensors.device_of = lambda tensor: device_of(tensor).replace("cpu", DEVICE)
    device.device_begin()


if __name__ == "__main__":
    stand_in()
    leakcheck(sys.argv[1:], prog_name="leakcheck")
