from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.model import Evidence, Finding, Location, Report
from leakcheck.report import render

EXPECTED = """\
src/train.py:26:13: undetached-accumulator (LK101): `total_loss` keeps the graph of every `loss`
   |
26 |             total_loss += loss
   |             ^^^^^^^^^^^^^^^^^^
   = help: use loss.item()

src/été, 1:2.py:3:1: undetached-collection (LK102): `outputs` keeps 100 % of\\nevery graph
  |
3 | outputs.append(
  | ^^^^^^^^^^^^^^^

src/été, 1:2.py:9:1: undetached-collection (LK102): `outputs` keeps 100 % of\\nevery graph
  |
9 | outputs.append(
  | ^^^^^^^^

nb.ipynb:cell 5:2:1: growing-log (LK310): the log \\x1b[31mgrows

src/broken.py: line 3: invalid syntax <&>

4 findings in 3 of 7 files, 1 file not checked (1 with --fix --unsafe-fixes)"""


def test_each_finding_shows_its_line_its_place_and_what_to_do(checked):
    assert render(checked, "full") == EXPECTED


def test_colour_changes_nothing_but_colour(checked):
    coloured = render(checked, "full", color=True)

    assert coloured != EXPECTED
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == EXPECTED


def frame(context: str, column: int, end_column: int) -> list[str]:
    at = Location("a.py", 1, column, 1, end_column)
    finding = Finding("r", "LK999", at, "leaks", context=context)
    return render(Report((finding,)), "full").splitlines()[2:4]


@pytest.mark.parametrize(
    ("context", "column", "end_column", "lines"),
    [
        ("\tx = y", 2, 3, ["1 |     x = y", "  |     ^"]),
        ("\fx = y", 2, 3, ["1 | x = y", "  | ^"]),
        ("'日本', x", 7, 8, ["1 | '日本', x", "  |         ^"]),
        ("x\x1b[2J y", 7, 8, ["1 | x\\x1b[2J y", "  |          ^"]),
        ("x", 5, 9, ["1 | x", "  |  ^"]),
    ],
)
def test_the_marks_stand_under_the_place_whatever_the_line_holds(
    context, column, end_column, lines
):
    assert frame(context, column, end_column) == lines


def test_a_line_of_ten_thousand_characters_is_cut_round_the_place():
    code, marks = frame("a = " + "b + " * 1000 + "loss + " + "c + " * 1000 + "d", 4005, 4009)

    assert len(code) < 140
    assert code[marks.index("^") : marks.rindex("^") + 1] == "loss"


@given(st.text(max_size=200), st.integers(1, 250), st.integers(0, 100))
def test_any_line_whatever_can_be_shown(context, column, width):
    for line in frame(context.replace("\n", ""), column, column + width):
        assert line.isprintable()


def test_a_clean_check_says_how_much_was_checked():
    assert render(Report(checked_files=12), "full") == "no leaks found in 12 files"


def test_a_finding_through_several_files_lists_the_places_it_follows_from():
    finding = Finding(
        "undetached-meter", "LK103", Location("train.py", 10, 9, 10, 26), "`total` grows",
        evidence=(
            Evidence(Location("train.py", 7, 16, 7, 38), "graph", "criterion"),
            Evidence(Location("lib/meters.py", 6, 9, 6, 28), "kept", "self.total"),
        ),
    )  # fmt: skip

    assert render(Report((finding,), checked_files=2), "full").splitlines()[:3] == [
        "train.py:10:9: undetached-meter (LK103): `total` grows",
        "   = train.py:7:16: `criterion` gives it its graph",
        "   = lib/meters.py:6:9: kept in `self.total`",
    ]
