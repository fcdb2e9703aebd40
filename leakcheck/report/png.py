"""The charts of a run as one PNG drawing, for where SVG is not taken; drawn by matplotlib."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from leakcheck.errors import UsageError
from leakcheck.model import Report
from leakcheck.report.charts import Chart, charts_of
from leakcheck.report.drawing import color_of
from leakcheck.report.svg import color_of_fit
from leakcheck.report.terminal import headline
from leakcheck.units import UNITS

WIDTH_INCHES, CHART_INCHES = 7.6, 2.4
DPI = 150
TITLE: dict[str, Any] = {"loc": "left", "fontsize": 9, "weight": "bold"}


def draw(report: Report) -> bytes:
    """Return the file's bytes; a UsageError where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure  # without pyplot: no global state, no display
    except ImportError:
        raise UsageError("--png needs matplotlib; --svg draws the same without it") from None
    charts = charts_of(report)
    rows = max(1, len(charts))
    figure = Figure(figsize=(WIDTH_INCHES, 0.5 + CHART_INCHES * rows), layout="constrained")
    figure.suptitle(_plain(headline(report)), x=0.02, ha="left", fontsize=10, weight="bold")
    for axes, chart in zip(
        figure.subplots(rows, sharex=True, squeeze=False)[:, 0], charts, strict=False
    ):
        _draw_chart(axes, chart)
    if not charts:
        figure.axes[0].set_axis_off()
        figure.text(0.02, 0.4, "no samples were recorded")
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=DPI)
    return drawn.getvalue()


def _draw_chart(axes: Any, chart: Chart) -> None:
    scale, unit = _scale(chart)
    for index, curve in enumerate(chart.series):
        points = [
            (s, v / scale) for s, v in zip(chart.steps, curve.values, strict=True) if v is not None
        ]
        steps, values = zip(*points, strict=True)
        color = color_of_fit(chart) if curve.fit else color_of(index)
        look = "--" if curve.fit else "-"
        axes.plot(steps, values, look, color=color, lw=1.2, label=_plain(curve.label))
        if chart.stacked:
            axes.fill_between(steps, values, color=color, alpha=0.3)
    if chart.warmup > chart.steps[0]:
        axes.axvspan(chart.steps[0], min(chart.warmup, chart.steps[-1]), color="#eeeeee", zorder=0)
    if chart.stacked:
        axes.set_ylim(bottom=0)
    axes.set_title(_plain(f"{chart.title} ({unit})" if unit else chart.title), **TITLE)
    axes.ticklabel_format(useOffset=False, style="plain")
    axes.tick_params(labelsize=7, labelbottom=True)
    axes.set_xlabel("step", fontsize=7)
    axes.grid(color="#dddddd", lw=0.5)
    axes.legend(fontsize=7, frameon=False)


def _scale(chart: Chart) -> tuple[float, str]:
    """Choose the unit of an axis, so that no two of its labels need to be rounded to the same."""
    if chart.unit != "B":
        return 1, "" if chart.unit in chart.title.lower() else chart.unit
    largest = max(value for curve in chart.series for value in curve.values if value is not None)
    power = min(len(UNITS) - 1, max(0, int(largest).bit_length() - 1) // 10)
    return 1024**power, UNITS[power]


def _plain(text: str) -> str:
    """Keep dollar signs from being read as mathematics."""
    return text.replace("$", r"\$")
