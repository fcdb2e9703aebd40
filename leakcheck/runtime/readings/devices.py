"""What the devices of the program hold, as torch's allocators count it: 15 us for each device.

Nothing here imports torch or touches a device the program has not: a backend that is not in
`sys.modules` or not initialised is not asked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import NamedTuple

from leakcheck.memory.blocks import DEFAULT_POOL
from leakcheck.runtime.readings.meters import in_use_at, place_name
from leakcheck.runtime.readings.nvml import ProcessMeter

PINNED = "host.pinned"
PRIVATE = ".private-pools"  # segments that CUDA graphs and MemPools keep for themselves
ASK_ALL_EVERY = 16  # times: a node has eight devices, and most programs use one


class Statistics(NamedTuple):
    """Bytes that an allocator has given out, the most it ever had, and what it has reserved."""

    allocated: int
    peak: int
    reserved: int


class Device(NamedTuple):
    """One device of a backend such as `torch.cuda`."""

    name: str  # cuda:0
    backend: ModuleType
    number: int

    def statistics(self) -> Statistics:
        """Ask the allocator once for all: each function for one number makes 200 of them."""
        try:
            told = self.backend.memory_stats_as_nested_dict(self.number)
        except (RuntimeError, AttributeError):  # a plugged-in allocator, or an old torch.xpu
            told = {}
        if not told:
            return Statistics(0, 0, 0)
        allocated, reserved = (told[f"{what}_bytes"]["all"] for what in ("allocated", "reserved"))
        most = max(allocated["current"], allocated["peak"])
        return Statistics(int(allocated["current"]), int(most), int(reserved["current"]))

    def info(self) -> tuple[int, int] | None:
        """Return free and total bytes, as the driver tells them; None if the backend does not."""
        if not hasattr(self.backend, "mem_get_info"):
            return None
        free, total = self.backend.mem_get_info(self.number)
        return int(free), int(total)


class UsedDevices:
    """The devices that the program has used: the others are asked again only now and then."""

    def __init__(self) -> None:
        self._used: list[Device] = []
        self._asked = 0

    def __iter__(self) -> Iterator[tuple[Device, Statistics]]:
        everywhere = not self._used or self._asked % ASK_ALL_EVERY == 0
        self._asked += 1
        asked = [(one, one.statistics()) for one in (_devices() if everywhere else self._used)]
        used = [each for each in asked if each[1].reserved]
        if everywhere:
            self._used = [device for device, _ in used]
        return iter(used)


class DeviceMeter:
    """Reads torch's allocators on devices the program has used; {} before it uses one."""

    def __init__(self) -> None:
        self._process = ProcessMeter()
        self._devices = UsedDevices()
        self._most_bytes: dict[str, int] = {}  # ever allocated, by device

    def read(self) -> dict[str, int]:
        """Return allocated and reserved bytes of each device in use."""
        readings: dict[str, int] = {}
        for device, (allocated, peak, reserved) in self._devices:
            name = device.name
            most = self._most_bytes[name] = max(peak, self._most_bytes.get(name, 0))
            readings[in_use_at(name)] = allocated
            readings[f"{name}.reserved"] = reserved
            readings[f"{name}.reserved-allocated"] = reserved - most
        mps = _initialised("torch.mps")
        if mps is not None and mps.current_allocated_memory():
            readings[in_use_at("mps")] = int(mps.current_allocated_memory())
            readings["mps.reserved"] = int(mps.driver_allocated_memory())
        return readings

    def read_slow(self, quick: dict[str, int]) -> dict[str, int]:
        """Return the bytes used on each device outside torch's allocator: needs a context there.

        And those of pinned host memory that torch has given out.
        """
        readings: dict[str, int] = {}
        if pinned := _pinned_bytes():
            readings[PINNED] = pinned
        for device in _devices():
            reserved = quick.get(f"{device.name}.reserved")
            if not reserved:
                continue
            if (info := device.info()) is not None:
                free, total = info
                readings[f"{device.name}.external"] = total - free - reserved
            if device.name.startswith("cuda"):
                used = self._process.used_bytes(device.backend, device.number)
                if used is not None:
                    readings[f"{device.name}.outside"] = used - reserved
        return readings

    def read_pools(self) -> dict[str, int]:
        """Return what is reserved in private pools by device: lists all blocks, so asked rarely."""
        ask = getattr(_initialised("torch.cuda"), "memory_snapshot", None)
        if ask is None:
            return {}
        try:
            segments = ask(include_traces=False)
        except TypeError:  # torch 2.10 and before
            segments = ask()
        except RuntimeError:  # a plugged-in allocator
            return {}
        sizes: dict[str, int] = {}
        for one in segments:
            if tuple(one.get("segment_pool_id", DEFAULT_POOL)) != DEFAULT_POOL:
                name = f"cuda:{one['device']}{PRIVATE}"
                sizes[name] = sizes.get(name, 0) + int(one["total_size"])
        return sizes

    def capacity_bytes(self, name: str) -> int | None:
        """Return how much memory the device has in all, if its backend tells."""
        infos = (device.info() for device in _devices() if device.name == name)
        info = next(infos, None)
        return None if info is None else info[1]


def _pinned_bytes() -> int:
    ask = getattr(_initialised("torch.cuda"), "host_memory_stats_as_nested_dict", None)
    told = ask() if ask is not None else {}  # not in torch 2.4
    return int(told.get("active_bytes", {}).get("current", 0))


def devices_reader() -> Callable[[], int]:
    """Return a function that reads what is in use on all devices together."""
    devices = UsedDevices()
    return lambda: sum(told.allocated for _, told in devices)


def devices_in_use() -> list[str]:
    """Return the resources that count what torch's allocators gave out, of each device in use."""
    return [in_use_at(device.name) for device, _ in UsedDevices()]


def device_reader(resource: str) -> Callable[[], int] | None:
    """Return a function that reads what a device's allocator gave out, None for others."""
    for device in _devices():
        if device.name == place_name(resource):
            return lambda: device.statistics().allocated
    return None


def _devices() -> Iterator[Device]:
    for name in ("cuda", "xpu"):
        if (backend := _initialised(f"torch.{name}")) is not None:
            for number in range(int(backend.device_count())):
                yield Device(f"{name}:{number}", backend, number)


def _initialised(module: str) -> ModuleType | None:
    backend = sys.modules.get(module)
    if backend is None:
        return None
    if module == "torch.mps":
        torch = sys.modules["torch"]
        return backend if torch.backends.mps.is_available() else None
    return backend if getattr(backend, "is_initialized", bool)() else None
