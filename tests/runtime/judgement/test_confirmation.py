"""What a confirmation makes of its readings, whenever they are taken."""

from __future__ import annotations

import pytest

from leakcheck.report.reasons import said
from leakcheck.runtime.judgement.confirmation import Confirmation, is_there
from leakcheck.runtime.judgement.confirmation_length import confirmation
from leakcheck.runtime.judgement.judge import Reading
from leakcheck.runtime.judgement.trend import fit
from leakcheck.runtime.outlook import MEMO_STEPS
from leakcheck.runtime.readings.categories import resource_of
from leakcheck.runtime.readings.meters import NEWEST_NODES
from leakcheck.runtime.readings.series import Series

STEPS = list(range(10, 70, 5))
TENSORS = Reading("tensors", STEPS, [2 * s for s in STEPS], fit(STEPS, [2 * s for s in STEPS]))
HEAP = Reading("host.heap", STEPS, [4096 * s for s in STEPS], fit(STEPS, [4096 * s for s in STEPS]))
UNREAD = Series(8)
STEPS_OF_NOISE = list(range(20, 180))


class Watched:
    """Reads what a function of the step says, as often as it is asked."""

    def __init__(self, level) -> None:
        self.level, self.step, self.quick, self.slow = level, 0, Series(), Series()

    def checkpoint(self, step: int, *, collect: bool) -> dict[str, int]:
        assert collect
        return {"tensors": self.level(step)}


def confirmed(level, length: int = 100, late: int = 0, until: int = 10**9) -> Confirmation:
    confirmation, watched = Confirmation([TENSORS], 70, length), Watched(level)
    for step in range(70, min(70 + length + 5, until)):
        if step >= confirmation.next_step + late and confirmation.read(watched, step):
            break
    return confirmation


def test_growth_in_both_halves_is_confirmed_at_its_exact_rate():
    (reading,) = confirmed(lambda step: 3 * step).confirmed(Watched(int))

    assert (reading.resource, reading.line.per_step) == ("tensors", 3.0)


def test_readings_that_come_a_few_steps_late_count_as_well():
    assert confirmed(lambda step: 2 * step, late=3).confirmed(Watched(int))


def test_a_rate_is_taken_over_the_steps_that_were_read_not_those_that_were_due():
    confirmation, watched = Confirmation([TENSORS], 252, 16), Watched(lambda step: 2 * step)
    for step in (252, 261, 270):  # due at 252, 260 and 268
        confirmation.read(watched, step)

    (reading,) = confirmation.confirmed(watched)

    line = reading.line
    assert (line.per_step, line.low, line.high) == (2.0, 2.0, 2.0)
    assert confirmation.rates_at_first() == {"tensors": 2.0}


def test_readings_equal_steps_apart_by_chance_make_no_stairs_of_what_comes_on_each_step():
    steps = [180, 195, 213, 231, 252, 261, 270]  # at two a step every rise is divided by six
    reading = Reading("tensors", steps, [2 * s for s in steps], fit(steps, [2 * s for s in steps]))
    confirmation, watched = Confirmation([reading], 252, 18), Watched(lambda step: 2 * step)
    for step in steps:
        watched.slow.append(step, 0.0, {"tensors": 2 * step})
    for step in (252, 261, 270):
        confirmation.read(watched, step)

    (confirmed,) = confirmation.confirmed(watched)

    assert confirmed.line.per_step == 2.0


def test_what_comes_many_at_once_is_told_in_the_middle_of_what_the_readings_allow():
    def level(step: int) -> int:
        return 96 * ((step + 11) // 20)  # 4.8 a step: the six from 180 to 289 make it 5.28

    steps = [68, 90, 121, 152, 180, 230, 289]
    values = [level(step) for step in steps]
    reading = Reading("tensors", steps, values, fit(steps, values))
    confirmation, watched = Confirmation([reading], 180, 100), Watched(level)
    for step in steps:
        watched.slow.append(step, 0.0, {"tensors": level(step)})
    for step in (180, 230, 289):
        confirmation.read(watched, step)

    (confirmed,) = confirmation.confirmed(watched)

    assert confirmed.line.per_step == pytest.approx(5.042, abs=0.001)


def test_growth_in_one_half_only_is_not_confirmed():
    assert not confirmed(lambda step: 2 * min(step, 110)).confirmed(Watched(int))


def test_of_a_long_confirmation_that_a_run_cuts_off_what_grew_at_each_reading_went_on():
    def cut(level, until):
        return confirmed(level, MEMO_STEPS, until=until).so_far()

    assert cut(lambda step: 2 * step, until=400) == [TENSORS]
    assert cut(lambda step: 2 * step, until=100) == []  # read once
    assert cut(lambda step: 2 * min(step, 180), until=400) == []
    assert cut(lambda step: 2 * step + 90 * (step > 80), until=400) == [TENSORS]  # one jump beside


def test_what_gains_less_at_the_end_is_not_confirmed_over_many_steps():
    def known(level) -> bool:
        return bool(confirmed(level, MEMO_STEPS).confirmed(Watched(int)))

    assert known(lambda step: 2 * step)
    # of 2,000 words each step reads one: 290 are new in the first half, 244 in the second
    assert not known(lambda step: round(2000 * (1 - 0.9995**step)))
    assert not known(lambda step: 3 * min(step, 420) + 2 * max(0, step - 420))


def test_what_was_gained_in_the_first_half_is_told():
    assert confirmed(lambda step: 3 * step).rates_at_first() == {"tensors": 3.0}
    assert confirmed(lambda step: 3 * step, until=100).rates_at_first() == {}


def test_what_gains_clearly_less_in_the_second_half_slows():
    def slows(level):
        (reading,) = confirmed(level).confirmed(Watched(int))
        return reading.slows

    assert not slows(lambda step: 3 * step)
    assert slows(lambda step: 5 * min(step, 120) + 3 * max(0, step - 120))
    assert not slows(lambda step: (26 * min(step, 120) + 22 * max(0, step - 120)) // 10)  # chance


def test_the_rate_of_what_comes_many_at_once_is_that_over_all_that_was_read():
    def evaluated(step: int) -> int:
        return 20 * (step // 60)

    steps = list(range(60, 600, 10))
    values = [evaluated(step) for step in steps]
    confirmation = Confirmation([Reading("tensors", steps, values, fit(steps, values))], 590, 100)
    watched = Watched(evaluated)
    for step in steps:
        watched.slow.append(step, 0.0, {"tensors": evaluated(step)})
    for step in (590, 640, 690):  # of which two evaluations are seen: 0.4 a step
        confirmation.read(watched, step)

    (reading,) = confirmation.confirmed(watched)

    assert round(reading.line.per_step, 2) == 0.33


BLOCKS = Reading("python.blocks", STEPS, STEPS, fit(STEPS, STEPS))


def blocks(*levels: int) -> Confirmation:
    confirmation = Confirmation([BLOCKS], 70, 100)
    for step, level in zip((70, 120, 170), levels, strict=False):
        confirmation.taken.append(step, 0.0, {"python.blocks": level})
    return confirmation


def test_what_a_collection_took_most_of_is_not_in_doubt_when_a_run_ends():
    assert blocks(STEPS[0] + 20).in_doubt(UNREAD) == []
    assert blocks(STEPS[-1]).in_doubt(UNREAD) == [BLOCKS]
    assert blocks().in_doubt(UNREAD) == [BLOCKS]  # not yet read


def test_a_heap_that_stood_still_since_it_was_suspected_is_not_in_doubt():
    def in_doubt(*levels: int) -> list[Reading]:
        confirmation = Confirmation([HEAP], 70, 100)
        for step, level in zip((70, 120), levels, strict=False):
            confirmation.taken.append(step, 0.0, {"host.heap": level})
        return confirmation.in_doubt(UNREAD)

    level = HEAP.values[-1]
    assert in_doubt(level) == [HEAP]
    assert in_doubt(level, level + 50 * 4096) == [HEAP]
    assert in_doubt(level, level + 10 * 4096) == []


@pytest.mark.parametrize(
    ("level", "found"),
    [
        (lambda step: 2 * min(step, 300), []),  # a memo that has every key
        (lambda step: 2 * step, ["tensors"]),
        (lambda step: 140 + 2 * (step - 70) // 3, ["tensors"]),  # slower, and it goes on
    ],
)
def test_a_count_that_stands_between_two_collections_is_not_in_doubt(level, found):
    cut_off = confirmed(level, length=2000, until=70 + 2000)

    assert [one.resource for one in cut_off.in_doubt(UNREAD)] == found


def test_of_a_count_that_rises_seldom_a_short_rest_says_nothing():
    seldom = Reading(
        "tensors", STEPS, [s // 30 for s in STEPS], fit(STEPS, [s / 30 for s in STEPS])
    )
    confirmation = Confirmation([seldom], 70, 100)
    for step in (70, 120):
        confirmation.taken.append(step, 0.0, {"tensors": 2})

    assert confirmation.in_doubt(UNREAD) == [seldom]


def test_a_heap_that_gains_much_less_between_two_collections_is_not_in_doubt():
    def in_doubt(per_step: int) -> list[Reading]:
        quick = Series(64)
        for step in range(60, 100):
            quick.append(step, 0.1 * step, {"host.heap": HEAP.values[-1] + per_step * (step - 60)})
        return Confirmation([HEAP], 70, 400).in_doubt(quick)

    assert in_doubt(4096) == [HEAP]
    assert in_doubt(1024) == []


def heap(*levels: int) -> Confirmation:
    confirmation = Confirmation([HEAP], 500, 100)
    for step, level in zip((500, 550, 600), levels, strict=True):
        confirmation.taken.append(step, 0.0, {"host.heap": level << 10})
    return confirmation


def test_a_heap_that_gained_enough_at_one_time_is_looked_at_for_longer():
    longer = heap(0, 0, 400).longer(600, 600)

    assert (longer.begin, longer.length) == (601, 400)
    assert heap(0, 0, 400).longer(1200, 1200).length == 600
    assert heap(0, 0, 400).longer(300, 300) is None  # noise of the first steps


def test_a_heap_that_gained_little_or_gave_back_is_not():
    assert heap(0, 0, 100).longer(600, 600) is None
    assert heap(0, 900, 400).longer(600, 600) is None
    assert heap(0, 300, 400).longer(600, 600) is None  # ever more rarely


def test_a_heap_is_confirmed_for_longer_the_more_its_readings_differ():
    def length(noise: int) -> int:
        values = [8192 * step + noise * (-1) ** step for step in STEPS_OF_NOISE]
        heap = Reading("host.heap", STEPS_OF_NOISE, values, fit(STEPS_OF_NOISE, values))
        return confirmation([heap], Series(8), 200, 1024).length

    assert [length(noise) for noise in (0, 8 << 10, 100 << 10, 1 << 20)] == [100, 100, 250, 400]


def beside(*levels: int, before: tuple[int, ...] = (5, 5, 6, 8, 10)) -> list[Reading]:
    """Return what is confirmed of a heap that stood still and tensors beside it."""
    steps = [10, 50, 100, 150, 200]
    tensors = Reading("tensors", steps, list(before), fit(steps, before))
    confirmation = Confirmation([HEAP], 200, 100, [tensors])
    for step, level in zip((200, 250, 300), levels, strict=True):
        confirmation.taken.append(step, 0.0, {"host.heap": 0, "tensors": level})
    return confirmation.confirmed(Watched(int))


def test_tensors_that_never_fell_are_confirmed_even_if_what_was_suspected_is_not():
    assert [one.resource for one in beside(10, 15, 20)] == ["tensors"]


def test_tensors_that_rose_by_a_few_or_fell_before_prove_nothing_alone():
    assert beside(10, 14, 19) == []
    assert beside(10, 15, 20, before=(5, 9, 6, 8, 10)) == []
    assert beside(9, 15, 20) == []


@pytest.mark.parametrize(
    ("nodes", "temporaries", "tensors", "told"),
    [
        (
            lambda step: step,
            lambda step: 0,
            lambda step: 9,
            "the graph of one step grows, and the heap with it",
        ),
        (
            lambda step: 40,
            lambda step: 900 * step,
            lambda step: 9,
            "the tensors of one step grow, and the heap with them",
        ),
        (lambda step: 40, lambda step: 900 * step, lambda step: step, ""),  # there are more of them
        (lambda step: 40, lambda step: 9 * step, lambda step: 9, ""),  # too little of the heap
        (lambda step: -step, lambda step: -step, lambda step: 9, ""),
    ],
    ids=["graph", "tensors", "more tensors", "little", "shorter"],
)
def test_steps_that_grow_are_told(nodes, temporaries, tensors, told):
    def readings(step: int) -> dict[str, int]:
        counts = {NEWEST_NODES: nodes(step), "tensors": tensors(step)}
        bytes_ = {resource_of("host", "temporaries"): temporaries(step), "host.heap": 4096 * step}
        return counts | bytes_

    confirmation = Confirmation([HEAP], 70, 100)
    watched = Watched(int)
    watched.checkpoint = lambda step, collect: readings(step)
    while not confirmation.read(watched, confirmation.next_step):
        pass

    assert said(confirmation.lengthening) == told


class OfTwo(Watched):
    """Has a heap that stands still beside blocks at a level."""

    def checkpoint(self, step: int, *, collect: bool) -> dict[str, int]:
        return {"host.heap": 0, "python.blocks": self.level(step)}


@pytest.mark.parametrize(
    ("level", "went_on"),
    [
        (lambda step: 60 * step, ["python.blocks"]),
        (lambda step: 60 * min(step, 120), []),
        (lambda step: 60 * step % 4000, []),
    ],
    ids=["goes on", "stops", "comes and goes"],
)
def test_what_went_on_beside_what_did_not_is_told(level, went_on):
    blocks = Reading("python.blocks", STEPS, [60 * s for s in STEPS], fit(STEPS, STEPS))
    confirmation, watched = Confirmation([HEAP], 70, 100, [blocks]), OfTwo(level)
    for step in range(70, 175):
        if step >= confirmation.next_step and confirmation.read(watched, step):
            break

    assert confirmation.confirmed(watched) == []
    assert [one.resource for one in confirmation.went_on_beside(watched)] == went_on


@pytest.mark.parametrize(
    ("levels", "there"),
    [({"tensors": 130}, True), ({"tensors": 30}, False), ({}, True)],
    ids=["kept", "gone", "not read"],
)
def test_what_had_grown_is_there_unless_a_reading_says_otherwise(levels, there):
    assert is_there(TENSORS, levels) is there
