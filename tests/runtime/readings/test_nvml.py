from __future__ import annotations

import os
import sys
from types import ModuleType, SimpleNamespace

from leakcheck.runtime.readings.nvml import ProcessMeter

CUDA = SimpleNamespace(_get_nvml_device_index=lambda index: index + 4)


def bindings(*processes: tuple[int, int]) -> ModuleType:
    nvml = ModuleType("pynvml")
    running = [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in processes]
    nvml.nvmlInit = lambda: None
    nvml.nvmlDeviceGetHandleByIndex = lambda index: index
    nvml.nvmlDeviceGetComputeRunningProcesses = lambda handle: running if handle == 5 else []
    return nvml


def test_only_this_process_counts(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", bindings((1, 9 << 30), (os.getpid(), 3 << 20)))

    assert ProcessMeter().used_bytes(CUDA, 1) == 3 << 20


def test_where_the_process_is_not_listed_it_is_never_asked_for_again(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", bindings((1, 9 << 30)))
    meter = ProcessMeter()

    assert meter.used_bytes(CUDA, 1) is None
    monkeypatch.setitem(sys.modules, "pynvml", bindings((os.getpid(), 3 << 20)))
    assert meter.used_bytes(CUDA, 1) is None


def test_without_bindings_nothing_is_known(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)

    assert ProcessMeter().used_bytes(CUDA, 0) is None
