"""A limit that the program states is read as a number, and none of its code runs for it."""

from __future__ import annotations

import argparse
import importlib
import linecache
import re
import textwrap
from typing import Any

import pytest

from leakcheck.model import Holder, LeakTrace, Link, Place, Suspect
from leakcheck.runtime.attribution.sources import Sources
from leakcheck.runtime.introspection.texts import file_of
from leakcheck.runtime.outlook import Case, outlook_of
from tests.holders import held_by

CAPACITY = 700


class Kept:
    """What grows is its `data`; the source of its methods is the test's."""

    kept_at_most = 600

    def __init__(self, length):
        self.capacity, self.size, self.config = 500, length, {"capacity": 400}
        self.steps, self.few = length, 9
        self.args = argparse.Namespace(memory_size=300)
        self.data = [None] * length
        self.order = [""] * 500

    @property
    def asked(self):
        raise AssertionError("the program's code ran")

    def __len__(self):
        raise AssertionError("the program's code ran")


@pytest.fixture
def limit(tmp_path):
    """Return the limit that a method `push`, which adds at line 4, sets to `Replay.data`."""

    def limit(body: str, length: int = 40, asked: str = "limit") -> int | None:
        path = tmp_path / "replay.py"
        push, *others = textwrap.dedent(body).split("\ndef ")
        method = textwrap.indent(push, "        ")
        method += "".join(textwrap.indent(f"\ndef {each}", "    ") for each in others)
        path.write_text(f"class Replay(Kept):\n    def push(self, x):\n{method}")
        file_of.cache_clear()
        linecache.checkcache(str(path))
        numbered = enumerate(path.read_text().splitlines(), start=1)
        added = next(number for number, line in numbered if ".append(" in line)
        held = "attribute `Replay.data`"
        suspect = Suspect(
            "tensor", "", holder=held_by(held), locations=(Place(str(path), added, ""),)
        )
        made: dict[str, Any] = {"Kept": Kept, "__name__": "replay"}
        exec(compile(path.read_text(), str(path), "exec"), made)
        replay = made["Replay"](length)
        around = argparse.Namespace(memory=replay, capacity=10_000, few=90, kept=replay.data)
        return told(suspect, [around, replay], length)[asked]

    return limit


def told(suspect: Suspect, owners: list[object], length: int) -> dict[str, int | None]:
    """Return the limit that is not passed yet, and the one that surely is, 0 if none is."""
    inner = suspect.trace is not None
    case = Case(Sources({}).uses_of(suspect, owners, length, inner=inner), length=length)
    outlook, most = outlook_of(case), case.most
    over = outlook.reason.code == "over-its-limit"
    return {
        "limit": most if most is not None and length <= most else None,
        "passed": int(dict(outlook.reason.fields)["most"]) if over else 0,
    }


@pytest.mark.parametrize(
    ("test", "most"),
    [
        ("len(self.data) < self.capacity", 500),
        ("len(self) < self.capacity", 500),
        ("self.capacity > len(self.data)", 500),
        ("len(self.data) <= 4 * 50 + 7", 207),
        ("len(self.data) < int(1e3)", 1000),
        ("len(self.data) < self.config['capacity']", 400),
        ("len(self.data) < self.args.memory_size", 300),
        ("len(self.data) < self.kept_at_most", 600),
        ("self.size < self.capacity", 500),  # counted by hand
        ("x is not None and len(self.data) < self.capacity", 500),
    ],
)
def test_what_a_length_is_compared_with_before_adding_is_the_limit(limit, test, most):
    body = f"""\
        if {test}:
            self.data.append(x)
            self.size += 1
        else:
            self.data[self.at] = x
    """

    assert limit(body) == most


@pytest.mark.parametrize(
    "body",
    [
        "self.data.append(x)\nif len(self.data) > self.capacity:\n    self.data.pop(0)\n",
        "self.data.append(x)\nwhile len(self.data) > self.capacity:\n    del self.data[0]\n",
        "if len(self.data) >= self.capacity:\n    return\nself.data.append(x)\n",
        "self.data.append(x)\nif self.data.qsize() > self.capacity:\n    self.data.get()\n",
        "self.data.append(None)\nself.data[self.at % self.capacity] = x\n",
        "if self.size >= self.capacity:\n    self.data[0] = x\nelse:\n    self.data.append(x)\n"
        "self.size = min(self.size + 1, self.capacity)\n",
        "self.data.append(x)\nif len(self.data) == self.capacity:\n    self.flush()\n"
        "\ndef flush(self):\n    self.data.clear()\n",
    ],
)
def test_it_may_be_cut_back_or_turned_away(limit, body):
    assert limit(body) == 500


@pytest.mark.parametrize(
    "statement",
    [
        "self.data.pop(x - self.capacity, None)",
        "if x >= 500:\n    del self.data[x - 500]",
        "old = x - 500\nif old in self.data:\n    del self.data[old]",
        "old = x - self.capacity\nself.data.discard(old)",
    ],
)
def test_what_is_older_may_be_taken_out(limit, statement):
    assert limit(f"self.data.append(x)\n{statement}\n") == 500


def test_a_key_that_is_none_of_its_own_takes_nothing_out(limit):
    body = "self.data.append(x)\nself.data.pop(x - self.capacity, None)\n"

    assert limit(body, length=700, asked="passed") == 500


def test_nor_does_one_that_is_asked_for_first_and_never_there(limit):
    body = "self.data.append(x)\nold = x - 500\nif old in self.data:\n    del self.data[old]\n"

    assert limit(body, length=700, asked="passed") == 500
    other = body.replace("old in self.data", "old in self.others")
    assert limit(other, length=700, asked="passed") == 0  # that may be true some day


def test_a_method_may_say_what_the_limit_is(limit):
    full = "\ndef full(self):\n    return len(self.data) >= self.capacity\n"

    assert limit(f"if not self.full():\n    self.data.append(x)\n{full}") == 500


@pytest.mark.parametrize(
    "body",
    [
        "self.data.append(x)\n",
        "self.data.append(x)\nself.data.pop(x - 1)\n",  # a position
        "self.data.append(x)\nself.data.pop(len(self.data) - 5)\n",
        "self.data.append(x)\nself.others.pop(x - 500, None)\n",
        "if len(self.data) < self.asked:\n    self.data.append(x)\n",  # a property
        "if len(self.data) < most():\n    self.data.append(x)\n",
        "if self.steps < self.capacity:\n    self.data.append(x)\n",  # nobody counts it up
        "if self.at < self.capacity:\n    self.data.append(x)\n",  # not its length
        "if len(self.data) < self.few:\n    self.data.append(x)\n",  # nor is another's meant
        "if self.size < 7:\n    self.data.append(x)\n",  # passed long ago
        "self.data.append(x)\nif len(self.data) > 9:\n    self.data.pop()\n",
    ],
)
def test_what_needs_a_call_or_is_passed_or_does_not_hold_back_is_no_limit(limit, body):
    assert limit(body) is None


def test_a_local_that_counts_the_steps_is_no_limit():
    kept, step = [None] * 40, 40

    def train(total=100_000):
        nonlocal step
        while step < total:
            if step < total:
                kept.append(step)
            step += 1

    file_of.cache_clear()
    place = Place(__file__, train.__code__.co_firstlineno + 4, "")
    suspect = Suspect("object", "", holder=held_by("local `kept`"), locations=(place,))

    assert told(suspect, [], 40) == {"limit": None, "passed": 0}


@pytest.mark.parametrize(("name", "most"), [("mine", 90), ("theirs", CAPACITY)])
def test_a_name_is_looked_up_in_the_functions_that_run_and_in_the_module(name, most):
    mine, theirs, most_of_mine = [None] * 40, [None] * 40, 90
    here = "test_a_name_is_looked_up_in_the_functions_that_run_and_in_the_module"

    def add(x):
        if len(mine) < most_of_mine:
            mine.append(x)
        if len(theirs) < CAPACITY:
            theirs.append(x)

    file_of.cache_clear()
    place = Place(__file__, add.__code__.co_firstlineno, "")
    suspect = Suspect(
        "object", "", holder=held_by(f"local `{name}` in {here}()"), locations=(place,)
    )

    assert told(suspect, [], 40)["limit"] == most


LIMITED = "if len(self.data) == self.capacity: self.data.pop()\nself.data.append(x)"


def test_more_than_the_limits_allow_has_passed_them(limit):
    assert limit(LIMITED, 700) is None
    assert limit(LIMITED, 700, asked="passed") == 500
    assert limit(LIMITED, 600, asked="passed") == 0  # by little: it may be cut back now and then
    assert limit(LIMITED, 400, asked="passed") == 0


def test_what_is_cut_back_every_so_often_may_hold_more_than_its_limit(limit):
    cut = "if len(self.data) > self.capacity: del self.data[0]"
    now_and_then = f"self.data.append(x)\nif x % 200 == 0:\n    {cut}"
    at_once = f"self.data.append(x)\n{cut.replace('if', 'if x % 9 == 0 and')}"

    assert limit(now_and_then, 700, asked="passed") == 0
    assert limit(at_once, 700, asked="passed") == 0


@pytest.mark.parametrize(
    ("flush", "most"),
    [("self.data = []", 500), ("self.data.clear()", 500), ("if x: self.data.clear()", 0)],
)
def test_a_length_that_never_is_what_a_flush_waits_for_is_passed(limit, flush, most):
    added = "self.data.append(x)\nif len(self.data) == 500: self.flush()\n"

    assert limit(f"{added}\ndef flush(self):\n    {flush}\n", 700, asked="passed") == most


def test_a_limit_that_cannot_be_read_may_not_have_been_passed(limit):
    both = f"if len(self.data) > budget(): self.data.clear()\n{LIMITED}"

    assert limit(both, 700, asked="passed") == 0


def test_the_limit_of_a_container_is_not_that_of_those_in_it(tmp_path):
    path = tmp_path / "seasons.py"
    path.write_text("seasons[0].append(x)\nif len(seasons) > 3: seasons.pop(0)\n")
    trace = LeakTrace("global `seasons`", (Link("[x]", "list"),))
    places = (Place(str(path), 1, ""),)
    suspect = Suspect(
        "tensor", "", holder=held_by("global `seasons`"), trace=trace, locations=places
    )

    assert told(suspect, [], 40) == {"limit": None, "passed": 0}


BESIDE = """\
    self.data.append(x)
    self.order.append(str(x))
    {test}:
        self.data.remove(self.order.pop(0))
"""


@pytest.mark.parametrize(
    "test",
    [
        "if len(self.order) > self.capacity",
        "while self.capacity < len(self.order)",
        "if len(self.order) >= 500",
    ],
)
def test_a_limit_of_another_is_passed_where_that_is_full_and_this_holds_far_more(limit, test):
    body = BESIDE.format(test=test)

    assert limit(body, length=2000, asked="passed") == 500
    assert limit(body, length=600, asked="passed") == 0  # a few of the newest
    assert limit(body, length=2000) is None


@pytest.mark.parametrize(
    "test",
    [
        "if len(self.order) > 1500",  # it is not full
        "if len(self.missing) > self.capacity",
        "if self.steps > self.capacity",
        "if self.order",
    ],
)
def test_and_not_otherwise(limit, test):
    assert limit(BESIDE.format(test=test), length=2000, asked="passed") == 0


def test_where_what_grows_was_made_is_no_line_that_adds_to_it(tmp_path):
    # a name that nothing else in this process has: every module that is loaded is read
    path = tmp_path / "serve.py"
    path.write_text(
        "class Registrar:\n"
        "    def __init__(self):\n"
        "        self.registered_here = {}\n"
        "    def register(self, key):\n"
        "        self.registered_here[key] = State()\n"
    )
    made = Place(str(path), 3, "self.registered_here = {}")
    suspect = Suspect(
        "object", "", holder=held_by("attribute `Registrar.registered_here`"), locations=(made,)
    )

    uses = Sources({(str(path), 5): 40}).uses_of(suspect)

    assert [(use.role, use.reach, use.line) for use in uses] == [
        ("add", "each step", 5),
        ("replace", "once", 3),
    ]


def test_a_cache_of_the_standard_library_has_the_limit_that_its_module_states():
    suspect = Suspect("object", "dict of Pattern", holder=Holder("global", "_cache", "re"))
    case = Case(Sources({}).uses_of(suspect), length=40)

    assert (case.most, outlook_of(case).kind) == (re._MAXCACHE, "fills")


def test_the_line_of_a_library_that_registers_a_hook_is_found_by_the_class_it_holds(
    tmp_path, monkeypatch
):
    text = """\
    from functools import partial

    def clear(strategy, *_):
        strategy.cache = None

    class CachingStrategy:
        def solve(self, result):
            hook = partial(clear, self)
            result.grad_fn.register_hook(hook)

    class Other:
        def solve(self, result):
            result.grad_fn.register_hook(partial(clear, self))
    """
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "caching_strategies.py").write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(folder)
    importlib.import_module("caching_strategies")

    found = Sources({}).registering("clear", [], ["partial", "CachingStrategy"])

    assert found == (Place("caching_strategies.py", 9, "result.grad_fn.register_hook(hook)"),)
    assert Sources({}).registering("clear", []) == ()
