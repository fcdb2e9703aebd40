from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.model import Report, Sample
from leakcheck.report.charts import Chart, ChartLine, charts_of, thinned


def samples(count: int) -> tuple[Sample, ...]:
    return tuple(Sample(step, step / 10, {"host.rss": step}) for step in range(count))


@given(st.integers(0, 5000), st.integers(2, 50))
def test_thinning_keeps_both_ends_and_the_order(count, most):
    kept = thinned(samples(count), most)

    assert len(kept) == min(count, most)
    assert kept[:1] == samples(count)[:1]
    assert kept[-1:] == samples(count)[-1:]
    assert list(kept) == sorted(kept, key=lambda sample: sample.step)


def test_the_growing_resource_is_drawn_first_with_its_trend(growing_run):
    charts = charts_of(growing_run)

    assert [chart.title for chart in charts] == ["Autograd graph", "Resident memory (not judged)"]
    labels = [curve.label for curve in charts[0].series]
    assert labels == ["graph.nodes", "graph.nodes +11 a step"]
    assert charts[0].series[1].values[-1] == 40 + 11 * 990


@pytest.mark.parametrize(
    ("kind", "first"), [("graph", "graph.nodes"), ("tensor", "tensors"), ("object", "host.heap")]
)
def test_the_counter_that_decided_is_drawn_first_and_rss_last(growing_run, kind, first):
    names = ("host.rss", "host.heap", "tensors", "graph.nodes")
    samples = tuple(Sample(step, step, dict.fromkeys(names, step)) for step in range(9))
    trends = tuple(replace(growing_run.trends[0], resource=name) for name in names)
    suspect = replace(growing_run.suspects[0], kind=kind)

    charts = charts_of(replace(growing_run, samples=samples, trends=trends, suspects=(suspect,)))

    drawn = [chart.series[0].label for chart in charts if not chart.stacked]
    assert (drawn[0], drawn[-1]) == (first, "host.rss")
    beside = [chart.title for chart in charts if chart.beside]
    assert beside == ["Host memory by category", "Resident memory (not judged)"]


def test_each_device_has_a_chart_of_its_own():
    readings = {"cuda:0.allocated": 512, "cuda:0.reserved": 2048, "cuda:1.allocated": 0}
    report = Report(samples=(Sample(1, 0.1, readings), Sample(2, 0.2, readings)))

    assert [chart.title for chart in charts_of(report)] == [
        "cuda:0 memory, allocated",
        "cuda:0 memory, reserved and external",
        "cuda:1 memory, allocated",
        "cuda:0 memory by category",
    ]


def test_categories_are_stacked_so_that_the_top_line_is_their_sum():
    readings = {"cuda:0.allocated": 100, "cuda:0.reserved": 160, "cuda:0.external": 40}
    report = Report(samples=(Sample(1, 0.1, readings), Sample(2, 0.2, readings)))

    assert charts_of(report)[-1] == Chart(
        "cuda:0 memory by category",
        "B",
        (1, 2),
        (
            ChartLine("outside the allocator", (200, 200)),
            ChartLine("cached by the allocator", (160, 160)),
            ChartLine("allocated", (100, 100)),
        ),
        stacked=True,
    )


def test_a_stack_has_gaps_where_its_layers_overlap():
    told = ({"host.heap": 60, "host.rss": 90}, {"host.heap": 99, "host.rss": 90}, {})
    report = Report(samples=tuple(Sample(step, 0.1, each) for step, each in enumerate(told)))

    heap, stack, resident = charts_of(report)

    assert [heap.title, stack.title, resident.title] == [
        "Heap in use",
        "Host memory by category",
        "Resident memory (not judged)",
    ]
    assert [curve.values for curve in stack.series] == [(90, None, None), (60, None, None)]


def test_a_trend_is_drawn_as_far_as_its_resource_was_read(growing_run):
    early = tuple(
        replace(sample, readings={"graph.nodes": 11 * sample.step} if sample.step < 500 else {})
        for sample in growing_run.samples
    )

    _, trend = charts_of(replace(growing_run, samples=early))[0].series

    assert (trend.values[49], trend.values[50]) == (11 * 490, None)


def test_a_resource_read_only_sometimes_leaves_gaps(growing_run):
    gappy = (Sample(1, 0.1, {}), Sample(2, 0.2, {"tensors": 3}), Sample(3, 0.3, {}))

    (chart,) = charts_of(replace(growing_run, samples=gappy))

    assert chart.series == (ChartLine("tensors", (None, 3, None)),)


def test_categories_are_drawn_over_the_checkpoints_that_read_them():
    told = [
        {"host.memory.parameters": 40, "host.memory.unexplained": 900},
        {"host.rss": 5000},
        {
            "host.memory.parameters": 40,
            "host.memory.temporaries": 8,
            "host.memory.unexplained": 950,
        },
    ]
    report = Report(samples=tuple(Sample(step, 0.1, each) for step, each in enumerate(told)))

    assert charts_of(report)[0] == Chart(
        "host tensors by category",
        "B",
        (0, 2),
        (
            ChartLine("outside tensors", (40, 98)),
            ChartLine("temporaries", (40, 48)),
            ChartLine("parameters", (40, 40)),
        ),
        stacked=True,
    )
