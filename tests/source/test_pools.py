from __future__ import annotations

import pytest

from leakcheck.source.pools import pool_at
from leakcheck.source.tree import File

ROUNDS = """\
pool = load()
for turn in range(60):
    for i in pick(pool):
        x = pool[i]
        {adds}
    {cuts}
"""
FILTERED = "pool = [x for i, x in enumerate(pool) if i not in taken]"


@pytest.mark.parametrize(
    "adds",
    [
        "kept.append(pool[i])",
        "kept.append((x, label(x)))",
        "kept.extend((pool[j], 1) for j in taken)",
        "kept.extend(one for one in pool if wanted(one))",
        "kept += [pool[j] for j in taken]",
        "kept[i] = {'x': x, 'y': label(x)}",
        "kept = kept or [kept.append(x)]",
    ],
)
def test_what_is_taken_out_of_a_pool_that_shrinks_is_known(adds):
    file = File("train.py", ROUNDS.format(adds=adds, cuts=FILTERED))

    assert pool_at(file, 5) == "pool"


@pytest.mark.parametrize(
    "cuts",
    [
        "pool = {k: x for k, x in pool.items() if k not in taken}",
        "pool = list(filter(is_left, pool))",
        "pool = set(x for x in pool if x not in taken)",
        "pool = pool[~taken]",
        "pool = pool[1:]",
        "pool = pool - taken",
        "pool -= taken",
        "pool = pool.difference(taken)",
    ],
)
def test_a_pool_is_cut_in_many_ways(cuts):
    assert pool_at(File("train.py", ROUNDS.format(adds="kept.append(x)", cuts=cuts)), 5) == "pool"


@pytest.mark.parametrize(
    ("adds", "cuts"),
    [
        ("kept.append(loss(x))", FILTERED),
        ("kept.append(pool[:4])", FILTERED),
        ("kept.append(len(pool))", FILTERED),
        ("kept.append(other[i])", FILTERED),
        ("kept.append(x)", "pool = shuffled(pool) + [new]"),
        ("kept.append(x)", "print(len(pool))"),
        ("kept.append(x)", "pool = pool[1:]; pool.append(new)"),
        ("kept.append(x)", "pool = pool[1:]; pool += [new]"),
        ("kept.append(x)", "pool = pool[1:] or load()"),
    ],
)
def test_what_is_no_element_or_of_what_is_filled_again_is_not(adds, cuts):
    file = File("train.py", ROUNDS.format(adds=adds, cuts=cuts))

    assert pool_at(file, 5) == ""


def test_the_pool_may_be_an_attribute():
    source = """\
class Learner:
    def turn(self):
        for at in self.chosen():
            self.labelled.append((self.pool[at], self.ask(at)))
        for _ in range(1):
            self.pool = [x for i, x in enumerate(self.pool) if i not in self.taken]
"""

    assert pool_at(File("train.py", source), 4) == "self.pool"


BY_PLACE = """\
{made}
for turn in range(60):
    for i in pick(free):
        {taken}
        kept.append({added})
"""


@pytest.mark.parametrize(
    ("taken", "added"),
    [
        ("free.remove(i)", "x[i]"),
        ("free.remove(i)", "ask(x[i])"),
        ("free.pop(i)", "(x[i], 1)"),
        ("del free[i]", "x[i]"),
        ("j = free.pop()", "x[j]"),
        ("j, _ = free.popitem()", "x[j]"),
    ],
)
def test_a_pool_may_have_the_places_of_what_is_added(taken, added):
    source = BY_PLACE.format(made="free = list(range(99))", taken=taken, added=added)

    assert pool_at(File("train.py", source), 5) == "free"


@pytest.mark.parametrize(
    ("made", "taken", "added"),
    [
        ("free = load()", "free.remove(i)", "x[turn]"),
        ("free = load()", "free.discard(i)", "x[i]"),  # it may not be there
        ("free = load()", "free.pop(i, None)", "x[i]"),
        ("free = load()", "if turn: free.remove(i)", "x[i]"),
        ("free = load()", "free.remove(i); free.append(i)", "x[i]"),
        ("free = load()", "free.remove(i); free[i] = i", "x[i]"),
        ("free = load()", "free = load(); free.remove(i)", "x[i]"),
        ("from other import free", "free.remove(i)", "x[i]"),
    ],
)
def test_places_that_come_again_or_are_not_taken_each_time_are_no_pool(made, taken, added):
    assert pool_at(File("train.py", BY_PLACE.format(made=made, taken=taken, added=added)), 5) == ""


@pytest.mark.parametrize(("refill", "pool"), [("__init__", "self.free"), ("refill", "")])
def test_a_pool_that_another_method_fills_is_none(refill, pool):
    source = f"""\
class Learner:
    def turn(self):
        for i in self.chosen():
            self.free.remove(i)
            self.labelled.append(self.x[i])
    def {refill}(self):
        self.free = list(range(99))
"""

    assert pool_at(File("train.py", source), 5) == pool
