"""The parts of an SVG drawing: a frame with its scales, text, lines, areas and their colours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from leakcheck.report.plain import escape
from leakcheck.units import UNITS, format_bytes

# told apart on white, as lines and as areas; page.js has the first nine too
PALETTE = (
    "#1f77d0", "#d9480f", "#2b8a3e", "#9c36b5", "#0b7285", "#a61e4d", "#5f6b00", "#5c5f66",
    "#c2255c", "#adb5bd",
)  # fmt: skip
TICKS = 4
MOST_DIGITS = 4  # after the point


@dataclass(frozen=True, slots=True)
class PlotFrame:
    """Where a plot lies on its page, and which values its edges stand for.

    `left` to `right` and `top` to `bottom` are places; `across` and `up` are values.
    """

    left: float
    right: float
    top: float
    bottom: float
    across: tuple[float, float]
    up: tuple[float, float]

    def x(self, value: float) -> float:
        """Return the place of a value on the horizontal axis."""
        return self.left + (self.right - self.left) * _share(value, self.across)

    def y(self, value: float) -> float:
        """Return the place of a value on the vertical axis."""
        return self.bottom - (self.bottom - self.top) * _share(value, self.up)


def page(width: int, height: int, parts: Iterable[str]) -> str:
    """Put a drawing together, on white."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
            rect(0, 0, width, height, "#ffffff"),
            *parts,
            "</svg>",
        ]
    )


def text(x: float, y: float, words: str, anchor: str = "start", style: str = "") -> str:
    """Write words at a place; `style` holds further attributes."""
    attributes = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f"<text {attributes}{style and ' ' + style}>{escape(words)}</text>"


def line(points: Iterable[tuple[float, float]], color: str, style: str = "") -> str:
    """Draw a line through places."""
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path d="M{path}" fill="none" stroke="{color}"{style and " " + style}/>'


def rect(
    x: float, y: float, width: float, height: float, fill: str, style: str = "", hint: str = ""
) -> str:
    """Draw a rectangle from its upper left corner; `hint` is shown under the mouse."""
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return _filled(f"rect {place}", fill, style, hint)


def polygon(points: Iterable[tuple[float, float]], fill: str, hint: str = "") -> str:
    """Draw the area within places; `hint` is shown under the mouse."""
    around = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return _filled(f'polygon points="{around}"', fill, "", hint)


def color_of(number: int) -> str:
    """Return the colour of a series; after ten the first comes again."""
    return PALETTE[number % len(PALETTE)]


def levels(frame: PlotFrame, write: Callable[[Sequence[float]], Sequence[str]]) -> Iterator[str]:
    """Draw the vertical axis: a line across the frame at each tick, with its value."""
    values = ticks(frame.up)
    for value, label in zip(values, write(values), strict=True):
        y = frame.y(value)
        yield line([(frame.left, y), (frame.right, y)], "#dddddd")
        yield text(frame.left - 6, y + 4, label, "end")


def as_bytes(values: Sequence[float]) -> list[str]:
    """Write sizes as the report does, or with the digits that tell them apart."""
    labels = [format_bytes(value) for value in values]
    power = min(len(UNITS) - 1, int(max(map(abs, values))).bit_length() // 10)
    digits = 0
    while len(set(labels)) < len(set(values)) and digits < MOST_DIGITS:
        digits += 1
        labels = [f"{value / 1024**power:.{digits}f} {UNITS[power]}" for value in values]
    return labels


def ticks(span: tuple[float, float]) -> list[float]:
    """Return the values that an axis names, both ends among them."""
    low, high = span
    return [low + (high - low) * tick / TICKS for tick in range(TICKS + 1)]


def _filled(shape: str, fill: str, style: str, hint: str) -> str:
    opened = f'<{shape} fill="{fill}"{style and " " + style}'
    if not hint:
        return f"{opened}/>"
    return f"{opened}><title>{escape(hint)}</title></{shape.partition(' ')[0]}>"


def _share(value: float, span: tuple[float, float]) -> float:
    low, high = span
    return (value - low) / (high - low)
