"""The charts of a run as one SVG drawing, for papers and pull requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from leakcheck.model import Report
from leakcheck.report.charts import Chart, ChartLine, charts_of
from leakcheck.report.drawing import (
    PlotFrame,
    as_bytes,
    color_of,
    levels,
    line,
    page,
    rect,
    text,
    ticks,
)
from leakcheck.report.terminal import headline
from leakcheck.units import format_count

WIDTH = 760
CHART_HEIGHT = 220
LEFT, RIGHT, TOP, BOTTOM = 90, 16, 34, 34
FIT_COLOR, BESIDE_COLOR = "#b3261e", "#5c5f66"
MOST_SEGMENTS = 400  # more than two points a pixel only make the file larger
BOLD = 'font-weight="bold"'


def render(report: Report, *, color: bool = False) -> str:
    """Draw every chart below the verdict."""
    charts = charts_of(report)
    parts = [text(16, 26, headline(report), style=f'font-size="15" {BOLD}')]
    if not charts:
        parts.append(text(16, 60, "no samples were recorded"))
    for index, chart in enumerate(charts):
        parts.append(f'<g transform="translate(0 {40 + index * CHART_HEIGHT})">')
        parts += _chart(chart)
        parts.append("</g>")
    return page(WIDTH, 40 + CHART_HEIGHT * max(1, len(charts)), parts)


def _chart(chart: Chart) -> Iterator[str]:
    frame = _frame(chart)
    first, last = frame.across
    if chart.warmup > first:
        width = frame.x(min(chart.warmup, last)) - LEFT
        height = frame.bottom - TOP
        yield rect(LEFT, TOP, width, height, "#eeeeee")
    yield text(LEFT, 18, chart.title, style=BOLD)
    yield from levels(frame, _writer(chart.unit, frame))
    yield from _steps(frame)
    for index, curve in enumerate(chart.series):
        yield _curve(curve, chart.steps, frame, _color(chart, index))
    yield from _legend(chart)


def _frame(chart: Chart) -> PlotFrame:
    values = [value for curve in chart.series for value in curve.values if value is not None]
    low, high = min(values), max(values)
    low, high = (low, high) if high > low else (low - 1, high + 1)
    first, last = chart.steps[0], max(chart.steps[-1], chart.steps[0] + 1)
    return PlotFrame(LEFT, WIDTH - RIGHT, TOP, CHART_HEIGHT - BOTTOM, (first, last), (low, high))


def _writer(unit: str, frame: PlotFrame) -> Callable[[Sequence[float]], list[str]]:
    if unit == "B":
        return as_bytes
    low, high = frame.up
    write = _whole if high - low > 10 else format_count
    return lambda values: [write(value) for value in values]


def _whole(count: float) -> str:
    return f"{count:,.0f}"


def _steps(frame: PlotFrame) -> Iterator[str]:
    for step in ticks(frame.across):
        anchor = "end" if step == frame.across[1] else "middle"
        yield text(frame.x(step), frame.bottom + 16, _whole(step), anchor)
    yield text((frame.left + frame.right) / 2, frame.bottom + 30, "step", "middle")


def _curve(curve: ChartLine, steps: Sequence[int], frame: PlotFrame, color: str) -> str:
    points = [
        (step, value) for step, value in zip(steps, curve.values, strict=True) if value is not None
    ]
    stride = max(1, len(points) // MOST_SEGMENTS)
    kept = [*points[::stride], points[-1]]
    look = 'stroke-dasharray="6 4"' if curve.fit else 'stroke-linejoin="round"'
    return line(((frame.x(step), frame.y(value)) for step, value in kept), color, look)


def _legend(chart: Chart) -> Iterator[str]:
    x = WIDTH - RIGHT
    for index, curve in reversed(list(enumerate(chart.series))):
        yield text(x, 18, curve.label, "end", f'fill="{_color(chart, index)}"')
        x -= 7 * len(curve.label) + 14


def _color(chart: Chart, index: int) -> str:
    return color_of_fit(chart) if chart.series[index].fit else color_of(index)


def color_of_fit(chart: Chart) -> str:
    """Return the colour of a fitted trend: the alarm's, but not of what is never the judge."""
    return BESIDE_COLOR if chart.beside else FIT_COLOR
