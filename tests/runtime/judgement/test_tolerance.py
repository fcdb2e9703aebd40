"""What is little a step is looked into once it is much in an hour, or in all."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from leakcheck.cli.run import command
from leakcheck.model import Report
from leakcheck.runtime.judgement import tolerance
from leakcheck.runtime.judgement.judge import creep_per_step
from leakcheck.runtime.judgement.tolerance import Tolerance
from leakcheck.runtime.readings.series import Series
from leakcheck.runtime.sentinel import Sentinel
from leakcheck.units import parse_size_bytes

MIB = 1 << 20


@pytest.mark.parametrize(
    ("per_step", "steps", "elapsed_s", "passed"),
    [
        (100, 300_000, 3.0, ""),
        (100, 400_000, 4.0, "in all"),  # 38 MiB in four seconds
        (1000, 1000, 59.0, ""),
        (1000, 1000, 61.0, ""),  # 56 MiB an hour
        (1000, 1200, 61.0, "an hour"),
        (1000, 400_000, 400_000.0, "in all"),
    ],
)
def test_it_is_passed_by_what_was_gained_in_all_or_in_an_hour(per_step, steps, elapsed_s, passed):
    assert Tolerance().passed(per_step, steps, elapsed_s) == passed


def test_a_log_of_numbers_may_gain_any_amount_an_hour_but_not_in_all():
    assert Tolerance(500).for_numbers("an hour") == 500
    assert Tolerance(500).for_numbers("in all") == 0


def test_the_command_s_defaults_are_those_of_the_sentinel():
    options = {option.name: option.default for option in command.params}
    names = ("tolerance", "tolerance_hourly", "tolerance_total")

    assert Tolerance(*(parse_size_bytes(options[name]) for name in names)) == Tolerance()


def resident(level: Callable[[int], int]) -> Series:
    series = Series()
    for step in range(0, 4000, 20):
        series.append(step, 0.0, {"host.rss": level(step)})
    return series


def test_what_climbs_all_along_creeps_however_slowly():
    assert 47 < creep_per_step(resident(lambda step: 50 * step // 4096 * 4096), 0) < 53


@pytest.mark.parametrize(
    "level",
    [
        lambda step: 100 * MIB,
        lambda step: 100 * MIB + 40 * MIB * (step > 2000),
        lambda step: 100 * MIB + 500 * min(step, 2000),
        lambda step: 100 * MIB + 500 * (step % 800),
        lambda step: 100 * MIB + 4 * MIB * (step // 600),
        lambda step: 100 * MIB + 20_000 * step - 30 * MIB * (step > 3500),
    ],
    ids=["flat", "jumped once", "full at half of the time", "given back", "rare", "fell once"],
)
def test_what_stands_jumps_fills_up_or_falls_does_not(level):
    assert creep_per_step(resident(level), 0) == 0.0


def test_what_is_in_use_on_the_heap_creeps_though_the_allocator_keeps_much_beside_it():
    series = Series()
    for step in range(0, 4000, 20):
        kept = 4 * MIB * (step // 600 % 3)
        series.append(step, 0.0, {"host.rss": 50 * step + kept, "host.heap": 50 * step})

    assert 47 < creep_per_step(series, 0) < 51


@pytest.mark.parametrize(("outside_per_step", "creeps_per_step"), [(0, 0), (300, 300)])
def test_of_what_is_resident_the_pages_of_a_file_do_not_creep(outside_per_step, creeps_per_step):
    series = Series()
    for step in range(0, 4000, 20):
        levels = {"host.rss": 30_000 * step, "host.heap": 5 * MIB}
        series.append(step, 0.0, levels | {"host.rss-heap": outside_per_step * step})

    assert creep_per_step(series, 0) == pytest.approx(creeps_per_step)


def test_a_late_climb_counts_no_more_than_the_whole_run_gained():
    late = resident(lambda step: 100 * MIB + 8000 * max(0, step - 3000))

    assert 2600 < creep_per_step(late, 3000) < 2700


def test_what_grows_beside_what_has_passed_is_no_cause_of_it():
    tolerance = Tolerance()

    assert tolerance.beside(7000.0) == 700
    assert tolerance.beside(50.0) == 5
    assert tolerance.beside(100_000.0) == 1024  # no more than nobody minds anyway


def watched(add: Callable[[int], object], steps: int = 9000, **options: Any) -> Report:
    with Sentinel(**options) as sentinel:
        for step in range(steps):
            add(step)
            time.sleep(0.0002)  # of a step that takes no time few readings can be afforded
            sentinel.step()
    return sentinel.report()


def test_names_that_are_little_a_step_are_growing_once_they_are_much_in_all():
    names: list[str] = []  # of more than 512 bytes: smaller ones fill a warm heap first

    report = watched(lambda step: names.append(f"{step}" + 600 * "x"), tolerance_total_bytes=MIB)

    assert report.verdict == "growing", report.reason
    assert [str(one.holder) for one in report.suspects] == [
        "local `names` in test_names_that_are_little_a_step_are_growing_once_they_are_much_in_all()"
    ]


def test_below_that_they_are_steady():
    names: list[str] = []

    report = watched(lambda step: names.append(f"{step}" + 600 * "x"))

    assert report.verdict == "steady", report.reason


def test_in_a_long_run_names_are_growing_and_a_log_of_numbers_is_not(monkeypatch):
    monkeypatch.setattr(tolerance, "LONG_RUN_S", 0.1)
    names: list[str] = []
    numbers: list[float] = []

    named = watched(lambda step: names.append(f"{step}" + 600 * "x"))
    logged = watched(lambda step: numbers.extend([step + 0.5 + n for n in range(10)]))

    assert (named.verdict, logged.verdict) == ("growing", "steady"), (named.reason, logged.reason)
