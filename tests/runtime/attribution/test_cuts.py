"""Statements that leave only some of what grows, in the ways people write them."""

from __future__ import annotations

import ast

import pytest

from leakcheck.runtime.attribution import guards

SOME_ARE_LEFT = [
    "kept = kept[-n:]",
    "kept = list(kept)[-n:]",
    "kept = kept[::2]",
    "kept = kept[-n:] if len(kept) > n else kept",
    "kept = dict(list(kept.items())[-n:])",
    "kept = sorted(kept, key=f)[:n]",
    "kept = heapq.nlargest(n, kept)",
    "kept = list(filter(lambda row: row.step > step - n, kept))",
    "kept = deque(kept, maxlen=n)",
    "kept = list(islice(kept, n))",
    "kept = random.sample(kept, n)",
    "kept = torch.cat([kept[-n:], x])",
    "kept = torch.cat([kept[:, -n:], x], 1)",
    "kept = kept & recent",
    "kept &= recent",
    "kept.intersection_update(recent)",
    "kept.difference_update(old)",
    "kept = {key: kept[key] for key in recent}",
    "kept = {key: row for key, row in kept.items() if key in recent}",
    "del kept[:-n]",
    "for old in sorted(kept)[:-n]:\n    del kept[old]",
    "for old in list(kept)[: len(kept) - n]:\n    kept.pop(old)",
    "for old in set(kept) - alive:\n    kept.pop(old, None)",
    "for old in kept.keys() - alive:\n    del kept[old]",
    "kept[random.randrange(n)] = x",
    "kept[step & 1023] = x",
    "kept.pop(0) if len(kept) > n else None",
    "len(kept) > n and kept.pop(0)",
    "old = kept.get() if kept.qsize() > n else None",
    "if kept.full():\n    kept.get()",
]
GROWS = [
    "kept = kept + rows",
    "kept = kept - 0.1 * gradient",  # a tensor
    "kept -= 0.1 * gradient",
    "kept = kept[:]",
    "kept = sorted(kept)",
    "kept = list(filter(None, kept))",
    "kept = kept[:at] + [x] + kept[at:]",
    "kept = torch.cat([kept, rows[-n:]])",
    "kept = [row for row in kept]",
    "kept = [kept[i] + 1 for i in range(len(kept))]",
    "kept = {key: other[key] for key in recent}",
    "kept[random.randrange(2**40)] = x",
    "kept.update(recent)",
    "for old in list(kept):\n    print(kept[old])",
    "rows.pop(0) if len(rows) > n else None",
]


@pytest.mark.parametrize("statement", SOME_ARE_LEFT)
def test_only_some_are_left(said, statement):
    assert "limited at program.py:2" in said(f"kept.append(x)\n{statement}\n")


@pytest.mark.parametrize("statement", GROWS)
def test_all_are_left(said, statement):
    assert said(f"kept.append(x)\n{statement}\n") == ""


LOG = """\
class Log:
    def add(self, x):
        self.kept.append(x)
        kept = self.kept[-500:]
        {then}

log = Log()
"""


@pytest.mark.parametrize(
    ("then", "limited"),
    [
        ("return kept", False),
        ("self.kept = kept", True),
        ("self.kept, self.n = kept, 9", True),
        ("self.other = kept", False),
        ("kept = self.other", False),
    ],
)
def test_a_variable_of_the_same_name_is_not_the_attribute_unless_it_is_set_back(
    said, then, limited
):
    told = said(LOG.format(then=then), "attribute `Log.kept`, from global `log`", ".kept", line=3)

    assert bool(told) is limited


@pytest.mark.parametrize(
    "addition",
    [
        "kept.extend(rows[: n - len(kept)])",
        "kept.extend(rows[: max(0, n - len(kept))])",
        "kept.extend(islice(rows, n - len(kept)))",
        "room = n - len(kept)\nfor row in rows[:room]: kept.append(row)",
        "for _ in range(n - len(kept)): kept.append(x)",
    ],
)
def test_no_more_is_added_than_there_is_room_for(said, addition):
    assert "limited at program.py:" in said(f"{addition}\n")


@pytest.mark.parametrize(
    "addition",
    [
        "kept.extend(rows[: n - len(rows)])",
        "kept.extend(rows[n - len(kept) :])",
        "kept.append(x)\nprint(n - len(kept))",
        "kept.append(x)\nfor at in range(len(kept) - n): print(kept[at])",
    ],
)
def test_other_parts_of_what_is_added_are_no_limit(said, addition):
    assert said(f"{addition}\n") == ""


ANEW = """\
class Log:
    def add(self, x):
        self.kept.append(x)
        if self.n == 500: return self.begin()
    def begin(self):
        {begins}

log = Log()
"""


@pytest.mark.parametrize(
    ("begins", "limited"),
    [
        ("self.kept = []", True),
        ("old = self.parent; old.kept = []", True),
        ("new = object.__new__(Log); new.kept = []; return new", False),
        ("new = type(self)(); new.kept = []; return new", False),
    ],
)
def test_what_a_new_object_begins_with_empties_none_that_is_there(said, begins, limited):
    told = said(ANEW.format(begins=begins), "attribute `Log.kept`, from global `log`", line=3)

    assert bool(told) is limited


@pytest.mark.parametrize(
    ("statement", "limited"),
    [("frame = concat([frame, row])", False), ("frame.append(row)", True)],
)
def test_what_a_library_limits_is_no_limit_of_what_is_joined_anew(
    said, monkeypatch, statement, limited
):
    node = ast.parse("class Frame:\n    def trim(self): self.rows = self.rows[-9:]").body[0]
    monkeypatch.setattr(guards, "library_classes", lambda _: [("frames.py", node, "rows")])

    assert bool(said(statement, "attribute `Frame.rows`, from global `frame`")) is limited
