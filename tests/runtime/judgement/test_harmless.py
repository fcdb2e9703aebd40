"""Growth that a program limits: does it still go on when the run ends?"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.model import Notice, Reason, Suspect
from leakcheck.runtime.judgement.harmless import (
    Excuses,
    Limited,
    dated,
    excuse,
    is_garbage,
    newest,
    stopped,
    without_contradicted,
)
from leakcheck.runtime.judgement.judge import Reading
from leakcheck.runtime.judgement.stairs import Stairs
from leakcheck.runtime.judgement.trend import fit
from leakcheck.runtime.readings import flight_recorder
from leakcheck.runtime.readings.meters import Garbage
from leakcheck.runtime.readings.series import GARBAGE, Series
from tests.holders import held_by

LIMITED = Limited(Reason.of("limited", names=("global `kept`",)), 100, 1100, {"tensors": 1.0})


def tensors(full_at: int, until: int, every: int = 100) -> list[Series]:
    series = Series(64)
    for step in range(0, until + 1, every):
        series.append(step, 0.0, {"tensors": min(step, full_at)})
    return [series]


def test_what_was_full_long_before_the_end_has_stopped():
    assert not LIMITED.goes_on(tensors(full_at=300, until=1000))


def test_of_what_had_no_rate_nothing_is_known():
    assert replace(LIMITED, rates={"tensors": 0.0}).goes_on(tensors(full_at=300, until=1000))


def test_what_is_emptied_now_and_then_has_stopped():
    series = Series(512)
    for step in range(0, 1200, 7):
        series.append(step, 0.0, {"tensors": step % 90})

    assert not LIMITED.goes_on([series])


def test_what_goes_on_more_slowly_goes_on():
    series = Series(64)
    for step in range(0, 1200, 50):
        series.append(step, 0.0, {"tensors": min(step, 300) + step // 3})

    assert LIMITED.goes_on([series])


def test_what_a_last_collection_freed_does_not_hide_what_goes_on():
    """Kept at each step, read rarely; 2,600 blocks of garbage wait and are freed at the end."""
    series = Series(64)
    for step in (0, 3000, 4500, 6000, 7500, 9000, 11_000, 14_000):
        series.append(step, 0.0, {"python.blocks": 2000 + step})
    series.append(14_000, 0.0, {"python.blocks": 13_400, GARBAGE: 60_000})

    assert replace(LIMITED, rates={"python.blocks": 1.0}).goes_on([series])


def test_what_was_full_is_not_thought_to_go_on_by_garbage_that_waits():
    series = Series(64)
    for step in (0, 3000, 4500, 6000, 7500, 9000, 11_000, 14_000):
        series.append(step, 0.0, {"python.blocks": min(step, 3000), GARBAGE: 0})
        series.append(step, 0.0, {"python.blocks": min(step, 3000) + 50})

    assert not replace(LIMITED, rates={"python.blocks": 1.0}).goes_on([series])


def test_what_is_not_full_at_the_end_goes_on():
    assert LIMITED.goes_on(tensors(full_at=10**6, until=1000))


def test_what_was_full_in_the_last_quarter_has_stopped():
    assert not LIMITED.goes_on(tensors(full_at=1900, until=2400, every=25))
    assert LIMITED.goes_on(tensors(full_at=2300, until=2400, every=25))


def test_blocks_that_wait_for_the_collector_are_not_what_was_limited():
    series = Series(64)
    for step in range(0, 1001, 100):
        series.append(step, 0.0, {"tensors": min(step, 300), "python.blocks": 2 * step})

    assert not replace(LIMITED, rates={"tensors": 1.0, "python.blocks": 3.0}).goes_on([series])
    assert replace(LIMITED, rates={"python.blocks": 3.0}).goes_on([series])


def test_what_was_read_too_rarely_since_may_go_on():
    assert LIMITED.goes_on(tensors(full_at=150, until=200))


def test_what_was_full_at_the_last_two_of_few_readings_has_stopped():
    series = Series(64)
    for step, value in ((200, 200), (1107, 1107), (1633, 1633), (1792, 1700), (1951, 1700)):
        series.append(step, 0.0, {"tensors": value})

    assert not LIMITED.goes_on([series])


def test_what_grows_evenly_goes_on_however_unevenly_it_is_read():
    series = Series(64)
    for step in (946, 1185, 1391, 6323, 6853, 7425, 8045, 8721, 9449):
        series.append(step, 0.0, {"tensors": 2 * step // 3})

    assert replace(LIMITED, rates={"tensors": 2 / 3}).goes_on([series])


def test_a_resource_that_was_not_read_may_go_on():
    assert LIMITED.goes_on([Series(8)])


QUEUE, TABLE = (
    Suspect("tensor", "tensors", 1.0, holder=held_by(f"global `{n}`")) for n in ("q", "table")
)


def test_what_slowed_and_gains_less_again_is_filled_by_key():
    excuses = Excuses()
    excuses.note_slower((TABLE,), {"tensors": 0.9})

    told = Reason.of("slows", holders="global `table`")
    assert excuses.has_slowed((TABLE,))
    assert not excuses.has_slowed((QUEUE,))
    slower = (replace(TABLE, objects_per_step=0.3),)
    assert excuses.slowing(slower, {"tensors": 0.3}) == told
    assert excuses.slowing(slower, {"tensors": 0.28}) is None  # as fast as when it was asked last
    assert excuses.slowing(slower, {"tensors": 0.1}) == told


def test_what_goes_on_as_fast_or_never_slowed_is_not_filled_by_key():
    excuses = Excuses()
    excuses.note_slower((TABLE,), {"tensors": 0.9})
    excuses.note_slower((), {"tensors": 5.0})

    assert excuses.slowing((TABLE,), {"tensors": 0.8}) is None
    assert excuses.slowing((TABLE,), {"host.heap": 10.0}) is None
    assert excuses.slowing((QUEUE,), {"tensors": 0.1}) is None
    assert excuses.slowing((), {"tensors": 0.1}) is None


def test_what_gains_as_much_by_its_own_size_has_not_slowed_though_the_heap_has():
    even, less = (replace(TABLE, objects_per_step=None, bytes_per_step=b) for b in (8192.0, 4096.0))
    excuses = Excuses()
    excuses.note_slower((even,), {"host.heap": 16384.0})

    assert excuses.slowing((even,), {"host.heap": 8192.0}) is None
    assert excuses.slowing((less,), {"host.heap": 8192.0}) == Reason.of(
        "slows", holders="global `table`"
    )


@pytest.mark.parametrize(("full_at", "in_doubt"), [(5000, []), (500, ["tensors"])])
def test_what_stays_of_what_comes_and_goes_may_be_what_fills_up(full_at, in_doubt):
    series = Series(64)
    for step in range(0, 1000, 30):
        series.append(step, 0.0, {"tensors": step + 2 * (step % 100)})
    excuses = Excuses()
    excuses.note_filling(["tensors"], full_at)

    assert [one.resource for one in excuses.still_climbing([series], 1024)] == in_doubt


def test_what_has_no_limit_is_not_waited_for():
    assert Excuses().limit(None, {}, 100, graph=False) == 0


AT_A, AT_B = (
    Reason.of("limited", limits=(Reason.of("limit", path=path, line=line),))
    for path, line in (("a.py", 3), ("b.py", 9))
)


def test_a_limit_is_waited_for_twice_as_long_each_time():
    excuses = Excuses()

    assert excuses.limit(AT_A, {}, 100, graph=False) == 1100
    assert excuses.limit(AT_A, {}, 700, graph=False) == 1100  # the same one
    assert excuses.limit(AT_A, {}, 1100, graph=False) == 3100
    assert excuses.limit(AT_A, {}, 3300, graph=False) == 9700


def test_a_limit_of_what_keeps_a_graph_is_waited_for_once_and_not_as_long():
    excuses = Excuses()

    assert excuses.limit(AT_B, {}, 1200, graph=True) == 1400
    assert excuses.limit(AT_B, {}, 1400, graph=True) == 0


def test_a_limit_is_in_force_until_then():
    excuses = Excuses()
    assert not excuses.is_limited(100)

    excuses.limit(AT_A, {}, 100, graph=True)

    assert [excuses.is_limited(step) for step in (100, 299, 300)] == [True, True, False]


def test_what_plain_objects_gain_is_tolerated_and_no_more_than_that():
    def reading(resource: str, per_step: int) -> Reading:
        steps = list(range(0, 200, 10))
        values = [per_step * step for step in steps]
        return Reading(resource, steps, values, fit(steps, values))

    excuses = Excuses()
    log, leak = reading("host.heap", 300), reading("host.heap", 8208)
    excuses.tolerate([Notice("below-tolerance", Reason("little-a-step"))], 1024)

    assert excuses.without([log, leak, reading("tensors", 1)]) == [leak, reading("tensors", 1)]
    assert excuses.without([reading("python.blocks", 4), reading("python.blocks", 400)]) == [
        reading("python.blocks", 400)
    ]

    excuses.tolerate([Notice("below-tolerance", Reason("library-log"))], 1024, {"tensors": 1})

    assert excuses.without([reading("tensors", 1), reading("tensors", 2)]) == [
        reading("tensors", 2)
    ]

    rates = {"tensors": 2, "host.heap": 1800}  # a later window saw the heap grow with them
    excuses.tolerate([Notice("below-tolerance", Reason("library-log"))], 1024, rates)
    excuses.tolerate([Notice("below-tolerance", Reason("library-log"))], 1024, {"tensors": 2})

    assert excuses.without([reading("tensors", 2), reading("host.heap", 2000), leak]) == [leak]


def test_that_something_had_stopped_is_not_told_of_what_grows():
    heap, tensors_ = stopped(["host.heap"]), dated(stopped(["tensors", "graph.nodes"]), 229)

    assert without_contradicted((heap, tensors_), ["tensors"]) == (heap,)
    assert without_contradicted((heap, tensors_), []) == (heap, tensors_)


def holds(holder: str, length: int, most: int, *, step: int) -> Notice:
    return Notice("bounded", Reason.of("holds", holder=holder, length=length, most=most), step)


def test_that_a_container_would_be_full_is_not_told_of_one_that_leaks():
    filling = holds("global `cache`", 768, 803, step=96)
    other = holds("global `window`", 7, 9, step=96)
    leak = Suspect("tensor", "dict of Tensor", holder=held_by("global `cache`"))

    assert without_contradicted((filling, other), ["tensors"], [leak]) == (other,)


def test_a_heap_that_creeps_is_excused_until_it_was_confirmed_to_grow():
    steps = list(range(0, 200, 10))
    heap = [107 * step for step in steps]
    grown = [Reading("host.heap", steps, heap, fit(steps, heap))]

    assert excuse(grown, 1024, confirmed=False) is not None
    assert excuse(grown, 1024) is None
    assert excuse(grown, 100, confirmed=False) is None


@pytest.fixture
def filling_recorder(monkeypatch):
    """Let torch's flight recorder, of 2,000 entries, hold some."""
    monkeypatch.setattr(flight_recorder, "filling", lambda: True)
    monkeypatch.delenv("TORCH_FR_BUFFER_SIZE", raising=False)
    monkeypatch.delenv("TORCH_NCCL_TRACE_BUFFER_SIZE", raising=False)


def test_a_flight_recorder_that_fills_excuses_the_heap_alone(filling_recorder):
    told = Notice("bounded", Reason("flight-recorder"))

    assert excuse([reading("host.heap", 3000)], 1024) == told
    assert excuse([reading("host.heap", 3000), reading("python.blocks", 1)], 1024) == told
    assert excuse([reading("host.heap", 3000), reading("python.blocks", 40)], 1024) is None
    assert excuse([reading("host.heap", 3000), reading("tensors", 1)], 1024) is None


def test_a_flight_recorder_excuses_no_more_than_it_can_hold(filling_recorder):
    assert excuse([reading("host.heap", 160_000)], 1024) is not None  # of about 96 steps
    assert excuse([reading("host.heap", 180_000)], 1024) is None


def test_a_heap_that_climbs_while_the_flight_recorder_fills_is_not_in_doubt(filling_recorder):
    assert Excuses().still_climbing([heap(3000)], 1024) == []
    assert [one.resource for one in Excuses().still_climbing([heap(300_000)], 1024)] == [
        "host.heap"
    ]


def heap(per_step: int) -> Series:
    series = Series(64)
    for step in range(0, 150, 5):
        series.append(step, 0.0, {"host.heap": per_step * step})
    return series


@given(st.integers(100, 400), st.integers(1000, 6000))
def test_however_full_it_became_in_the_first_third_it_has_stopped(full_at: int, until: int):
    assert not LIMITED.goes_on(tensors(full_at, until, every=20 + until // 64))


def test_what_is_told_again_as_it_goes_on_is_told_once_as_it_is_now():
    told = [
        holds("global `replay`", 106, 20_000, step=107),
        holds("global `bank`", 106, 300, step=107),
        holds("global `replay`", 1756, 20_000, step=1757),
    ]

    assert newest(told) == (told[2], told[1])


def reading(resource: str, per_step: int) -> Reading:
    steps = list(range(100, 200))
    values = [per_step * step for step in steps]
    line = fit(steps, values)
    assert line is not None
    return Reading(resource, steps, values, line)


def sawtooth(
    leaked: int, steps: int = 591, collected: int = 392, resource: str = "host.heap"
) -> tuple[list[Reading], Garbage, int]:
    """Return growth since the last collection, what was freed, and in how many steps.

    35 KB of garbage a step, and `leaked` bytes beside them.
    """
    garbage = 35_000
    at = list(range(collected, steps))
    values = [(garbage + leaked) * (step - collected) for step in at]
    line = fit(at, values)
    assert line is not None
    freed = (garbage * collected, 0) if resource == "host.heap" else (0, garbage * collected)
    return [Reading(resource, at, values, line)], Garbage(*freed), steps


@pytest.mark.parametrize("resource", ["host.heap", "cuda:0.allocated"])
def test_what_collections_free_at_the_same_rate_waits_for_the_next_one(resource):
    grown, freed, steps = sawtooth(leaked=0, resource=resource)

    assert is_garbage(grown, freed, steps)
    assert not is_garbage([*grown, reading("tensors", 1)], freed, steps)
    assert not is_garbage([], freed, steps)


@pytest.mark.parametrize("resource", ["host.heap", "cuda:0.allocated"])
def test_what_leaks_beside_garbage_gains_more_than_collections_free(resource):
    assert not is_garbage(*sawtooth(leaked=4000, resource=resource))
    assert not is_garbage([reading(resource, 10_000)], Garbage(0, 0), 592)


def test_what_collections_freed_stays_resident_as_long_as_malloc_keeps_it():
    grown, freed = [reading("host.rss-heap", 36_000)], Garbage(35_000 * 150, 0)
    gained = 36_000 * 99

    assert is_garbage(grown, freed, 200, kept_free_bytes=gained)
    assert not is_garbage(grown, freed, 200, kept_free_bytes=gained - 1)  # the rest is no malloc's
    assert not is_garbage(grown, Garbage(gained // 2, 0), 200, kept_free_bytes=gained)
    assert not is_garbage(grown, Garbage(0, 35_000 * 150), 200, kept_free_bytes=gained)


def test_what_was_freed_on_a_device_is_not_what_leaks_on_the_heap():
    grown, freed, steps = sawtooth(leaked=0, resource="cuda:0.allocated")

    assert not is_garbage([reading("host.heap", 3000)], freed, steps)
    assert not is_garbage([*grown, reading("host.heap", 3000)], freed, steps)


def test_what_rises_in_stairs_is_no_garbage():
    stairs = Stairs(1 << 20, 300, first=300, last=600, count=2, spread=0)

    assert not is_garbage(
        [replace(reading("host.heap", 3500), stairs=stairs)], Garbage(23_000 * 592, 0), 592
    )


def buffer(until: int, full_from: int = 10**6) -> list[Series]:
    """Read every two steps a buffer that grows by an eighth of itself, and garbage beside it."""
    series, room = Series(2048), 1000 * 2000
    for step in range(1000, until + 1, 2):
        while min(step, full_from) * 2000 > room:
            room += room // 8
        series.append(step, 0.0, {"host.heap": room + 850 * (step % 150)})
    return [series]


@pytest.mark.parametrize("until", range(2350, 2650, 25))
def test_a_buffer_that_rests_as_long_as_before_goes_on(until):
    in_bytes = replace(LIMITED, since=1000, rates={"host.heap": 2200.0})

    assert in_bytes.goes_on(buffer(until))
    assert not in_bytes.goes_on(buffer(until + 1000, full_from=until - 600))
