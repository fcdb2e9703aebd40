"""The charts of a run as one SVG drawing, for papers and pull requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leakcheck.model import Report
from leakcheck.report.charts import Chart, Curve, charts_of
from leakcheck.report.plain import escape
from leakcheck.report.terminal import headline
from leakcheck.units import format_bytes, format_count

WIDTH = 760
CHART_HEIGHT = 220
LEFT, RIGHT, TOP, BOTTOM = 90, 16, 34, 34
PALETTE = ("#1f77d0", "#d9480f", "#2b8a3e", "#9c36b5", "#0b7285", "#a61e4d", "#5f6b00")
FIT_COLOR, BESIDE_COLOR = "#b3261e", "#5c5f66"
TICKS = 4
MOST_SEGMENTS = 400  # more than two points a pixel only make the file larger


def render(report: Report, *, color: bool = False) -> str:
    """Draw every chart below the verdict."""
    charts = charts_of(report)
    height = 40 + CHART_HEIGHT * max(1, len(charts))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="26" font-size="15" font-weight="bold">{escape(headline(report))}</text>',
    ]
    if not charts:
        parts.append('<text x="16" y="60">no samples were recorded</text>')
    for index, chart in enumerate(charts):
        parts.append(f'<g transform="translate(0 {40 + index * CHART_HEIGHT})">')
        parts += _chart(chart)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"])


def _chart(chart: Chart) -> Iterator[str]:
    values = [value for curve in chart.series for value in curve.values if value is not None]
    low, high = min(values), max(values)
    low, high = (low, high) if high > low else (low - 1, high + 1)
    frame = _Frame(chart.steps[0], max(chart.steps[-1], chart.steps[0] + 1), low, high)
    if chart.warmup > frame.first:
        width = frame.x(min(chart.warmup, frame.last)) - LEFT
        height = frame.bottom - TOP
        yield f'<rect x="{LEFT}" y="{TOP}" width="{width:.1f}" height="{height}" fill="#eeeeee"/>'
    yield f'<text x="{LEFT}" y="18" font-weight="bold">{escape(chart.title)}</text>'
    yield from _axes(frame, chart.unit)
    for index, curve in enumerate(chart.series):
        yield from _curve(curve, chart.steps, frame, _color(chart, index))
    yield from _legend(chart)


class _Frame:
    """Where steps and values lie in the drawing."""

    bottom = CHART_HEIGHT - BOTTOM

    def __init__(self, first: float, last: float, low: float, high: float) -> None:
        self.first, self.last, self.low, self.high = first, last, low, high

    def x(self, step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (step - self.first) / (self.last - self.first)

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - TOP) * (value - self.low) / (self.high - self.low)


def _axes(frame: _Frame, unit: str) -> Iterator[str]:
    write = format_bytes if unit == "B" else _whole if frame.high - frame.low > 10 else format_count
    for tick in range(TICKS + 1):
        value = frame.low + (frame.high - frame.low) * tick / TICKS
        step = frame.first + (frame.last - frame.first) * tick / TICKS
        x, y = frame.x(step), frame.y(value)
        yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{write(value)}</text>'
        anchor = "end" if tick == TICKS else "middle"
        yield f'<text x="{x:.1f}" y="{frame.bottom + 16}" text-anchor="{anchor}">{step:,.0f}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text x="{middle:.1f}" y="{frame.bottom + 30}" text-anchor="middle">step</text>'


def _whole(count: float) -> str:
    return f"{count:,.0f}"


def _curve(curve: Curve, steps: Sequence[int], frame: _Frame, color: str) -> Iterator[str]:
    points = [
        (step, value) for step, value in zip(steps, curve.values, strict=True) if value is not None
    ]
    stride = max(1, len(points) // MOST_SEGMENTS)
    kept = [*points[::stride], points[-1]]
    path = "L".join(f"{frame.x(step):.1f} {frame.y(value):.1f}" for step, value in kept)
    look = 'stroke-dasharray="6 4"' if curve.fit else 'stroke-linejoin="round"'
    yield f'<path d="M{path}" fill="none" stroke="{color}" {look}/>'


def _legend(chart: Chart) -> Iterator[str]:
    x = WIDTH - RIGHT
    for index, curve in reversed(list(enumerate(chart.series))):
        fill = _color(chart, index)
        yield f'<text x="{x}" y="18" text-anchor="end" fill="{fill}">{escape(curve.label)}</text>'
        x -= 7 * len(curve.label) + 14


def _color(chart: Chart, index: int) -> str:
    return color_of_fit(chart) if chart.series[index].fit else PALETTE[index % len(PALETTE)]


def color_of_fit(chart: Chart) -> str:
    """Return the colour of a fitted trend: the alarm's, but not of what is never the judge."""
    return BESIDE_COLOR if chart.beside else FIT_COLOR
