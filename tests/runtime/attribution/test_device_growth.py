from __future__ import annotations

import pytest

from leakcheck.memory import window as memory_window
from leakcheck.model import (
    DeviceMemory,
    LedgerPage,
    LedgerRow,
    MemoryGrowth,
    Notice,
    Place,
    Reason,
    Report,
)
from leakcheck.runtime.attribution.device_growth import DeviceGrowth, place_of
from leakcheck.runtime.readings import watching
from leakcheck.runtime.sentinel import Sentinel

PAGE = LedgerPage("end of a step", 40, (LedgerRow("unexplained", 51_200, 100),), 51_200, 2 << 20)
GROWN = (MemoryGrowth("unexplained", "train.py:41 step", 512.0),)
SEEN = DeviceMemory("cuda:0", "device", PAGE, 0, 512.0, GROWN)


class Window:
    """Stands in for `GrowthWindow` where there is no device."""

    failing = ""

    def __init__(self, device: int) -> None:
        self.memory: DeviceMemory | None = None
        self.device, self.steps, self.ended = device, 0, 0

    def __enter__(self) -> Window:
        opened.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.ended += 1
        self.memory = SEEN if self.steps else None

    def step(self, number: int) -> None:
        if self.failing:
            raise RuntimeError(self.failing)
        self.steps += 1


opened: list[Window] = []


@pytest.fixture(autouse=True)
def no_device(monkeypatch):
    opened.clear()
    monkeypatch.setattr(memory_window, "GrowthWindow", Window)


def test_only_devices_that_grow_are_looked_at():
    growth = DeviceGrowth(("graph.nodes", "cuda:1.allocated", "host.heap", "mps.allocated"))
    growth.step(1)

    assert growth.close() == (SEEN,)
    assert [(window.device, window.ended) for window in opened] == [(1, 1)]


def test_what_fails_is_told_once_and_the_window_is_closed(monkeypatch):
    monkeypatch.setattr(Window, "failing", "the context is gone")
    growth = DeviceGrowth(("cuda:0.allocated",))
    growth.step(1)
    growth.step(2)

    assert growth.close() == ()
    told = Reason.of("device-unread", error="RuntimeError: the context is gone")
    assert growth.notices == (Notice("note", told),)
    assert opened[0].ended == 1


def test_the_place_of_the_largest_growth_is_read_from_its_site():
    assert place_of(SEEN) == (Place("train.py", 41, "", function="step"),)
    assert place_of(DeviceMemory("cuda:0", "device", PAGE, 0, 512.0, ())) == ()


class Meter(watching.DeviceMeter):
    """A device with one reading that grows and that nobody holds in Python."""

    resource, per_step = "cuda:0.allocated", 512
    steps = 0  # of the loop: how often the meter is read hangs on what a reading costs

    def __init__(self) -> None:
        Meter.steps = 0

    def read(self) -> dict[str, int]:
        return {"cuda:0.allocated": 1 << 20, "cuda:0.reserved": 2 << 20} | self._growing()

    def read_slow(self, quick: dict[str, int]) -> dict[str, int]:
        return self._growing() if self.resource.endswith(".outside") else {}

    def capacity_bytes(self, device: str) -> int | None:
        return 1 << 30

    def _growing(self) -> dict[str, int]:
        return {self.resource: (1 << 20) + self.steps * self.per_step}


def report_of(steps: int) -> Report:
    with Sentinel() as sentinel:
        for _ in range(steps):
            Meter.steps += 1
            sentinel.step()
            if sentinel.certain:
                break
    return sentinel.report()


def test_a_leak_that_only_the_device_shows_is_told_with_category_and_place(monkeypatch):
    monkeypatch.setattr(watching, "DeviceMeter", Meter)
    monkeypatch.setattr(watching, "DEVICES_EVERY", 1)

    report = report_of(900)

    assert report.verdict == "growing"
    (suspect,) = report.suspects
    assert (suspect.kind, suspect.locations) == ("device", place_of(SEEN))
    (memory,) = [memory for memory in report.memory if memory.device == "cuda:0"]
    assert (memory.page, memory.grown) == (PAGE, GROWN)


@pytest.mark.parametrize(
    ("resource", "kind"),
    [("cuda:0.reserved-allocated", "fragmentation"), ("cuda:0.outside", "external")],
)
def test_memory_of_the_device_that_is_not_in_use_has_a_kind_of_its_own(monkeypatch, resource, kind):
    monkeypatch.setattr(Meter, "resource", resource)
    monkeypatch.setattr(Meter, "per_step", 256 << 10)
    monkeypatch.setattr(watching, "DeviceMeter", Meter)
    monkeypatch.setattr(watching, "DEVICES_EVERY", 1)

    report = report_of(1500)

    assert (report.verdict, report.exit_code) == ("growing", 1)
    assert [suspect.kind for suspect in report.suspects] == [kind]


def test_a_device_whose_reserve_settles_is_steady(monkeypatch):
    monkeypatch.setattr(watching, "DeviceMeter", Filling)
    monkeypatch.setattr(watching, "DEVICES_EVERY", 1)

    assert report_of(1500).verdict == "steady"


class Filling(Meter):
    """Ragged batches: segments are added ever more rarely."""

    def _growing(self) -> dict[str, int]:
        segments = self.steps.bit_length()
        return {"cuda:0.reserved-allocated": segments * (20 << 20)}
