from __future__ import annotations

from leakcheck.model import DeviceMemory, LedgerPage, LedgerRow, MemoryGrowth, Trend
from leakcheck.runtime.explanation import explained
from leakcheck.runtime.readings.series import Series

STEPS = (10, 15, 20, 25, 30, 36, 42, 50)


def checkpoints(place: str, per_step: dict[str, int], start: dict[str, int]) -> Series:
    series = Series(64)
    for step in STEPS:
        readings = {name: size + per_step.get(name, 0) * step for name, size in start.items()}
        series.append(step, step / 10, {f"{place}.memory.{n}": b for n, b in readings.items()})
    return series


def trend(resource: str, per_step: float, verdict: str) -> Trend:
    return Trend(resource, "B", per_step, per_step, per_step, 0.0, 40, verdict)


def test_what_grows_is_told_by_category_and_the_rest_is_unexplained():
    start = {"parameters": 4000, "temporaries": 100, "unexplained": 9000}
    slow = checkpoints("host", {"temporaries": 100, "unexplained": 300}, start)

    told = explained(slow, {"host.rss": 50_000}, (trend("host.heap", 400.0, "growing"),), 9)

    rows = (
        LedgerRow("parameters", 4000, 0),
        LedgerRow("temporaries", 5100, 0),
        LedgerRow("unexplained", 24000, 0),
    )
    assert told == (
        DeviceMemory(
            device="host",
            measured="device",
            page=LedgerPage("end of a step", 50, rows, 33100, 50_000),
            expected_bytes=4000 + 1100 + 12000,
            unexpected_per_step=400.0,
            grown=(
                MemoryGrowth("unexplained", "", 300.0),
                MemoryGrowth("temporaries", "", 100.0),
            ),
        ),
    )


def test_on_a_device_what_nobody_owns_is_never_expected():
    slow = checkpoints("cuda:0", {}, {"parameters": 4096, "unexplained": 1024})

    (told,) = explained(slow, {"cuda:0.reserved": 2 << 20}, (), 9)

    assert (told.expected_bytes, told.unexpected_bytes) == (4096, 1024)
    assert (told.page.reserved_bytes, told.unexpected_per_step, told.grown) == (2 << 20, 0.0, ())


def test_a_category_that_moves_while_its_place_is_steady_is_no_growth():
    slow = checkpoints("host", {"temporaries": 100}, {"temporaries": 100, "unexplained": 9000})

    (told,) = explained(slow, {}, (trend("host.heap", 100.0, "steady"),), 9)

    assert (told.unexpected_per_step, told.grown) == (0.0, ())


def test_one_checkpoint_explains_nothing():
    slow = checkpoints("host", {}, {"parameters": 4000})

    assert explained(slow, {}, (), 45) == ()
