from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.memory.allocator import NativeAllocator
from leakcheck.memory.measured import compare, highest_trace
from leakcheck.memory.prediction import Prediction
from leakcheck.memory.rounding import MIB
from leakcheck.memory.timeline import COLUMNS, predicted_timeline, recorded_timeline
from leakcheck.memory.trace import Event, Mark, Trace
from leakcheck.model import LedgerPage, LedgerRow
from leakcheck.report.picture import below_each_other, comparison_svgs, prediction_svgs

SVG = "{http://www.w3.org/2000/svg}"
WEIGHTS, SAVED, GRADIENT = 30 * MIB, 40 * MIB, 20 * MIB


def training(steps: int = 3, label: str = "after optimizer") -> Trace:
    """A step saves 40 MiB for backward and makes 20 MiB of gradients, above 30 MiB of weights."""
    events = [Event("alloc", 1, WEIGHTS, site=0)]
    marks: list[Mark] = []
    for step in range(steps):
        events.append(Event("alloc", 2, SAVED, site=1))
        marks.append(Mark(len(events), "after forward", step))
        events += [Event("alloc", 3, GRADIENT), Event("free", 2, SAVED)]
        marks.append(Mark(len(events), "after backward", step))
        events.append(Event("free", 3, GRADIENT))
        marks.append(Mark(len(events), label, step))
    sites = ("model.py:3 __init__", "model.py:9 forward")
    return Trace(tuple(events), marks=tuple(marks), sites=sites, name="device 0")


def predicted(peak_bytes: int) -> Prediction:
    def page(phase: str, size: int) -> LedgerPage:
        return LedgerPage(phase, 2, (LedgerRow("parameters", size, 1),), size, size)

    trace = training(1)
    return Prediction(
        device="h200",
        mode="fake",
        steps=3,
        peak_allocated_bytes=peak_bytes,
        peak_reserved_bytes=peak_bytes,
        context_bytes=0,
        memory_bytes=1 << 37,
        pages=(page("after forward", WEIGHTS + SAVED), page("after step", WEIGHTS)),
        timeline=predicted_timeline(trace.events, NativeAllocator(), {1: "parameters"}, 1),
    )


def test_a_prediction_of_what_was_measured_is_not_off():
    comparison = compare(training(), predicted(90 * MIB))

    peak = comparison.allocated
    assert (peak.measured_bytes, peak.difference, peak.inside) == (90 * MIB, 0.0, True)
    assert comparison.found_by == 'marks "after forward"'


def test_a_prediction_above_its_interval_says_by_how_much():
    peak = compare(training(), predicted(99 * MIB)).allocated

    assert (round(peak.difference, 9), peak.inside) == (0.1, False)


def test_without_an_interval_nothing_is_said_of_being_inside():
    prediction = replace(predicted(90 * MIB), notes=("compiled code",))

    assert compare(training(), prediction).allocated.inside is None


@pytest.mark.parametrize("label", ["after optimizer", "after step"])
def test_phases_that_the_recording_names_stand_beside_the_predicted_ones(label: str):
    comparison = compare(training(label=label), predicted(90 * MIB))

    measured = [(page.phase, page.allocated_bytes) for page in comparison.measured_pages]
    assert measured == [("after forward", WEIGHTS + SAVED), ("after step", WEIGHTS)]
    assert [page.phase for page in comparison.predicted_pages] == ["after forward", "after step"]


def test_one_step_of_the_recording_is_drawn_by_place():
    step = compare(training(), predicted(90 * MIB)).timeline

    assert step.events == 4
    assert list(step.layers) == ["model.py:9 forward", "model.py:3 __init__", "other places"]
    assert step.highest_bytes == 90 * MIB


def test_a_recording_without_steps_is_drawn_whole():
    trace = replace(training(1), marks=())

    comparison = compare(trace, predicted(90 * MIB))

    assert comparison.found_by == ""
    assert comparison.timeline.events == len(trace.events)


def test_the_busiest_device_of_a_recording_is_compared():
    busy = training()

    assert highest_trace((Trace((), name="device 0"), busy, training(1))) is busy


def test_both_are_drawn_on_one_scale_and_as_one_picture():
    prediction = predicted(90 * MIB)
    pictures = comparison_svgs(compare(training(), prediction), prediction)

    scales = [
        [text.text for text in ElementTree.fromstring(each).iter(f"{SVG}text")] for each in pictures
    ]
    tops = [[t for t in texts if t and t.endswith("MiB")][-1] for texts in scales[1:]]
    assert len(pictures) == 3
    assert tops[0] == tops[1]
    whole = ElementTree.fromstring(below_each_other(pictures))
    assert len(whole.findall(f"{SVG}svg")) == 3


def test_a_prediction_is_drawn_by_phase_and_over_its_events():
    bars, areas = prediction_svgs(predicted(90 * MIB))

    assert "2: after forward" in bars
    assert "predicted for h200: one step" in areas
    assert "<title>parameters</title>" in areas


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 30 * MIB)), max_size=60))
def test_the_layers_of_a_recording_sum_to_its_live_blocks(requests: list[tuple[bool, int]]):
    events: list[Event] = []
    for number, (freed, size) in enumerate(requests):
        events.append(Event("alloc", number, size, site=number % 3 - 1))
        if freed:
            events.append(Event("free", number))

    recorded = recorded_timeline(Trace(tuple(events), sites=("a", "b")), 0, len(events))

    sums = [sum(column) for column in zip(*recorded.timeline.layers.values(), strict=True)]
    assert sums == list(recorded.levels[1:])
    assert max(recorded.levels) == recorded.peak_allocated_bytes == max([0, *sums])


def test_a_long_step_keeps_its_highest_moment():
    events = [Event("alloc", 1, MIB), Event("free", 1)] * (2 * COLUMNS)
    events[COLUMNS:COLUMNS] = [Event("alloc", 2, 50 * MIB), Event("free", 2)]

    step = predicted_timeline(events, NativeAllocator(), {}, 0)

    assert len(step.reserved) <= COLUMNS + 1
    assert step.highest_bytes >= 50 * MIB
