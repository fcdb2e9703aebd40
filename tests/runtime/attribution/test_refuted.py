"""What ran and took nothing away is left out of the source, and what no memory can reach."""

from __future__ import annotations

import ast

import pytest

from leakcheck.model import Place
from leakcheck.runtime.attribution.assignments import parsed, reading_without, tree_of
from leakcheck.runtime.attribution.refuted import (
    handles_exception,
    in_vain,
    out_of_reach,
    period_around,
)

SOURCE = """
class Page:
    def turn(self):
        self.buf.clear()

    def cut(self):
        del self.buf[:-100]

    def renew(self):
        self.buf = []

def look(step, buf):
    if step % 50 == 49: buf.clear()
    if step % 150 == 149:
        buf.clear()
    if len(buf) > 10**12:
        buf.clear()
    if len(buf) > 10_000:
        buf.clear()
    try:
        work()
    except MemoryError:
        buf.clear()
    except ValueError:
        buf.clear()
    except StopIteration:
        buf.clear()
"""


@pytest.fixture
def path(tmp_path):
    tree_of.cache_clear()
    (tmp_path / "program.py").write_text(SOURCE)
    return str(tmp_path / "program.py")


def line_of(text: str, after: str = "") -> int:
    lines = SOURCE.splitlines()
    first = next((at for at, line in enumerate(lines) if after in line), 0)
    return next(at for at in range(first, len(lines)) if text in lines[at]) + 1


def test_what_empties_whole_and_ran_is_of_something_else(path):
    every = {(path, line): 3 for line in range(1, len(SOURCE.splitlines()) + 1)}
    every.pop((path, line_of("self.buf = []")))  # it did not run

    found = {line for _, line in in_vain(every)}

    assert line_of("self.buf.clear()") in found
    assert line_of("self.buf = []") not in found
    assert line_of("del self.buf") not in found  # it may have had nothing to cut yet
    assert line_of("% 50") not in found  # nobody knows whether the line's second half ran


def test_a_limit_beyond_all_memory_is_none_and_neither_is_its_end(path):
    found = {line for _, line in out_of_reach([path], most=1e9)}

    assert found == {line_of("10**12"), line_of("buf.clear()", after="MemoryError")}


def test_sources_are_read_without_what_is_left_out(path):
    line = line_of("self.buf.clear()")

    with reading_without(frozenset({(path, line), (path, line_of("10**12"))})):
        inside = ast.unparse(parsed(path))

    assert "self.buf.clear()" not in inside
    assert "10 ** 12" not in inside
    assert "10000" in inside
    assert "self.buf.clear()" in ast.unparse(parsed(path))


def test_the_period_of_a_statement_is_that_of_the_condition_around_it(path):
    assert period_around(Place(path, line_of("buf.clear()", after="% 150"), "")) == 150
    assert period_around(Place(path, line_of("self.buf.clear()"), "")) == 0


def test_a_handler_is_not_counted_on_but_for_one_that_tells_a_loop_s_end(path):
    assert handles_exception(Place(path, line_of("buf.clear()", after="ValueError"), ""))
    assert not handles_exception(Place(path, line_of("buf.clear()", after="StopIteration"), ""))
    assert not handles_exception(Place(path, line_of("self.buf.clear()"), ""))
