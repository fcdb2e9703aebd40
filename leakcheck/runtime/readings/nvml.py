"""What the driver says this process uses of a device: the part no allocator of torch knows.

The device's own count of used memory holds other processes too. NVML counts by process, if the
program's environment has its bindings (`nvidia-ml-py`) and process numbers are the host's.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import Any


class ProcessMeter:
    """Reads this process's bytes on CUDA devices; None for ever once that has failed."""

    def __init__(self) -> None:
        self._nvml: ModuleType | None = None
        self._failed = False

    def used_bytes(self, cuda: Any, index: int) -> int | None:
        """Return what this process uses of the device torch calls `index`; None if not known."""
        if self._failed:
            return None
        try:
            nvml = self._bindings()
            handle = nvml.nvmlDeviceGetHandleByIndex(cuda._get_nvml_device_index(index))
            processes = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
            used = next(each.usedGpuMemory for each in processes if each.pid == os.getpid())
            return int(used)
        except Exception:  # no bindings, no driver, a container with its own process numbers
            self._failed = True
            return None

    def _bindings(self) -> Any:
        if self._nvml is None:
            nvml = importlib.import_module("pynvml")
            nvml.nvmlInit()
            self._nvml = nvml
        return self._nvml
