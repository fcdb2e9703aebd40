"""Conditions that are asked under another name."""

from __future__ import annotations

import pytest

HEAP = """
class Heap:
    def full(self):
        return len(self.kept) >= self.capacity

    @property
    def has_room(self):
        return len(self.kept) < self.capacity

    def busy(self):
        return self.threads > 9

    def offer(self, x):
        {statement}
            self.kept.append(x)
"""
HOLDER = "attribute `Heap.kept`, from global `heap`"


@pytest.mark.parametrize(
    ("statement", "limit"),
    [
        ("if not self.full():", "not len(self.kept) >= self.capacity"),
        ("if self.has_room:", "len(self.kept) < self.capacity"),
        ("if x > 0 and not self.full():", "x > 0 and (not len(self.kept) >= self.capacity)"),
        ("while self.has_room:", "len(self.kept) < self.capacity"),
    ],
)
def test_a_limit_may_be_asked_of_a_method_or_property(said, statement, limit):
    source = HEAP.format(statement=statement)
    line = source.splitlines().index("            self.kept.append(x)") + 1

    assert said(source, HOLDER, ".kept", line=line) == (
        f"{HOLDER} grows, limited at program.py:{line - 1} ({limit})"
    )


@pytest.mark.parametrize("statement", ["if not self.busy():", "if self.full:", "if self.other():"])
def test_one_that_asks_something_else_is_none(said, statement):
    source = HEAP.format(statement=statement)
    line = source.splitlines().index("            self.kept.append(x)") + 1

    assert said(source, HOLDER, ".kept", line=line) == ""


def test_a_variable_may_stand_for_a_condition(said):
    source = "kept.append(x)\nfull = len(kept) > 9\nif full: kept.pop(0)\n"
    limit = "program.py:3 (len(kept) > 9)"

    assert said(source) == f"global `kept` grows, limited at {limit}"
    assert said(source + "full = other()\n") == ""


def test_a_limit_by_a_method_swaps_in_a_heap(said):
    source = HEAP.format(statement="if self.full():") + "        else: heappush(self.kept, x)\n"
    source = source.replace("self.kept.append(x)", "heapq.heappushpop(self.kept, x)")
    line = source.splitlines().index("        else: heappush(self.kept, x)") + 1

    assert said(source, HOLDER, ".kept", line=line) == (
        f"{HOLDER} grows, limited at program.py:{line - 2} (len(self.kept) >= self.capacity)"
    )
