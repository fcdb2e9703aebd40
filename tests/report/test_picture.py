from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from leakcheck.memory.trace import Event, Trace
from leakcheck.report.picture import areas_svg, bars_svg, trace_svg

SVG = "{http://www.w3.org/2000/svg}"


def test_each_label_has_a_bar_of_each_layer_and_the_measured_one():
    drawn = ElementTree.fromstring(
        bars_svg(
            "a <step>",
            ["forward", "backward"],
            {"parameters": [10, 10], "gradients": [0, 10]},
            measured=[10, 20],
        )
    )

    hints = [node.text for node in drawn.iter(f"{SVG}title")]
    assert hints == [
        "parameters: 10 B", "gradients: 0 B", "measured: 10 B",
        "parameters: 10 B", "gradients: 10 B", "measured: 20 B",
    ]  # fmt: skip


def test_stacked_bars_reach_as_high_as_their_measured_total():
    drawn = ElementTree.fromstring(bars_svg("", ["x"], {"a": [30], "b": [70]}, measured=[100]))

    bars = [node for node in drawn.iter(f"{SVG}rect") if node.find(f"{SVG}title") is not None]
    lower, upper, measured = (float(bar.get("height", "0")) for bar in bars)
    assert abs(lower + upper - measured) < 0.2
    assert bars[1].get("y") == bars[2].get("y")


def test_a_long_trace_keeps_its_peak():
    values = [1.0] * 5000
    values[3777] = 99.0

    drawn = areas_svg("", {"live": values})

    assert '">99 B</text>' in drawn


def test_a_trace_is_drawn_by_place():
    events = (Event("alloc", 1, 100, site=0), Event("alloc", 2, 50), Event("free", 1, 100))

    drawn = ElementTree.fromstring(trace_svg(Trace(events, sites=("a.py:1 f",), name="t")))

    texts = [node.text for node in drawn.iter(f"{SVG}text")]
    assert texts[-3:] == ["a.py:1 f", "other places", "reserved (native)"]


def test_an_empty_trace_is_drawn():
    ElementTree.fromstring(trace_svg(Trace((), name="empty")))
