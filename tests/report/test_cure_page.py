"""The page of `fix --html`: before and after, side by side, and nothing that is not verbatim."""

from __future__ import annotations

import re

from leakcheck.experiments import Attempt, Cure, Results, Revision, Trial
from leakcheck.model import Report, Run, Trend
from leakcheck.report.cure_page import render_page

BEFORE = "import torch\n\ntotal = 0\nfor loss in losses:\n    total += loss\nprint('<b>', total)\n"
AFTER = BEFORE.replace("+= loss", "+= loss.item()")


def trial(verdict, rate):
    trend = Trend("graph.nodes", "Nodes", rate, rate, rate, 0.0, 60, verdict)
    run = Run("train.py", 60, 1.0, ended="finished")
    return Trial(Report(verdict=verdict, trends=(trend,), run=run), Results("1.0\n"), step_s=0.002)


LEAKING, CURED = trial("growing", 5.0), trial("steady", 0.0)
EDIT = Attempt("item", "keep it", (Revision("train.py", BEFORE, AFTER),), CURED, LEAKING, "proved")


def rows(page):
    cells = [re.findall(r"<t[dh]>(.*?)</t[dh]>", row) for row in re.findall("<tr>(.*?)</tr>", page)]
    return [[re.sub("<.*?>", "", each) for each in row] for row in cells]


def test_rates_and_the_lines_around_the_edit_stand_side_by_side():
    page = render_page(Cure("train.py", LEAKING, (EDIT,), EDIT))

    assert "<h1>train.py: keep it</h1>" in page
    assert rows(page) == [
        ["", "before", "after"],
        ["graph.nodes", "5 a step (95 %: 5 to 5)", "0 a step (95 %: 0 to 0)"],
        ["peak memory", "0 B", "0 B"],
        ["time a step", "2 ms", "2 ms"],
        ["steps", "60", "60"],
        ["before", "after"],
        ["", ""],
        ["total = 0", "total = 0"],
        ["for loss in losses:", "for loss in losses:"],
        ["    total += loss", "    total += loss.item()"],
        ["print(&#x27;&lt;b&gt;&#x27;, total)"] * 2,
    ]
    assert page.count('<pre class="source">') == 2


def test_where_no_edit_is_proved_the_page_has_no_columns():
    page = render_page(Cure("train.py", LEAKING))

    assert rows(page) == []
    assert '<header class="verdict growing">' in page
