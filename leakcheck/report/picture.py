"""Pictures of memory over the events of a step, as SVG text that needs nothing to be shown.

`pages_svg` draws ledger pages as bars, the measured total beside the predicted one stacked by
category; `prediction_svgs` and `comparison_svgs` add a step over its events, `trace_svg` draws an
allocation trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from leakcheck.memory.ledger import CATEGORIES
from leakcheck.memory.measured import PeakComparison
from leakcheck.memory.policies import POLICIES
from leakcheck.memory.prediction import Prediction
from leakcheck.memory.timeline import COLUMNS, LIVE, Timeline, largest_sites
from leakcheck.memory.trace import Trace
from leakcheck.model import LedgerPage
from leakcheck.report.drawing import (
    PlotFrame,
    as_bytes,
    color_of,
    levels,
    line,
    page,
    polygon,
    rect,
    text,
)

_WIDTH, _HEIGHT = 960, 420
_LABEL_WIDTH = 80
_LEFT, _TOP, _BOTTOM, _LEGEND = 84, 40, 48, 230
_EDGE: Final = 'stroke="#333"'
_MOMENTS: Final = 20_000  # of a long trace only every so many events are drawn

Layers = Mapping[str, Sequence[float]]


def bars_svg(
    title: str, labels: Sequence[str], layers: Layers, measured: Sequence[float] | None = None
) -> str:
    """One stacked bar for each label, and the measured total as an outlined bar beside it."""
    totals = _totals(layers)
    frame = _frame(max([*totals, *(measured or ()), 1]), max(len(labels), 1))
    slot = frame.x(1) - frame.x(0)
    share = 0.4 if measured else 0.8
    every = -(-_LABEL_WIDTH // slot) or 1  # labels never run into each other
    parts = []
    for at, label in enumerate(labels):
        x, base = frame.x(at + 0.1), 0.0
        for number, (name, values) in enumerate(layers.items()):
            parts.append(_bar(frame, x, slot * share, base, values[at], color_of(number), name))
            base += values[at]
        if measured:
            x += slot * share
            parts.append(_bar(frame, x, slot * share, 0, measured[at], "none", "measured"))
        if at % every == 0:
            parts.append(text(frame.x(at + 0.5), frame.bottom + 16, label, "middle"))
    legend = _legend([*layers, *(["measured"] if measured else [])])
    return _page(title, frame, parts, legend, "step: moment in it")


def areas_svg(
    title: str,
    layers: Layers,
    lines: Layers | None = None,
    least_top: float = 1,
    ends: Sequence[tuple[float, str]] = (),
) -> str:
    """Stacked areas over events, with totals such as reserved bytes as lines above them.

    The scale reaches `least_top` at least; `ends` names moments, as shares of the events.
    """
    lines = lines or {}
    columns = _columns([*layers.values(), *lines.values()], _totals(layers))
    thin = {name: [values[at] for at in columns] for name, values in layers.items()}
    above = {name: [values[at] for at in columns] for name, values in lines.items()}
    top = max([*_totals(thin), *(v for line in above.values() for v in line), least_top])
    frame = _frame(top, max(len(columns) - 1, 1))
    base = [0.0] * len(columns)
    parts = []
    for number, (name, values) in enumerate(thin.items()):
        upper = [low + value for low, value in zip(base, values, strict=True)]
        parts.append(_area(frame, base, upper, color_of(number), name))
        base = upper
    for number, values in enumerate(above.values(), start=len(thin)):
        parts.append(line(_points(frame, values), color_of(number)))
    parts += [part for share, name in ends for part in _end(frame, share, name)]
    return _page(title, frame, parts, _legend([*thin, *above]), "allocations and frees, in order")


def timeline_svg(title: str, timeline: Timeline, least_top: float = 1) -> str:
    """A step over its events: stacked areas, and the reserved bytes above them."""
    columns = max(len(timeline.reserved) - 1, 1)
    ends = [(min(at / columns, 1.0), name) for at, name in timeline.phases]
    layers = timeline.layers or {LIVE: (0,)}
    reserved = {"reserved": timeline.reserved or (0,)}
    return areas_svg(title, layers, reserved, least_top, ends)


def comparison_svgs(comparison: PeakComparison, prediction: Prediction) -> list[str]:
    """Bars where the recording names the phases, and a step of each, on one scale."""
    pages = comparison.measured_pages, comparison.predicted_pages
    bars = [pages_svg("measured beside predicted", *pages)] if len(pages[0]) > 1 else []
    told = prediction.timeline
    shown = (comparison.timeline, *((told,) if told else ()))
    top = max(max((*each.reserved, each.highest_bytes)) for each in shown)
    part = "one step" if comparison.found_by else "all of it"
    measured = timeline_svg(f"measured: {comparison.name}, {part}", comparison.timeline, top)
    title = f"predicted for {prediction.device}: one step"
    return [*bars, measured, *([timeline_svg(title, told, top)] if told else [])]


def prediction_svgs(prediction: Prediction) -> list[str]:
    """Bars by phase with the peak as the last, and the watched step over its events."""
    title = f"predicted for {prediction.device}"
    peak = (prediction.peak_page,) if prediction.peak_page is not None else ()
    told = prediction.timeline
    bars = pages_svg(title, (*prediction.pages, *peak))
    return [bars, *([timeline_svg(f"{title}: one step", told)] if told else [])]


def below_each_other(pictures: Sequence[str]) -> str:
    """Several of these pictures as one."""
    if len(pictures) == 1:
        return pictures[0]
    placed = [
        each.replace("<svg ", f'<svg y="{number * _HEIGHT}" ', 1)
        for number, each in enumerate(pictures)
    ]
    return page(_WIDTH, _HEIGHT * len(pictures), placed)


def pages_svg(title: str, pages: Sequence[LedgerPage], predicted: Sequence[LedgerPage] = ()) -> str:
    """Ledger pages as stacked bars; with predicted pages, those stacked beside what was measured.

    `predicted` holds a page for each of `pages`, in the same order.
    """
    stacked = predicted or pages
    names = [n for n in CATEGORIES if any(page.size_bytes(n) for page in stacked)]
    layers: dict[str, list[int]] = {n: [page.size_bytes(n) for page in stacked] for n in names}
    measured = [page.allocated_bytes for page in pages] if predicted else None
    labels = [f"{page.step}: {page.phase}" for page in pages]
    return bars_svg(title, labels, layers, measured)


def trace_svg(trace: Trace) -> str:
    """Live bytes by the place that made them, and what the native policy reserves above them."""
    layers, reserved = _curves(trace)
    return areas_svg(f"{trace.name}: live bytes by place", layers, {"reserved (native)": reserved})


def _curves(trace: Trace) -> tuple[dict[str, list[float]], list[float]]:
    """A row of live bytes for each of the largest places, and the reserved bytes, by event."""
    allocator = POLICIES["native"](None)
    largest = largest_sites(trace)
    held = [0.0] * (len(largest) + 2)  # ..., other places, before the recording
    live: dict[int, tuple[int, int, int]] = {}
    rows: list[list[float]] = []
    reserved: list[float] = []
    for view in trace.initial_blocks():
        live[view.address] = allocator.malloc(view.requested), view.requested, len(held) - 1
        held[-1] += view.requested
    stride = -(-len(trace.events) // _MOMENTS) or 1
    for at, event in enumerate(trace.events):
        if event.kind == "alloc":
            row = largest.get(event.site, len(held) - 2)
            address = allocator.malloc(event.size, event.stream, event.pool)
            live[event.block] = address, event.size, row
            held[row] += event.size
        elif event.kind == "free" and event.block in live:
            address, size, row = live.pop(event.block)
            allocator.free(address)
            held[row] -= size
        if at % stride == 0:
            rows.append(held.copy())
            reserved.append(allocator.reserved_bytes)
    rest = "other places" if largest else "live bytes"
    names = [trace.sites[site] for site in largest] + [rest, "before the recording"]
    order = sorted(range(len(names)), key=lambda at: at != len(names) - 1)
    layers = {names[at]: [row[at] for row in rows] for at in order}
    return {n: v for n, v in layers.items() if any(v)} or {"live": [0.0]}, reserved or [0.0]


def _totals(layers: Layers) -> list[float]:
    return [sum(column) for column in zip(*layers.values(), strict=True)]


def _columns(series: Sequence[Sequence[float]], totals: Sequence[float]) -> list[int]:
    count = len(series[0]) if series else 0
    width = -(-count // COLUMNS) or 1
    spans = (range(start, min(start + width, count)) for start in range(0, count, width))
    return [max(span, key=totals.__getitem__) for span in spans]


def _frame(top: float, columns: float) -> PlotFrame:
    right, bottom = _WIDTH - _LEGEND, _HEIGHT - _BOTTOM
    return PlotFrame(_LEFT, right, _TOP, bottom, (0, columns), (0, top))


def _points(frame: PlotFrame, values: Sequence[float]) -> list[tuple[float, float]]:
    return [(frame.x(at), frame.y(value)) for at, value in enumerate(values)]


def _area(
    frame: PlotFrame, lower: Sequence[float], upper: Sequence[float], color: str, name: str
) -> str:
    around = [*_points(frame, upper), *reversed(_points(frame, lower))]
    return polygon(around, color, name)


def _bar(
    frame: PlotFrame, x: float, width: float, base: float, value: float, color: str, name: str
) -> str:
    y = frame.y(base + value)
    hint = f"{name}: {value:,.0f} B"
    return rect(x, y, width, frame.y(base) - y, color, f'{_EDGE} stroke-width="0.5"', hint)


def _end(frame: PlotFrame, share: float, name: str) -> list[str]:
    """A dashed line where a phase ends, with its name to the left."""
    x = frame.left + share * (frame.right - frame.left)
    drawn = line([(x, frame.top), (x, frame.bottom)], "#555", 'stroke-dasharray="4 3"')
    return [drawn, text(x - 4, frame.bottom + 16, name, "end")]


def _legend(names: Sequence[str]) -> list[str]:
    parts = []
    for number, name in enumerate(names):
        x, y = _WIDTH - _LEGEND + 16, _TOP + 20 * number
        color = "none" if name == "measured" else color_of(number)
        parts.append(rect(x, y, 12, 12, color, _EDGE))
        parts.append(text(x + 18, y + 11, name))
    return parts


def _page(
    title: str, frame: PlotFrame, parts: Sequence[str], legend: Sequence[str], across: str
) -> str:
    """Put a picture together; `across` names its horizontal axis."""
    named = text((frame.left + frame.right) / 2, _HEIGHT - 12, across, "middle")
    drawn = [text(_LEFT, 22, title), named, *levels(frame, as_bytes), *parts, *legend]
    return page(_WIDTH, _HEIGHT, drawn) + "\n"
