from __future__ import annotations

import linecache

import pytest

from leakcheck.model import Place
from leakcheck.runtime.attribution.reached import is_reached

SOURCE = """\
class Rows:
    def extend(self, new):
        self.rows += new
        over = len(self.rows) - limit()
        if over > 0:
            self.rows = self.rows[over:]
        try:
            check()
        except ValueError:
            self.rows = []

    def reset(self):
        self.rows = []

for epoch in range(9):
    match epoch:
        case 5:
            rows.reset()
    log = get_log()
    rows = kept(rows)
    done, rows = wait(rows)
    train()
"""
EXTENDED = {("rows.py", line): 40 for line in (3, 4, 5, 7, 8)}


@pytest.fixture(autouse=True)
def source():
    linecache.cache["rows.py"] = (len(SOURCE), None, SOURCE.splitlines(keepends=True), "rows.py")
    yield
    linecache.cache.clear()


@pytest.mark.parametrize(
    ("line", "visits", "reached"),
    [
        (3, EXTENDED, True),
        (6, EXTENDED, True),
        (10, EXTENDED, True),
        (13, EXTENDED, False),
        (18, {("rows.py", 15): 3}, False),
        (18, {("rows.py", 16): 3}, True),
        (19, {("rows.py", 19): 3}, False),
        (20, {("rows.py", 20): 3}, True),
        (21, {("rows.py", 21): 3}, True),
        (6, {("other.py", 5): 40}, False),
        (99, EXTENDED, False),
    ],
    ids=[
        "it ran",
        "its condition was asked",
        "what it is beside ran",
        "nobody called it",
        "a loop turns far around it",
        "its pattern was tried",
        "it took nothing away when it ran",
        "it may take away the next time",
        "so may one that tells what it took",
        "another file",
        "no such line",
    ],
)
def test_what_runs_or_is_asked_for_is_reached(line, visits, reached):
    assert is_reached(Place("rows.py", line, ""), visits) == reached
