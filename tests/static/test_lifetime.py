"""What becomes of a resource that a local name holds."""

from __future__ import annotations

import textwrap

import pytest

from leakcheck.static import syntax
from leakcheck.static.module import Module
from leakcheck.static.queries import lifetime


def module(source: str) -> Module:
    text = "import os\n" + textwrap.dedent(source)
    return Module(text, syntax.parse(text))


def fate(body: str, rest: str = "") -> str:
    source = f"def f(path, other):\n    h = os.open(path)\n    {body}\n{rest}"
    tree = module(source)
    return lifetime.fate(tree, tree.functions[0], "h", ["os.close"], ["os.", "len"])


@pytest.mark.parametrize(
    "body", ["h.close()", "os.close(h)", "with h: pass", "try: pass\n    finally: os.close(h)"]
)
def test_closing_releases(body):
    assert fate(body) == "released"


@pytest.mark.parametrize(
    "body",
    [
        "return h",
        "return h, 1",
        "yield h",
        "self.h = h",
        "other.append(h)",
        "other[0] = h",
        "g = h",
        "unknown(h)",
        "return unknown(h)",
    ],
)
def test_what_goes_elsewhere_is_handed_on(body):
    assert fate(body) == "handed on"


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "h.read()",
        "return h.read()",
        "os.read(h, 3)",
        "n = len(h)",
        "if h is None: pass",
        "print(f'{h}')",
        "for line in h: pass",
    ],
)
def test_mere_use_leaves_it_open(body):
    assert fate(body) == "left open"


def test_a_function_of_the_same_file_is_looked_into():
    closes = "def g(x):\n    x.close()\n"
    uses = "def g(x):\n    return x.read()\n"
    keeps = "def g(x):\n    return x\n"

    assert fate("g(h)", closes) == "released"
    assert fate("g(x=h)", closes) == "released"
    assert fate("g(h)", uses) == "left open"
    assert fate("g(h)", keeps) == "handed on"


def test_functions_that_call_each_other_come_to_an_end():
    assert fate("g(h)", "def g(x):\n    g(x)\n") in ("handed on", "left open")


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("fig = make()", ["fig", "fig"]),
        ("fig, ax = make()", ["fig", "ax"]),
        ("self.fig = make()", ["", ""]),
        ("make()", ["", ""]),
        ("a = b = make()", ["", ""]),
    ],
)
def test_the_bound_name_is_read_from_the_assignment(statement, names):
    tree = module(statement)
    call = tree.calls[0]

    assert [lifetime.bound_name(tree, call, position) for position in (0, 1)] == names


def test_finally_and_exit_are_where_removal_is_safe():
    tree = module("""
        def f():
            try:
                one.remove()
            finally:
                two.remove()
        def __exit__(self, *exc):
            three.remove()
    """)

    assert [lifetime.removed_in_finally(tree, call) for call in tree.calls] == [False, True, True]


def test_a_name_that_stands_for_what_was_made_of_it_is_the_resource_no_more():
    body = "h = os.fdopen(h)\n    other({1: h})"
    assert fate(body) == "left open"


def test_a_name_that_an_unknown_function_gives_anew_is_handed_on():
    assert fate("h = wrap(h)\n    other({1: h})") == "handed on"
