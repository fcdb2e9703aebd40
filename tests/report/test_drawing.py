from __future__ import annotations

import pytest

from leakcheck.report.drawing import PlotFrame, as_bytes, levels, page, polygon, rect, text

MIB = 1 << 20


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([0, MIB, 2 * MIB], ["0 B", "1.0 MiB", "2.0 MiB"]),
        ([116.2 * MIB, 116.4 * MIB], ["116.2 MiB", "116.4 MiB"]),
        ([116.21 * MIB, 116.24 * MIB], ["116.21 MiB", "116.24 MiB"]),
        ([5, 5], ["5 B", "5 B"]),
    ],
)
def test_an_axis_tells_its_sizes_apart(values, labels):
    assert as_bytes(values) == labels


def test_a_value_lies_where_the_scale_says():
    frame = PlotFrame(left=10, right=110, top=0, bottom=50, across=(0, 4), up=(0, 100))

    assert (frame.x(1), frame.y(0), frame.y(100)) == (35, 50, 0)
    assert [each for each in levels(frame, as_bytes) if "75 B" in each] == [
        '<text x="4.0" y="16.5" text-anchor="end">75 B</text>'
    ]


def test_words_cannot_become_markup():
    assert "<b>" not in page(10, 10, [text(0, 0, "<b>")])


def test_an_area_has_a_fill_and_says_what_it_is_under_the_mouse():
    assert rect(1, 2, 3, 4, "none", 'stroke="#333"') == (
        '<rect x="1.0" y="2.0" width="3.0" height="4.0" fill="none" stroke="#333"/>'
    )
    assert polygon([(0, 0), (1, 0), (1, 1)], "#000000", "a < b") == (
        '<polygon points="0.0,0.0 1.0,0.0 1.0,1.0" fill="#000000"><title>a &lt; b</title></polygon>'
    )
