"""At which rates a suspect is told: those of the whole run where they are known well."""

from __future__ import annotations

from itertools import chain
from types import SimpleNamespace

import pytest

from leakcheck.model import LeakTrace, Link, Suspect
from leakcheck.report.charts import _EVIDENCE
from leakcheck.runtime.accounts import (
    KINDS,
    MOST_TELLING,
    TENSOR_BYTES,
    _bytes_per_step,
    _counts_blocks,
    _leading,
    _seldom_bytes,
    _weighed,
    _with_rest,
    _without_shared,
    _worth_telling,
)
from leakcheck.runtime.judgement.judge import JUDGES, read
from leakcheck.runtime.readings.series import Series
from tests.holders import held_by

GRAPH = Suspect("graph", "Tensor (scalar)", 8.0, 566.0)
LABELS = Suspect("tensor", "Tensor (32) int64", 1.0, 294.0)


def test_the_only_graph_has_what_the_heap_gains_beside_the_others():
    graph, labels = _with_rest((GRAPH, LABELS), 278_000.0)

    assert (graph.bytes_per_step, labels.bytes_per_step) == (277_706.0, 294.0)


@pytest.mark.parametrize("in_use", [None, 200.0])
def test_a_heap_that_is_unknown_or_gains_less_than_the_others_changes_nothing(in_use):
    assert _with_rest((GRAPH, LABELS), in_use) == (GRAPH, LABELS)


def test_of_two_graphs_nobody_knows_which_has_how_much():
    assert _with_rest((GRAPH, GRAPH), 278_000.0) == (GRAPH, GRAPH)


def test_what_weighs_far_more_than_the_process_gains_shares_its_parts():
    links = (Link(".kept", "dict"), Link("[x]", "_Info", 3 << 30, suspect=True))
    weighed = Suspect("object", "dict of _Info", 1.0, 9e6, trace=LeakTrace("global `kept`", links))

    told = _without_shared(weighed, 100_000.0)

    assert (told.objects_per_step, told.bytes_per_step) == (1.0, None)
    assert [link.retained_bytes for link in told.trace.links] == [None, None]
    assert [link.suspect for link in told.trace.links] == [False, True]


@pytest.mark.parametrize("in_use", [None, 400.0])
def test_what_weighs_about_as_much_as_is_gained_is_told_as_weighed(in_use):
    assert _without_shared(GRAPH, in_use) == GRAPH


@pytest.mark.parametrize(("with_blocks", "per_step"), [(True, 4000.0 + 16 * 64), (False, 4000.0)])
def test_small_objects_that_the_heap_does_not_show_are_counted_with_the_tensors(
    with_blocks, per_step
):
    watch = SimpleNamespace(quick=Series())
    for step in range(40):
        readings = {"host.heap": 4000 * step, "python.blocks": 16 * step}
        watch.quick.append(step, step / 10, readings)
    grown = [read(watch.quick, resource) for resource in watch.quick.resources]
    stage = SimpleNamespace(grown=grown, episode=SimpleNamespace(grown_step=40))
    course = SimpleNamespace(stage=stage, loop=SimpleNamespace(watch=watch))

    assert _bytes_per_step(course, with_blocks=with_blocks) == (per_step, True)


def test_a_buffer_that_is_extended_has_no_small_objects_beside_it():
    assert _counts_blocks(LABELS)
    assert _counts_blocks(GRAPH)
    assert not _counts_blocks(Suspect("tensor", "a buffer", None, 1_000.0, held_by("global `buf`")))
    assert not _counts_blocks(Suspect("native", "heap memory", None, 1_000.0))


def test_tensors_weigh_what_was_seen_at_the_rate_of_the_whole_run():
    seen = Suspect("tensor", "list of Tensor", 2.0, 1_000.0)

    assert _weighed(seen, 3.0) == 3 * (500 + TENSOR_BYTES)
    assert _weighed(Suspect("tensor", "a buffer", None, 1_000.0), 3.0) == 1_000.0


@pytest.mark.parametrize(
    ("blocks", "kind"),
    [(1.0, "native"), (40.0, "object")],
)
def test_what_no_line_adds_is_named_by_blocks_only_if_they_can_be_most_of_it(blocks, kind):
    assert _leading({"host.heap": 6144.0, "python.blocks": blocks}) == kind


LARGE = Suspect("tensor", "Tensor (200x1024)", 0.02, 16_500.0)  # one at the end of each epoch


def test_a_large_tensor_now_and_then_is_told_if_it_has_the_bytes_that_grow():
    assert _worth_telling((LARGE,), {"host.heap": 16_000.0}) == (LARGE,)
    assert _worth_telling((LARGE,), {"host.heap": 60_000.0}) == ()
    assert _worth_telling((LARGE,), {"host.heap": 16_000.0, "tensors": 3.0}) == ()
    assert _worth_telling((LARGE,), {"host.heap": 16_000.0, "tensors": 0.03}) == (LARGE,)


@pytest.mark.parametrize(
    ("objects", "in_bytes", "heap", "told"),
    [
        (0.125, 8600.0, 6860.0, 6860.0),
        (0.125, 8600.0, 3000.0, None),  # there is less than was seen
        (1.0, 8600.0, 6860.0, None),  # a window saw many
        (0.125, 100.0, 120.0, None),  # small ones are not in the heap
    ],
)
def test_of_what_is_large_and_comes_seldom_the_heap_tells_the_rate(objects, in_bytes, heap, told):
    suspect = Suspect("object", "dict of bytes", objects, in_bytes)

    assert _seldom_bytes(suspect, {"host.heap": heap}) == told


@pytest.mark.parametrize("resource", JUDGES)
def test_what_is_judged_shows_a_kind_of_leak_and_has_a_chart(resource):
    assert KINDS[resource] in MOST_TELLING
    assert resource == "hooks" or resource in chain(*_EVIDENCE.values())
