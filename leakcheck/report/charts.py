"""The samples of a run as charts: which resources go together, thinned, with the fitted trend.

Pure values that the HTML page and the SVG plot both draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import median

from leakcheck.memory.ledger import CATEGORIES, CATEGORY_MARK
from leakcheck.model import Kind, Report, Sample, Trend
from leakcheck.report.device import category_name
from leakcheck.report.plain import one_line
from leakcheck.units import format_bytes, format_count

MOST_POINTS = 2000  # a chart is at most this many points wide; more cannot be seen

# title, unit, and which resources belong in it; devices get a chart each, behind the graph's
_GRAPH = ("Autograd graph", "Nodes", ("graph.nodes",))
_GROUPS = (
    ("Heap in use", "B", ("host.heap",)),  # beside RSS, ten times as high, it would look flat
    ("Tensors", "tensors", ("tensors",)),
    ("Python blocks", "blocks", ("python.blocks",)),
    ("Hooks of modules", "hooks", ("hooks",)),
    ("Threads, descriptors, processes", "", ("threads", "descriptors", "processes")),
    ("Blocks of shared memory", "blocks", ("shared-memory",)),
    ("Resident, not in use by the heap", "B", ("host.rss-heap",)),
)
_RESIDENT = ("Resident memory (not judged)", "B", ("host.rss",))

# what a leak of each kind is established by; "." is any device's
_EVIDENCE: dict[Kind, tuple[str, ...]] = {
    "graph": ("graph.nodes",),
    "tensor": ("tensors",),
    "object": ("python.blocks", "host.heap"),
    "native": ("host.heap", "host.rss-heap"),
    "device": (".allocated",),
    "fragmentation": (".reserved", "host.rss-heap"),
    "external": (".external", ".outside"),
    "threads": ("threads",),
    "descriptors": ("descriptors",),
    "processes": ("processes",),
    "shared-memory": ("shared-memory",),
}


@dataclass(frozen=True, slots=True)
class ChartLine:
    """One line of a chart; None where the resource was not read. `fit` marks a fitted trend."""

    label: str
    values: tuple[float | None, ...]
    fit: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves over the same steps; `warmup` is the last step that was not judged.

    `beside`: what is told beside the counters that are judged, and says nothing of a leak.
    """

    title: str
    unit: str
    steps: tuple[int, ...]
    series: tuple[ChartLine, ...]
    warmup: int = 0
    stacked: bool = False
    beside: bool = False


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer of a stack: a resource less the part of it that is a layer of its own."""

    label: str
    resource: str
    less: str = ""

    def of(self, sample: Sample) -> int | None:
        reading, less = sample.readings.get(self.resource), 0
        if self.less:
            less = sample.readings.get(self.less, -1)
        return None if reading is None or less < 0 else reading - less


# heap in use counts what was asked for and never touched: where it exceeds RSS there is no stack
_HOST_LAYERS = (
    _Layer("heap in use", "host.heap"),
    _Layer("code, files and free heap", "host.rss", "host.heap"),
)


def charts_of(report: Report) -> tuple[Chart, ...]:
    """Return the charts of one run that have anything to show, the evidence first, RSS last."""
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
    charts += _categories(report.samples, warmup)
    charts += _stacked(samples, steps, warmup)
    title, unit, resident = _RESIDENT
    curves = _curves(samples, resident, trends, warmup)
    charts.append(Chart(title, unit, steps, curves, warmup, beside=True))
    names = tuple(name for each in report.suspects[:1] for name in _EVIDENCE[each.kind])
    shown = (chart for chart in charts if chart.series)
    return tuple(sorted(shown, key=lambda chart: _telling(chart, names)))


def is_beside(resource: str) -> bool:
    """Say whether a resource is told beside the judged ones: it creeps on correct programs."""
    return resource in _RESIDENT[2]


def thinned(samples: Sequence[Sample], most: int = MOST_POINTS) -> tuple[Sample, ...]:
    """Return at most `most` samples, evenly spread, the first and the last among them."""
    if len(samples) <= most:
        return tuple(samples)
    last = len(samples) - 1
    return tuple(samples[round(index * last / (most - 1))] for index in range(most))


def _groups(samples: Sequence[Sample]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    yield _GRAPH
    for device in _devices(samples):
        yield f"{device} memory, allocated", "B", (f"{device}.allocated",)
        # beside these, often far higher, what is allocated would look flat
        others = (f"{device}.reserved", f"{device}.external", f"{device}.outside")
        yield f"{device} memory, reserved and external", "B", others
    yield from _GROUPS


def _devices(samples: Sequence[Sample]) -> tuple[str, ...]:
    devices = {
        resource.rpartition(".")[0]: None
        for sample in samples
        for resource in sample.readings
        if resource.endswith((".allocated", ".reserved", ".external"))
    }
    return tuple(devices)


def _curves(
    samples: Sequence[Sample], resources: Sequence[str], trends: dict[str, Trend], warmup: int
) -> tuple[ChartLine, ...]:
    curves: list[ChartLine] = []
    for resource in resources:
        values = tuple(sample.readings.get(resource) for sample in samples)
        curves.append(ChartLine(one_line(resource), values))
        trend = trends.get(resource)
        if trend is not None and trend.verdict == "growing":
            curves.append(_fitted(samples, values, trend, warmup))
    return tuple(curve for curve in curves if any(value is not None for value in curve.values))


def _fitted(
    samples: Sequence[Sample], values: Sequence[float | None], trend: Trend, warmup: int
) -> ChartLine:
    settled = [
        (sample.step, value)
        for sample, value in zip(samples, values, strict=True)
        if value is not None and sample.step > warmup
    ]
    offset = median(value - trend.per_step * step for step, value in settled) if settled else 0.0
    last = settled[-1][0] if settled else 0  # what was no longer read has no trend either
    line = tuple(
        offset + trend.per_step * sample.step if warmup < sample.step <= last else None
        for sample in samples
    )
    write = format_bytes if trend.unit == "B" else format_count
    return ChartLine(f"{trend.resource} +{write(trend.per_step)} a step", line, fit=True)


def _stacked(samples: Sequence[Sample], steps: tuple[int, ...], warmup: int) -> Iterator[Chart]:
    yield _stack("Host memory", _HOST_LAYERS, samples, steps, warmup)
    for device in _devices(samples):
        layers = (
            _Layer("allocated", f"{device}.allocated"),
            _Layer("cached by the allocator", f"{device}.reserved", f"{device}.allocated"),
            _Layer("outside the allocator", f"{device}.external"),
        )
        yield _stack(f"{device} memory", layers, samples, steps, warmup)


def _categories(samples: Sequence[Sample], warmup: int) -> Iterator[Chart]:
    """Yield whose bytes a place's memory is, over the checkpoints at which that was read."""
    read = thinned(
        [sample for sample in samples if any(CATEGORY_MARK in r for r in sample.readings)]
    )
    names = {r for sample in read for r in sample.readings if CATEGORY_MARK in r}
    steps = tuple(sample.step for sample in read)
    for place in sorted({name.partition(CATEGORY_MARK)[0] for name in names}):
        mark = place + CATEGORY_MARK
        layers = [
            _Layer(category_name(place, category), mark + category)
            for category in CATEGORIES
            if mark + category in names
        ]
        yield _stack(f"{place} tensors", layers, _above_least(read, mark), steps, warmup)


def _above_least(samples: Sequence[Sample], mark: str) -> list[Sample]:
    """Count what is unexplained from its least, and a category that is not there as nothing."""
    names = {r for sample in samples for r in sample.readings if r.startswith(mark)}
    rest = f"{mark}unexplained"
    least = min((sample.readings.get(rest, 0) for sample in samples), default=0)
    return [
        replace(
            sample,
            readings={n: sample.readings.get(n, 0) - (least if n == rest else 0) for n in names},
        )
        for sample in samples
    ]


def _stack(
    title: str,
    layers: Sequence[_Layer],
    samples: Sequence[Sample],
    steps: tuple[int, ...],
    warmup: int,
) -> Chart:
    read = [layer for layer in layers if any(layer.of(sample) is not None for sample in samples)]
    heights = [_heights([layer.of(sample) for layer in read]) for sample in samples]
    columns = zip(*(tops or (None,) * len(read) for tops in heights), strict=True)
    curves = [ChartLine(layer.label, values) for layer, values in zip(read, columns, strict=True)]
    # the tallest layer is drawn first, so that the ones below it stay visible
    drawn = tuple(reversed(curves)) if len(read) > 1 and any(heights) else ()
    beside = title == "Host memory"  # it is RSS, in parts
    return Chart(f"{title} by category", "B", steps, drawn, warmup, stacked=True, beside=beside)


def _heights(layers: Sequence[int | None]) -> tuple[float | None, ...]:
    """Add the layers up from below; empty where one was not read or they overlap."""
    known = [layer for layer in layers if layer is not None and layer >= 0]
    return tuple(accumulate(known)) if len(known) == len(layers) else ()


def _telling(chart: Chart, evidence: tuple[str, ...]) -> tuple[bool, bool, bool]:
    """Order charts: by what a leak is established, then what grows with it, then all others."""
    grows = any(curve.fit for curve in chart.series)
    decides = any(curve.label.endswith(evidence) for curve in chart.series if not curve.fit)
    return chart.beside, not (decides and evidence), not grows
