"""What things weigh: as the allocators count them."""

from __future__ import annotations

import sys
import tracemalloc

import pytest

from leakcheck.runtime.attribution.weight import own_bytes, weigh_each


def test_a_small_object_weighs_what_its_allocator_gives_it():
    assert sys.getsizeof(1.5) == 24
    assert own_bytes(1.5) == 32


def test_parts_that_are_shared_are_weighed_once():
    shared = list(range(1000, 1100))
    alone = weigh_each([[1000.5, shared]])
    beside = weigh_each([[1000.5 + i, shared] for i in range(8)])

    assert beside.in_bytes < alone.in_bytes / 4


def test_things_beyond_the_budget_weigh_as_much_as_those_before_it():
    def rows(count):
        return [[float(i) for i in range(row * 500, row * 500 + 500)] for row in range(count)]

    assert weigh_each(rows(8)) == weigh_each(rows(3))


def test_blocks_are_counted_as_the_allocator_counts_them():
    def made():
        return [[float(i) + row for i in range(300)] for row in range(40)]

    before = sys.getallocatedblocks()
    rows = made()
    gained = (sys.getallocatedblocks() - before) / len(rows)

    assert weigh_each(rows[:4]).blocks == pytest.approx(gained, rel=0.02)


def test_keys_that_are_text_are_weighed_with_their_values():
    rows = [{f"a long key {row} {i}": float(row) for i in range(20)} for row in range(8)]
    key_bytes = own_bytes("a long key 1 10")

    assert weigh_each(rows).blocks == 2 + 20 + 20
    assert weigh_each(rows).in_bytes == own_bytes(rows[0]) + 20 * (key_bytes + 32)


def test_what_is_shared_by_all_weighs_nothing():
    assert weigh_each([None, True, 5, len, sys, int]).in_bytes == 0


def test_a_function_weighs_its_closure_and_defaults_and_not_what_its_module_has():
    def made(row):
        kept = [float(i) + row for i in range(100)]
        return lambda more=(row + 0.5,): (kept, more)

    lists = weigh_each([[float(i) + row for i in range(100)] for row in range(8)]).in_bytes
    functions = weigh_each([made(row) for row in range(8)]).in_bytes

    assert lists + 200 <= functions <= lists + 600
    assert weigh_each([test_nothing_weighs_nothing]).in_bytes < 1000


def test_a_function_weighs_the_globals_that_no_module_has():
    def executed(row):
        names = {"rows": [float(i) + row for i in range(100)]}
        exec("def f(): return rows", names)
        return names["f"]

    assert weigh_each([executed(row) for row in range(8)]).in_bytes > 100 * 32


def test_nothing_weighs_nothing():
    assert weigh_each([]).in_bytes == 0


@pytest.mark.skipif(sys.version_info < (3, 11), reason="they are in a dictionary")
def test_attributes_are_weighed_with_their_object():
    class Point:
        def __init__(self, **names):
            for name in names:
                setattr(self, name, None)

    Point(x=1, y=2, z=3)
    points: list[object] = [None] * 2000
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for i in range(len(points)):
        points[i] = Point(x=1, y=2, z=3)
    gained = (tracemalloc.get_traced_memory()[0] - before) / len(points)
    tracemalloc.stop()

    assert own_bytes(points[0]) == pytest.approx(gained, abs=16)


def test_an_object_is_not_asked_for_its_size_by_a_method_of_the_programs():
    class Plain:
        pass

    class Odd:
        def __sizeof__(self):
            raise RuntimeError

    assert own_bytes(Odd()) == own_bytes(Plain())


def test_what_leads_back_to_the_table_that_it_is_in_weighs_itself_alone():
    def made(row):
        kept = [float(i) + row for i in range(100)]
        return lambda: (tables, kept)

    tables = [[], []]
    for row in range(400):
        tables[row % 2].append(made(row))
    alone = weigh_each([[float(i) for i in range(100)]])

    each = weigh_each(tables[0][-8:], apart=map(id, (tables, *tables)))

    assert each.in_bytes == pytest.approx(alone.in_bytes, abs=400)  # the function and its cells
