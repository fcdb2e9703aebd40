"""What a confirmation makes of its readings, whenever they are taken, and what a window finds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leakcheck.model import Place, Suspect
from leakcheck.runtime.attribution import window
from leakcheck.runtime.inquiry import Attribution, Findings, _steps_apart
from leakcheck.runtime.judgement.confirmation import Confirmation, confirmation
from leakcheck.runtime.judgement.judge import Reading
from leakcheck.runtime.judgement.patience import (
    MAY_FILL_UP_STEPS,
    MEMO_STEPS,
    SHAPES_STEPS,
    UNHELD_STEPS,
)
from leakcheck.runtime.judgement.trend import fit
from leakcheck.runtime.readings.series import Series

STEPS = list(range(10, 70, 5))
TENSORS = Reading("tensors", STEPS, [2 * s for s in STEPS], fit(STEPS, [2 * s for s in STEPS]))
HEAP = Reading("host.heap", STEPS, [4096 * s for s in STEPS], fit(STEPS, [4096 * s for s in STEPS]))
UNREAD = Series(8)
STEPS_OF_NOISE = list(range(20, 180))
HELD = Suspect("tensor", "tensors pile up", holder="global `kept`")
UNHELD = Suspect("native", "memory outside Python objects grows")


class Watched:
    """Reads what a function of the step says, as often as it is asked."""

    def __init__(self, level) -> None:
        self.level, self.step, self.quick, self.slow = level, 0, Series(), Series()

    def checkpoint(self, step: int, *, collect: bool) -> dict[str, int]:
        assert collect
        return {"tensors": self.level(step)}


def confirmed(level, length: int = 100, late: int = 0, until: int = 10**9) -> Confirmation:
    inquiry, watched = Confirmation([TENSORS], 70, length), Watched(level)
    for step in range(70, min(70 + length + 5, until)):
        if step >= inquiry.next_step + late and inquiry.read(watched, step):
            break
    return inquiry


def test_growth_in_both_halves_is_confirmed_at_its_exact_rate():
    (reading,) = confirmed(lambda step: 3 * step).confirmed(Watched(int))

    assert (reading.resource, reading.line.per_step) == ("tensors", 3.0)


def test_readings_that_come_a_few_steps_late_count_as_well():
    assert confirmed(lambda step: 2 * step, late=3).confirmed(Watched(int))


def test_growth_in_one_half_only_is_not_confirmed():
    assert not confirmed(lambda step: 2 * min(step, 110)).confirmed(Watched(int))


def test_of_a_long_confirmation_that_a_run_cuts_off_what_grew_at_each_reading_went_on():
    def cut(level, until):
        return confirmed(level, MEMO_STEPS, until=until).so_far()

    assert cut(lambda step: 2 * step, until=400) == [TENSORS]
    assert cut(lambda step: 2 * step, until=100) == []  # read once
    assert cut(lambda step: 2 * min(step, 180), until=400) == []
    assert cut(lambda step: 2 * step + 90 * (step > 80), until=400) == [TENSORS]  # one jump beside


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
    inquiry = Confirmation([Reading("tensors", steps, values, fit(steps, values))], 590, 100)
    watched = Watched(evaluated)
    for step in steps:
        watched.slow.append(step, 0.0, {"tensors": evaluated(step)})
    for step in (590, 640, 690):  # of which two evaluations are seen: 0.4 a step
        inquiry.read(watched, step)

    (reading,) = inquiry.confirmed(watched)

    assert round(reading.line.per_step, 2) == 0.33


BLOCKS = Reading("python.blocks", STEPS, STEPS, fit(STEPS, STEPS))


def blocks(*levels: int) -> Confirmation:
    inquiry = Confirmation([BLOCKS], 70, 100)
    for step, level in zip((70, 120, 170), levels, strict=False):
        inquiry.taken.append(step, 0.0, {"python.blocks": level})
    return inquiry


def test_what_a_collection_takes_away_was_garbage():
    assert blocks(STEPS[0] - 1).was_garbage
    assert not blocks(STEPS[0]).was_garbage
    assert not blocks().was_garbage  # not yet read


def test_what_a_collection_took_most_of_is_not_in_doubt_when_a_run_ends():
    assert blocks(STEPS[0] + 20).in_doubt(UNREAD) == []
    assert blocks(STEPS[-1]).in_doubt(UNREAD) == [BLOCKS]
    assert blocks().in_doubt(UNREAD) == [BLOCKS]  # not yet read


def test_a_heap_that_stood_still_since_it_was_suspected_is_not_in_doubt():
    def in_doubt(*levels: int) -> list[Reading]:
        inquiry = Confirmation([HEAP], 70, 100)
        for step, level in zip((70, 120), levels, strict=False):
            inquiry.taken.append(step, 0.0, {"host.heap": level})
        return inquiry.in_doubt(UNREAD)

    level = HEAP.values[-1]
    assert in_doubt(level) == [HEAP]
    assert in_doubt(level, level + 50 * 4096) == [HEAP]
    assert in_doubt(level, level + 10 * 4096) == []


def test_a_heap_that_gains_much_less_between_two_collections_is_not_in_doubt():
    def in_doubt(per_step: int) -> list[Reading]:
        quick = Series(64)
        for step in range(60, 100):
            quick.append(step, 0.1 * step, {"host.heap": HEAP.values[-1] + per_step * (step - 60)})
        return Confirmation([HEAP], 70, 400).in_doubt(quick)

    assert in_doubt(4096) == [HEAP]
    assert in_doubt(1024) == []


def heap(*levels: int) -> Confirmation:
    inquiry = Confirmation([HEAP], 500, 100)
    for step, level in zip((500, 550, 600), levels, strict=True):
        inquiry.taken.append(step, 0.0, {"host.heap": level << 10})
    return inquiry


def test_a_heap_that_gained_enough_at_one_time_is_looked_at_for_longer():
    longer = heap(0, 0, 400).longer(600, 600)

    assert (longer.begin, longer.length) == (601, 400)
    assert heap(0, 0, 400).longer(1200, 1200).length == 600
    assert heap(0, 0, 400).longer(300, 300) is None  # noise of the first steps


def test_a_heap_that_gained_little_or_gave_back_is_not():
    assert heap(0, 0, 100).longer(600, 600) is None
    assert heap(0, 900, 400).longer(600, 600) is None
    assert heap(0, 300, 400).longer(600, 600) is None  # ever more rarely


LINE = Place("train.py", 5, "kept.append(loss)")
GRAPH = Suspect("graph", "Nodes", holder="global `kept`", locations=(LINE,), objects_per_step=8.0)


def test_a_few_steps_are_enough_if_one_holder_has_all_the_nodes():
    assert findings(GRAPH).explain(8.0)
    assert findings(GRAPH).explain(16.0)  # those that accumulate gradients have no date


def test_they_are_not_if_it_has_too_few_or_is_not_the_only_one_or_has_no_line():
    assert not findings(GRAPH).explain(24.0)
    assert not findings(GRAPH).explain(6.0)
    assert not findings(GRAPH, HELD).explain(8.0)
    assert not findings(HELD).explain(8.0)
    assert not findings(replace(GRAPH, locations=())).explain(8.0)
    assert not findings().explain(8.0)


def findings(*suspects: Suspect, keyed: bool = False, memo: bool = False) -> Findings:
    return Findings(suspects, (), (), 0, keyed, memo, found=bool(suspects), rates={})


def longer(found: Findings, *grown: Reading, soon: bool = False, early: bool = False) -> int:
    return found.longer_steps(list(grown), soon=soon, early=early)


def test_what_somebody_holds_is_in_no_doubt():
    assert longer(findings(HELD), TENSORS, soon=True, early=True) == 0


def test_what_may_be_a_cache_must_go_on_for_longer():
    assert longer(findings(HELD, keyed=True), TENSORS, early=True) == MAY_FILL_UP_STEPS
    assert longer(findings(HELD, keyed=True), TENSORS) == 0
    assert longer(findings(HELD, memo=True), TENSORS) == MEMO_STEPS


def test_what_is_in_containers_that_keep_their_size_is_looked_at_once_more():
    found = replace(findings(HELD), doubtful=True)

    assert longer(found, TENSORS) == UNHELD_STEPS
    assert found.firm == ()
    assert findings(HELD).firm == (HELD,)


def test_a_librarys_memory_may_be_a_cache_by_shape_while_shapes_are_new():
    native = Suspect("native", "heap memory that no Python object accounts for")

    assert longer(replace(findings(native), shapes_vary=True), HEAP) == SHAPES_STEPS
    assert longer(replace(findings(native), shapes_vary=True), HEAP, BLOCKS) == SHAPES_STEPS
    assert longer(replace(findings(), shapes_vary=True), HEAP) == SHAPES_STEPS
    assert longer(replace(findings(HELD), shapes_vary=True), TENSORS) == 0
    assert longer(findings(native), HEAP) == 0


def test_a_heap_is_confirmed_for_longer_the_more_its_readings_differ():
    def length(noise: int) -> int:
        values = [8192 * step + noise * (-1) ** step for step in STEPS_OF_NOISE]
        heap = Reading("host.heap", STEPS_OF_NOISE, values, fit(STEPS_OF_NOISE, values))
        return confirmation([heap], Series(8), 200, 1024).length

    assert [length(noise) for noise in (0, 8 << 10, 100 << 10, 1 << 20)] == [100, 100, 250, 400]


def test_so_must_what_finds_things_by_key_and_gains_ever_less():
    slower = replace(TENSORS, slows=True)

    assert longer(findings(HELD, keyed=True), slower) == MAY_FILL_UP_STEPS
    assert longer(findings(HELD), slower) == 0


def test_tensors_whose_holder_is_unknown_may_be_in_something_that_fills_up():
    unheld = Suspect("tensor", "tensors pile up")

    assert longer(findings(HELD, unheld), TENSORS) == UNHELD_STEPS


def test_what_nobody_holds_must_go_on_for_longer_the_more_so_if_only_bytes_grow():
    assert longer(findings(), TENSORS, HEAP) == UNHELD_STEPS
    assert longer(findings(), HEAP) == MEMO_STEPS
    assert longer(findings(UNHELD), HEAP, soon=True) == MAY_FILL_UP_STEPS
    assert longer(findings(UNHELD), HEAP) == 0


def beside(*levels: int, before: tuple[int, ...] = (5, 5, 6, 8, 10)) -> list[Reading]:
    """Return what is confirmed of a heap that stood still and tensors beside it."""
    steps = [10, 50, 100, 150, 200]
    tensors = Reading("tensors", steps, list(before), fit(steps, before))
    inquiry = Confirmation([HEAP], 200, 100, [tensors])
    for step, level in zip((200, 250, 300), levels, strict=True):
        inquiry.taken.append(step, 0.0, {"host.heap": 0, "tensors": level})
    return inquiry.confirmed(Watched(int))


def test_tensors_that_never_fell_are_confirmed_even_if_what_was_suspected_is_not():
    assert [one.resource for one in beside(10, 15, 20)] == ["tensors"]


def test_tensors_that_rose_by_a_few_or_fell_before_prove_nothing_alone():
    assert beside(10, 14, 19) == []
    assert beside(10, 15, 20, before=(5, 9, 6, 8, 10)) == []
    assert beside(9, 15, 20) == []


def test_a_window_is_long_enough_for_additions_that_come_several_at_once():
    steps = [67, 118, 180, 240]
    slow = Series()
    for step, count in zip(steps, (37, 42, 47, 52), strict=True):
        slow.append(step, 0.0, {"tensors": count})
    line = fit([*steps, 300], (37, 42, 47, 52, 57))
    assert line is not None
    reading = Reading("tensors", steps, [37, 42, 47, 52], replace(line, per_step=0.1))

    assert _steps_apart(reading, slow) == 50
    slow.append(300, 0.0, {"tensors": 58})  # something else came beside them
    assert _steps_apart(reading, slow) == 10


def test_what_an_evaluation_adds_comes_as_often_as_some_looks_see_none_of_it():
    steps, nodes = [10, 20, 25, 36, 42, 50, 67], [590, 590, 2347, 2347, 4105, 4106, 5863]
    slow = Series()
    for step, count in zip(steps, nodes, strict=True):
        slow.append(step, 0.0, {"graph.nodes": count})
    line = fit(steps, nodes)
    assert line is not None
    reading = Reading("graph.nodes", steps, nodes, replace(line, per_step=87.85))

    assert round(_steps_apart(reading, slow), 2) == 20.0


class Window:
    """Finds what it is told to, and asks for nothing."""

    spent_s = 0.0

    full_in_steps, keyed, memo, found, shapes_vary, doubtful = 0, False, False, True, False, False
    passed: dict[str, object] = {}  # noqa: RUF012

    def __init__(self, *_: object) -> None:
        pass

    def open(self) -> None:
        pass

    step = open

    def close(self):
        return self.suspects, ()


@pytest.fixture
def attribution(monkeypatch):
    """Begin an attribution at step 100 whose window finds the suspects given."""

    def begin(*suspects: Suspect, longer: bool = False, **rates: float) -> Attribution:
        monkeypatch.setattr(window, "Window", type("Told", (Window,), {"suspects": suspects}))
        readings = [
            replace(one, line=replace(one.line, per_step=rates[name]))
            for one, name in ((TENSORS, "tensors"), (HEAP, "heap"), (BLOCKS, "blocks"))
            if name in rates
        ]
        return Attribution(100, readings, Series(), longer=longer)

    return begin


LOG = Suspect("object", "list of float", 1.0, 32.0, "local `losses` in main()")


def test_a_log_does_not_account_for_the_tensors_and_kilobytes_that_grow_beside_it(attribution):
    assert attribution(LOG, tensors=0.9, heap=180_000).close().suspects == ()
    assert attribution(LOG, tensors=0.9, heap=180_000, blocks=30).close().suspects == ()


def test_it_accounts_for_the_blocks_or_bytes_that_it_gains(attribution):
    assert attribution(LOG, tensors=0.9, heap=150).close().suspects == (LOG,)
    assert attribution(LOG, tensors=0.9, heap=180_000, blocks=2).close().suspects == (LOG,)
    assert attribution(LOG, heap=180_000).close().suspects == (LOG,)


def test_a_window_is_longer_once_one_has_found_nothing(attribution):
    def length(**longer):
        begun = attribution(tensors=1.0, **longer)
        return next(step for step in range(101, 400) if begun.step(step)) - 100

    assert (length(), length(longer=True)) == (24, 72)
