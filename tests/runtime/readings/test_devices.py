"""Devices are asked only when the program uses them, and no answer of theirs ends the watch."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from leakcheck.runtime.readings import devices
from leakcheck.runtime.readings.devices import ASK_ALL_EVERY, DeviceMeter


class Backend(SimpleNamespace):
    """Stands in for `torch.cuda`: what each device has allocated and reserved."""

    def __init__(self, *held: tuple[int, int]) -> None:
        super().__init__(held=list(held), asked=[], ready=True)

    def is_initialized(self) -> bool:
        return self.ready

    def device_count(self) -> int:
        return len(self.held)

    def memory_stats_as_nested_dict(self, number: int) -> dict[str, Any]:
        self.asked.append(number)
        allocated, reserved = self.held[number]
        return {
            "allocated_bytes": {"all": {"current": allocated, "peak": allocated}},
            "reserved_bytes": {"all": {"current": reserved}},
        }

    def mem_get_info(self, number: int) -> tuple[int, int]:
        return 60 << 20, 100 << 20


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Backend:
    backend = Backend((512, 2 << 20), (0, 0), (0, 0))
    monkeypatch.setitem(sys.modules, "torch.cuda", backend)
    return backend


def test_a_device_in_use_is_read_and_the_others_only_now_and_then(cuda):
    meter = DeviceMeter()

    told = [meter.read() for _ in range(ASK_ALL_EVERY)]

    assert told[0] == {
        "cuda:0.allocated": 512,
        "cuda:0.reserved": 2 << 20,
        "cuda:0.reserved-allocated": (2 << 20) - 512,
    }
    assert cuda.asked == [0, 1, 2] + [0] * (ASK_ALL_EVERY - 1)


def test_a_device_that_comes_into_use_is_found(cuda):
    meter = DeviceMeter()
    meter.read()
    cuda.held[1] = (1024, 2 << 20)

    assert any("cuda:1.allocated" in meter.read() for _ in range(ASK_ALL_EVERY))


def test_a_backend_that_is_not_initialised_is_not_asked(cuda):
    cuda.ready = False

    assert DeviceMeter().read() == {}
    assert cuda.asked == []


def test_an_allocator_that_tells_nothing_is_no_error(cuda, monkeypatch):
    def refuse(number: int) -> dict[str, Any]:
        raise RuntimeError("CUDAPluggableAllocator does not yet support getDeviceStats")

    monkeypatch.setattr(cuda, "memory_stats_as_nested_dict", refuse)

    assert DeviceMeter().read() == {}
    assert devices.devices_in_use() == []


def test_what_lies_outside_the_allocator_is_told_of_devices_in_use(cuda):
    meter = DeviceMeter()

    slow = meter.read_slow(meter.read())

    assert slow["cuda:0.external"] == (40 << 20) - (2 << 20)
    assert not any(name.startswith(("cuda:1", "cuda:2")) for name in slow)
    assert meter.capacity_bytes("cuda:0") == 100 << 20


def test_pinned_memory_that_is_in_use_is_told_where_torch_counts_it(cuda, monkeypatch):
    meter = DeviceMeter()
    assert "host.pinned" not in meter.read_slow(meter.read())

    told = {"active_bytes": {"current": 4096, "peak": 8192}}
    monkeypatch.setattr(cuda, "host_memory_stats_as_nested_dict", lambda: told, raising=False)

    assert meter.read_slow(meter.read())["host.pinned"] == 4096


def test_what_private_pools_keep_is_read_where_there_are_any(cuda, monkeypatch):
    segments = [
        {"device": 0, "total_size": 2 << 20, "segment_pool_id": (0, 0)},
        {"device": 0, "total_size": 4 << 20, "segment_pool_id": (0, 1)},
        {"device": 0, "total_size": 6 << 20, "segment_pool_id": (0, 2)},
    ]
    meter = DeviceMeter()
    assert "cuda:0.private-pools" not in meter.read_pools()

    monkeypatch.setattr(cuda, "memory_snapshot", lambda include_traces: segments, raising=False)

    assert meter.read_pools()["cuda:0.private-pools"] == 10 << 20


def test_an_older_torch_lists_its_segments_without_being_told_what_to_leave_out(cuda, monkeypatch):
    segments = [{"device": 0, "total_size": 4 << 20, "segment_pool_id": (0, 1)}]
    monkeypatch.setattr(cuda, "memory_snapshot", lambda: segments, raising=False)
    meter = DeviceMeter()

    assert meter.read_pools()["cuda:0.private-pools"] == 4 << 20
