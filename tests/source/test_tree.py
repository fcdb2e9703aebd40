"""Whose is a name, which loops are around, what is imported?"""

from __future__ import annotations

import ast

import pytest

from leakcheck.source.tree import MOST_FILES, File, ProgramTexts, parameters

TEXT = """
from state import rows as kept_rows
import torch.nn as nn

class Meter:
    rows = []

    def add(self, x, rows):
        rows.append(x)
        self.rows.append([rows for rows in x])

def train():
    global total
    total = 0
    rows = []

    def log():
        nonlocal rows
        rows = [1]

    for batch in rows:
        while batch:
            rows.append(batch)

rows = 3
"""


def scopes() -> list[str]:
    file = File("train.py", TEXT)
    names = (node for node in file.named("rows") if isinstance(node, ast.Name))
    found = sorted(names, key=lambda node: (node.lineno, node.col_offset))
    return [getattr(scope, "name", type(scope).__name__) for scope in map(file.scope, found)]


def test_a_name_belongs_to_the_scope_that_binds_it():
    assert scopes() == [
        "Meter",
        "add",
        "ListComp",
        "ListComp",
        "train",
        "train",
        "train",
        "train",
        "Module",
    ]


def test_a_global_is_the_module_s():
    file = File("train.py", TEXT)
    (total,) = file.named("total")

    assert file.scope(total) is file.tree


def test_the_loops_around_a_node_are_those_of_its_function_the_nearest_first():
    file = File("train.py", TEXT)
    (call,) = (each for each in file.calls("append") if each.lineno == 23)

    assert [loop.lineno for loop in file.loops(call)] == [22, 21]


def test_what_a_loop_goes_over_is_asked_for_before_it():
    file = File("train.py", "for x in rows:\n    pass\nwhile rows: pass\n")

    assert [len(file.loops(node)) for node in file.named("rows")] == [0, 1]


def test_imports_are_known_by_what_they_stand_for():
    assert File("train.py", TEXT).imports == {"kept_rows": "state.rows", "nn": "torch.nn"}


@pytest.mark.parametrize("text", ["def f(:", "x = '\0'", "a" + "\n" * 20_001])
def test_a_text_that_cannot_be_parsed_has_an_empty_tree(text):
    assert File("train.py", text).tree.body == []


def test_a_class_has_the_bases_that_the_files_know():
    program = ProgramTexts(
        {"a.py": "class A(B): pass", "b.py": "class B(list, C): pass\nclass C: ..."}
    )

    assert program.family("A") == ("A", "B", "list", "C")


def test_functions_of_the_same_file_come_before_those_of_others():
    program = ProgramTexts({"a.py": "def trim(rows): pass", "b.py": "def trim(kept): pass"})
    found = program.functions("trim", program.file("b.py"))

    assert [parameters(function) for _, function in found] == [["kept"]]


def test_the_files_that_what_grows_is_in_come_first_however_many_have_the_word():
    others = {f"module_{n}.py": "data = []" for n in range(MOST_FILES)}
    program = ProgramTexts({**others, "buffer.py": "data.append(1)"})

    assert "buffer.py" not in [file.path for file in program.files("data")]
    assert [file.path for file in program.files("data", ["buffer.py"])] == ["buffer.py", *others]
