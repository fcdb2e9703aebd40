"""How long it must go on, what a window makes of it, and how long that is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from leakcheck.model import Notice, Place, Reason, Suspect
from leakcheck.report.reasons import said
from leakcheck.runtime.attribution.window import Findings
from leakcheck.runtime.doubts import FOUND_BY_KEY_STEPS, row_for
from leakcheck.runtime.judgement.judge import Reading
from leakcheck.runtime.judgement.rounds import Trainings
from leakcheck.runtime.judgement.trend import fit
from leakcheck.runtime.outlook import MEMO_STEPS, SHAPES_STEPS, UNSURE_STEPS
from leakcheck.runtime.readings.series import Series
from leakcheck.runtime.stages import attribution as stage
from leakcheck.runtime.stages.attribution import Attribution, WindowResult, _steps_apart
from tests.holders import held_by

STEPS = list(range(10, 70, 5))
TENSORS = Reading("tensors", STEPS, [2 * s for s in STEPS], fit(STEPS, [2 * s for s in STEPS]))
HEAP = Reading("host.heap", STEPS, [4096 * s for s in STEPS], fit(STEPS, [4096 * s for s in STEPS]))
BLOCKS = Reading("python.blocks", STEPS, STEPS, fit(STEPS, STEPS))
HELD = Suspect("tensor", "", holder=held_by("global `kept`"))
UNHELD = Suspect("native", "memory outside Python objects grows")


LINE = Place("train.py", 5, "kept.append(loss)")
GRAPH = Suspect(
    "graph", "Nodes", holder=held_by("global `kept`"), locations=(LINE,), objects_per_step=8.0
)


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


def findings(*suspects: Suspect, **seen: Any) -> WindowResult:
    return WindowResult(suspects, (), Findings(has_leads=bool(suspects), **seen), rates={})


@pytest.mark.parametrize(
    ("suspect", "resource", "result"),
    [(HELD, "host.heap", True), (HELD, "descriptors", False), (GRAPH, "graph.nodes", False)],
)
def test_what_each_training_leaves_may_be_its_result_but_for_graphs_and_files(
    suspect, resource, result
):
    trainings = Trainings()
    for step in (200, 400, 600):
        trainings.begin(step)
    found = replace(findings(suspect), rates={resource: 0.005}, apart_steps=200.0)

    assert found.come_with(trainings, since=10) is result


def longer(found: WindowResult, *grown: Reading, soon: bool = False, early: bool = False) -> int:
    return row_for(found.doubt(list(grown), 100 if early else 1000, soon=soon)).steps


def test_what_somebody_holds_is_in_no_doubt():
    assert longer(findings(HELD), TENSORS, soon=True, early=True) == 0


def test_what_may_be_a_cache_must_go_on_for_longer():
    assert longer(findings(HELD, keyed=True), TENSORS, early=True) == FOUND_BY_KEY_STEPS
    assert longer(findings(HELD, keyed=True), TENSORS) == 0
    assert longer(findings(HELD, memo=True), TENSORS) == MEMO_STEPS


def test_native_memory_that_some_steps_add_and_others_do_not_may_be_a_library_s_by_shape():
    levels = [4096 * step + 6000 * (step % 3) for step in STEPS]
    uneven = Reading("host.heap", STEPS, levels, fit(STEPS, levels))

    assert longer(findings(UNHELD), HEAP) == 0
    assert longer(findings(UNHELD), uneven) == SHAPES_STEPS
    assert longer(findings(UNHELD), uneven, BLOCKS) == SHAPES_STEPS
    assert longer(findings(HELD), uneven) == 0


def test_what_is_in_containers_that_keep_their_size_is_looked_at_once_more():
    found = findings(HELD, doubtful=True)

    assert longer(found, TENSORS) == UNSURE_STEPS
    assert found.firm == ()
    assert findings(HELD).firm == (HELD,)


def test_a_librarys_memory_may_be_a_cache_by_shape_while_shapes_are_new():
    native = Suspect("native", "heap memory that no Python object accounts for")

    assert longer(findings(native, shapes_vary=True), HEAP) == SHAPES_STEPS
    assert longer(findings(native, shapes_vary=True), HEAP, BLOCKS) == SHAPES_STEPS
    assert longer(findings(shapes_vary=True), HEAP) == SHAPES_STEPS
    assert longer(findings(UNHELD, shapes_vary=True), HEAP) == SHAPES_STEPS
    assert longer(findings(HELD, shapes_vary=True), TENSORS) == 0
    assert longer(findings(native), HEAP) == 0


def test_so_must_what_finds_things_by_key_and_gains_ever_less():
    slower = replace(TENSORS, slows=True)

    assert longer(findings(HELD, keyed=True), slower) == FOUND_BY_KEY_STEPS
    assert longer(findings(HELD), slower) == 0


def test_tensors_whose_holder_is_unknown_may_be_in_something_that_fills_up():
    unheld = Suspect("tensor", "")

    assert longer(findings(HELD, unheld), TENSORS) == UNSURE_STEPS


def test_what_nobody_holds_must_go_on_for_longer_the_more_so_if_only_bytes_grow():
    assert longer(findings(), TENSORS, HEAP) == UNSURE_STEPS
    assert longer(findings(), HEAP) == MEMO_STEPS
    assert longer(findings(UNHELD), HEAP, soon=True) == FOUND_BY_KEY_STEPS
    assert longer(findings(UNHELD), HEAP) == 0


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

    def __init__(self, *_: object) -> None:
        pass

    def open(self) -> None:
        pass

    step = open

    def close(self):
        return Findings(self.suspects, steps=24, has_leads=True)


@pytest.fixture
def attribution(monkeypatch):
    """Begin an attribution at step 100 whose window finds the suspects given."""

    def begin(*suspects: Suspect, longer: bool = False, **rates: float) -> Attribution:
        monkeypatch.setattr(stage, "Window", type("Told", (Window,), {"suspects": suspects}))
        readings = [
            replace(one, line=replace(one.line, per_step=rates[name]))
            for one, name in ((TENSORS, "tensors"), (HEAP, "heap"), (BLOCKS, "blocks"))
            if name in rates
        ]
        return Attribution(100, readings, Series(), longer=longer)

    return begin


LOG = Suspect("object", "list of float", 1.0, 32.0, held_by("local `losses` in main()"))


def test_a_log_does_not_account_for_the_tensors_and_kilobytes_that_grow_beside_it(attribution):
    assert attribution(LOG, tensors=0.9, heap=180_000).close().suspects == ()
    assert attribution(LOG, tensors=0.9, heap=180_000, blocks=30).close().suspects == ()


def test_it_accounts_for_the_blocks_or_bytes_that_it_gains(attribution):
    grows = (replace(LOG, reason=Reason("grows")),)

    assert attribution(LOG, tensors=0.9, heap=150).close().suspects == grows
    assert attribution(LOG, tensors=0.9, heap=180_000, blocks=2).close().suspects == grows
    assert attribution(LOG, heap=180_000).close().suspects == grows


def test_a_window_is_longer_once_one_has_found_nothing(attribution):
    def length(**longer):
        begun = attribution(tensors=1.0, **longer)
        return next(step for step in range(101, 400) if begun.step(step)) - 100

    assert (length(), length(longer=True)) == (24, 72)


def test_a_library_s_log_is_no_suspect_and_is_told(monkeypatch):
    monkeypatch.setattr(stage, "logs_of_libraries", lambda suspects, limit: (HELD,))
    told = Reason.of("library-log", holders=(str(HELD.holder),), tolerance_bytes=1024)

    harmless, both = findings(HELD), findings(HELD, GRAPH)

    assert harmless.tolerating(1024, 1024).notices == (Notice("below-tolerance", told),)
    assert harmless.tolerating(1024, 1024).is_harmless
    assert both.tolerating(1024, 1024).suspects == (GRAPH,)
    assert not both.tolerating(1024, 1024).is_harmless


def test_a_log_of_numbers_is_told_once_no_other_growth_is_tolerated():
    numbers = replace(LOG, what="list of float", bytes_per_step=40.0)
    names = replace(LOG, what="list of str", bytes_per_step=40.0)

    assert findings(numbers).tolerating(1024, 1024).suspects == (numbers,)
    assert findings(numbers).tolerating(0, 1024).is_harmless
    assert findings(numbers).tolerating(0, 1024).tolerated_bytes == 40.0
    assert findings(numbers).tolerating(0, 0).suspects == (numbers,)
    assert findings(names).tolerating(0, 1024).suspects == (names,)


def test_what_another_container_gives_up_is_a_limit():
    taken = replace(findings(HELD), taken={HELD.holder: "global `pool`"})
    both = replace(taken, suspects=(HELD, UNHELD))

    told = "global `kept` takes in what global `pool` gives up"
    assert said(taken.limits(None, 1024)) == told
    assert both.limits(None, 1024) is None


def test_what_fills_beside_a_leak_is_known_by_its_bytes():
    full = Notice("bounded", Reason("holds"))

    assert findings(GRAPH).beside_bytes is None
    filling = findings(GRAPH, filling_bytes=900.0)
    assert replace(filling, notices=(full,)).beside_bytes == 900.0


def test_bytes_that_a_log_gains_beside_what_fills_up_are_not_known():
    rates = {"tensors": 2.0, "host.heap": 9000.0}
    log = Notice("below-tolerance", Reason("library-log"))
    full = Notice("bounded", Reason("holds"))
    alone = replace(findings(), notices=(log,), rates=rates)

    assert alone.rates_of_logs == rates
    assert replace(alone, notices=(log, full)).rates_of_logs == {"tensors": 2.0}
