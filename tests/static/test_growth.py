"""What a module does with a container, and whether anything ever limits it."""

from __future__ import annotations

import textwrap

import pytest

from leakcheck.static import syntax
from leakcheck.static.module import Module
from leakcheck.static.queries import growth


def module(source: str) -> Module:
    text = textwrap.dedent(source)
    return Module(text, syntax.parse(text))


def roles(source: str, name: str) -> list[str]:
    return [use.role for use in growth.uses(module(source), name)]


@pytest.mark.parametrize(
    ("statement", "role"),
    [
        ("x = []", "bind"),
        ("x: list = []", "bind"),
        ("x, y = [], []", "bind"),
        ("x += [1]", "grow"),
        ("x.append(1)", "grow"),
        ("x[k].append(1)", "grow"),
        ("x.setdefault(k, 1)", "grow"),
        ("x[k] = 1", "slot"),
        ("x[k] += 1", "slot"),
        ("x[:] = []", "drop"),
        ("x.pop(k)", "drop"),
        ("x[k].clear()", "drop"),
        ("del x[k]", "drop"),
        ("del x", "drop"),
        ("del x, y", "drop"),
        ("f(len(x))", "measure"),
        ("f(x)", "read"),
        ("y = x[k]", "read"),
        ("x.sort()", "read"),
    ],
)
def test_each_use_has_one_role(statement, role):
    assert roles(statement, "x") == [role]


def test_an_attribute_is_known_by_its_last_word_whatever_holds_it():
    source = """
        self.cache = {}
        other.cache.clear()
        Model.cache[k] = v
    """

    assert sorted(roles(source, "cache")) == ["bind", "drop", "slot"]


def test_a_keyword_argument_of_the_same_name_is_no_use():
    assert roles("f(cache=1)", "cache") == []


@pytest.mark.parametrize(
    "method",
    [
        "self.log.clear()",
        "self.log = []",
        "self.log = self.log[-10:]",
        "del self.log[0]",
        "if len(self.log) > 10: self.stop()",
    ],
)
def test_a_container_that_is_emptied_replaced_or_measured_is_bounded(method):
    source = f"class A:\n  def __init__(self):\n    self.log = []\n  def f(self):\n    {method}\n"

    assert growth.bounded(module(source), "log")


@pytest.mark.parametrize(
    "method", ["self.log.append(1)", "print(len(self.log))", "return self.log", "pass"]
)
def test_a_container_that_is_only_filled_and_read_is_not_bounded(method):
    source = f"class A:\n  def __init__(self):\n    self.log = []\n  def f(self):\n    {method}\n"

    assert not growth.bounded(module(source), "log")


def test_restoring_a_checkpoint_does_not_bound_a_log():
    source = """
        class A:
            def __init__(self):
                self.log = []
            def load_state_dict(self, state):
                self.log = state["log"]
    """

    assert not growth.bounded(module(source), "log")


@pytest.mark.parametrize(
    ("made", "limited"),
    [
        ("deque(maxlen=5)", True),
        ("deque([], 5)", True),
        ("deque()", False),
        ("WeakValueDictionary()", True),
        ("LRUCache(128)", True),
    ],
)
def test_a_container_with_a_limit_of_its_own_is_bounded(made, limited):
    assert growth.bounded(module(f"CACHE = {made}\n"), "CACHE") is limited


def test_a_clear_function_that_nobody_calls_bounds_nothing():
    uncalled = "CACHE = {}\ndef clear_cache():\n    CACHE.clear()\n"
    called = uncalled + "def epoch():\n    clear_cache()\n"

    assert not growth.bounded(module(uncalled), "CACHE")
    assert growth.bounded(module(called), "CACHE")


def test_module_containers_are_those_made_empty_at_the_top():
    source = """
        A = {}
        B: dict = dict()
        C = {"k": 1}
        D = defaultdict(list)
        E = defaultdict(partial(deque, maxlen=3))
        def f():
            F = []
    """

    assert sorted(growth.module_containers(module(source))) == ["A", "B", "D"]


def test_class_containers_are_found_on_the_class_and_on_self():
    tree = module("""
        class A:
            shared = []
            def __init__(self):
                self.own = {}
                local = []
                self.other.deep = []
    """)

    assert sorted(growth.class_containers(tree, tree.classes[0])) == ["own", "shared"]


@pytest.mark.parametrize(
    ("decorator", "unlimited", "at_most_one"),
    [
        ("functools.cache", True, False),
        ("functools.lru_cache", False, False),
        ("functools.lru_cache(None)", True, False),
        ("functools.lru_cache(maxsize=None)", True, False),
        ("functools.lru_cache(maxsize=8)", False, False),
        ("functools.lru_cache(1)", False, True),
    ],
)
def test_the_limit_of_a_cache_decorator_is_read(decorator, unlimited, at_most_one):
    tree = module(f"import functools\n@{decorator}\ndef f(x): ...\n")

    found = growth.cache_decorator(tree, tree.functions[0])

    assert found is not None
    assert growth.unlimited(tree, found) is unlimited
    assert growth.at_most_one(found) is at_most_one


def test_a_cache_decorator_of_another_library_is_none_of_ours():
    tree = module("from mine import cache\n@cache\ndef f(x): ...\n")

    assert growth.cache_decorator(tree, tree.functions[0]) is None
