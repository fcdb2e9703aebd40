from __future__ import annotations

import pytest

from leakcheck.source import assignments
from leakcheck.source.tree import File

SOURCE = """\
losses = []


class Meter:
    limit: int = 3

    def __init__(self):
        self.sum, self.count = 0, 0


def train():
    total = 0
    for step in range(3):
        total += step

    def inner():
        hidden = 1

    with open("f") as log:
        pass
"""


FILE = File("train.py", SOURCE)


@pytest.mark.parametrize(
    ("function", "name", "line"),
    [
        ("", "losses", 1),
        ("train", "total", 12),
        ("train", "log", 19),
        ("train", "hidden", None),
        ("train", "nobody", None),
        ("nowhere", "total", None),
    ],
)
def test_the_first_assignment_of_a_name_in_its_function_is_found(function, name, line):
    assert assignments.of_name(FILE, function, name) == line


BRANCHES = File(
    "train.py",
    "if kind == 'a':\n    model = A()\nelse:\n    model = nn.B(3).to(device)\nmodel = C()\n",
)


@pytest.mark.parametrize(("kind", "line"), [("A", 2), ("B", 4), ("C", 5), ("D", 2), ("", 2)])
def test_of_several_branches_that_which_calls_the_class_of_the_value_is_found(kind, line):
    assert assignments.of_name(BRANCHES, "", "model", kind) == line


@pytest.mark.parametrize(("name", "line"), [("sum", 8), ("limit", 5), ("mean", None)])
def test_the_first_assignment_of_an_attribute_is_found(name, line):
    assert assignments.of_attribute(FILE, "Meter", name) == line


@pytest.mark.parametrize(("name", "line"), [("head", 7), ("size", 11), ("only", None)])
def test_the_last_assignment_of_an_attribute_is_found_if_there_are_several(name, line):
    file = File(
        "train.py",
        "class List:\n"
        "    size = 0\n"
        "    def __init__(self):\n"
        "        self.head = None\n"
        "        self.only = 1\n"
        "    def push(self, node):\n"
        "        self.head = node\n"
        "class Other:\n"
        "    def __init__(self):\n"
        "        self.head = 2\n"
        "List.size = 3\n",
    )

    assert assignments.last_of_attribute(file, "List", name) == line


FROM_OUTSIDE = File(
    "train.py",
    "model = Net()\n"
    "def train(model):\n"
    "    for x in data:\n"
    "        model = model.train()\n"
    "        model.last = model(x)\n"
    "    model = model.eval()\n"
    "    state = first()\n"
    "    state = step(state)\n",
)


@pytest.mark.parametrize(
    ("name", "of_name", "of_owner"), [("model", 6, None), ("state", 8, 8), ("x", None, None)]
)
def test_an_owner_is_not_given_anew_by_a_method_that_hands_it_back(name, of_name, of_owner):
    assert assignments.last_of_name(FROM_OUTSIDE, "train", name) == of_name
    assert assignments.last_of_owner(FROM_OUTSIDE, "train", name) == of_owner


@pytest.mark.parametrize(
    ("function", "dotted", "line"),
    [("train", "model.last", 5), ("", "model.last", None), ("train", "model.next", None)],
)
def test_an_attribute_may_be_given_from_outside_its_class(function, dotted, line):
    assert assignments.last_from_outside(FROM_OUTSIDE, function, dotted) == line


def test_a_file_that_is_not_python_has_no_assignments():
    assert assignments.of_name(File("notes.py", "this is ] not python"), "", "this") is None
    assert assignments.of_name(File("missing.py", ""), "", "this") is None
