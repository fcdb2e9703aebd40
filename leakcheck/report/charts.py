"""The samples of a run as charts: which resources go together, thinned, with the fitted trend.

Pure values that the HTML page and the SVG plot both draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from leakcheck.model import Report, Sample, Trend

MOST_POINTS = 2000  # a chart is at most this many points wide; more cannot be seen
CATEGORY = "category."  # readings named category.<name> stack up to one chart

# title, unit, and which resources belong in it; devices get a chart each
_GROUPS = (
    ("Host memory", "B", ("host.rss", "host.uss")),
    ("Heap in use", "B", ("host.heap",)),  # beside RSS, ten times as high, it would look flat
    ("Autograd graph", "Nodes", ("graph.nodes",)),
    ("Tensors", "tensors", ("tensors", "tensors.grad")),
    ("Python blocks", "blocks", ("python.blocks",)),
    ("Threads, descriptors, processes", "", ("threads", "descriptors", "processes")),
)


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a chart; None where the resource was not read. `fit` marks a fitted trend."""

    label: str
    values: tuple[float | None, ...]
    fit: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves over the same steps; `warmup` is the last step that was not judged."""

    title: str
    unit: str
    steps: tuple[int, ...]
    series: tuple[Curve, ...]
    warmup: int = 0
    stacked: bool = False


def charts_of(report: Report) -> tuple[Chart, ...]:
    """Return the charts of one run that have anything to show, most telling first."""
    samples = thinned(report.samples)
    if len(samples) < 2:
        return ()
    steps = tuple(sample.step for sample in samples)
    warmup = report.run.warmup_steps if report.run else 0
    trends = {trend.resource: trend for trend in report.trends}
    charts = [
        Chart(title, unit, steps, _curves(samples, resources, trends, warmup), warmup)
        for title, unit, resources in _groups(samples)
    ]
    charts += _stacked(samples, steps, warmup)
    return tuple(sorted((c for c in charts if c.series), key=lambda c: not _grows(c)))


def thinned(samples: Sequence[Sample], most: int = MOST_POINTS) -> tuple[Sample, ...]:
    """Return at most `most` samples, evenly spread, the first and the last among them."""
    if len(samples) <= most:
        return tuple(samples)
    last = len(samples) - 1
    return tuple(samples[round(index * last / (most - 1))] for index in range(most))


def _groups(samples: Sequence[Sample]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    yield _GROUPS[0]
    devices = {
        resource.rpartition(".")[0]: None
        for sample in samples
        for resource in sample.readings
        if resource.endswith((".allocated", ".reserved", ".external"))
    }
    for device in devices:
        parts = ("allocated", "reserved", "external")
        yield f"{device} memory", "B", tuple(f"{device}.{part}" for part in parts)
    yield from _GROUPS[1:]


def _curves(
    samples: Sequence[Sample], resources: Sequence[str], trends: dict[str, Trend], warmup: int
) -> tuple[Curve, ...]:
    curves: list[Curve] = []
    for resource in resources:
        values = tuple(sample.readings.get(resource) for sample in samples)
        if all(value is None for value in values):
            continue
        curves.append(Curve(resource, values))
        trend = trends.get(resource)
        if trend is not None and trend.verdict == "growing":
            curves.append(_fitted(samples, values, trend, warmup))
    return tuple(curves)


def _fitted(
    samples: Sequence[Sample], values: Sequence[float | None], trend: Trend, warmup: int
) -> Curve:
    settled = [
        (sample.step, value)
        for sample, value in zip(samples, values, strict=True)
        if value is not None and sample.step > warmup
    ]
    offset = median(value - trend.per_step * step for step, value in settled) if settled else 0.0
    line = tuple(
        offset + trend.per_step * sample.step if sample.step > warmup else None
        for sample in samples
    )
    return Curve(f"{trend.resource} trend", line, fit=True)


def _stacked(samples: Sequence[Sample], steps: tuple[int, ...], warmup: int) -> Iterator[Chart]:
    names = {
        resource.removeprefix(CATEGORY): None
        for sample in samples
        for resource in sample.readings
        if resource.startswith(CATEGORY)
    }
    below = [0.0] * len(samples)
    layers = []
    for name in names:
        for index, sample in enumerate(samples):
            below[index] += sample.readings.get(CATEGORY + name, 0)
        layers.append(Curve(name, tuple(below)))
    if layers:
        # the tallest layer is drawn first, so that the ones below it stay visible
        yield Chart("Memory by category", "B", steps, tuple(reversed(layers)), warmup, stacked=True)


def _grows(chart: Chart) -> bool:
    return any(curve.fit for curve in chart.series)
