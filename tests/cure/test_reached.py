"""Which lines of a file ran is noted where it was asked for, and changes nothing else."""

from __future__ import annotations

import sys

import pytest

from leakcheck.cure.reached import Reached
from leakcheck.experiments import SourceSpan
from leakcheck.runtime.clock import ticks

TEXT = """\
\'\'\'The file.\'\'\'
from __future__ import annotations

def mean(values):
    if not values:
        return 0
    elif len(values) == 1:
        return values[0]
    else:
        total = sum(values)
    for each in values:
        if each < 0:
            total -= each
    return total

@staticmethod
def unused():
    return 1
"""


@pytest.fixture
def noted(monkeypatch, tmp_path):
    def run(text: str, lines: list[int], call: str = "") -> tuple[list[int], Reached]:
        monkeypatch.setattr(ticks, "rewrites", [])
        path = str(tmp_path / "file.py")
        reached = Reached({path: lines})
        names: dict[str, object] = {}
        ticks.give_names(names)
        exec(ticks.compile_with_ticks(text, path), names)
        exec(call, names)
        assert reached.loaded() == (path,)
        return [each.line for each in reached.unreached()], reached

    return run


def test_the_lines_that_did_not_run_are_told(noted):
    every = list(range(1, 19))

    left, _ = noted(TEXT, [5, 6, 7, 8, 10, 12, 13, 14, 17, 18], "assert mean([1, 2]) == 3")

    assert left == [6, 8, 13, 18]
    assert noted(TEXT, every)[0][-1] == 18


def test_a_line_ran_if_all_of_it_did(noted):
    text = "def f(late):\n    if late: return 1\n    for each in 'ab': pass\n    return 0; 1\n"

    assert noted(text, [2, 3], "f(False)")[0] == [2]
    assert noted(text, [2, 3], "f(False), f(True)")[0] == []


def test_of_a_file_that_was_never_loaded_no_line_ran(noted):
    _, reached = noted(TEXT, [5])

    assert Reached({"/elsewhere.py": [3, 1]}).unreached() == [
        SourceSpan("/elsewhere.py", 1, 0, 1, sys.maxsize),
        SourceSpan("/elsewhere.py", 3, 0, 3, sys.maxsize),
    ]
    assert len(reached.unreached()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "compile = id\n@compile\ndef f(x): pass\n",
        "def f(x): pass\nif 0:\n    torch.compile(f)\n",
        "class M(list):\n    def f(self): pass\nif 0:\n    torch.jit.script(M())\n",
    ],
)
def test_of_what_is_compiled_otherwise_nothing_is_said(noted, text):
    inside = [at for at, line in enumerate(text.splitlines(), 1) if "pass" in line]
    text = text.replace(" pass", "\n        pass")

    assert noted(text, [inside[0] + 1])[0] == []
    assert noted("def f(x):\n    pass\n", [2])[0] == [2]


PARTS = """\
def read(kept, late):
    a = len(kept) if late else 0
    b = late and sum(kept)
    c = {"last": lambda: kept[-1]}
    d = [each for each in kept if late for one in (kept or [1])]
    e = {k: kept for k in range(late)}
    with open("x") if late else kept: f"{late and kept}"
"""


def test_the_parts_of_a_line_that_are_not_always_run_are_told(noted):
    lines = PARTS.splitlines()
    kept = "type('Kept', (list,), {'__enter__': list.__len__, '__exit__': lambda *_: None})"

    _, reached = noted(PARTS, list(range(2, 8)), f"read({kept}(), 0)")

    left = [lines[at.line - 1][at.column : at.end_column] for at in reached.unreached()]
    whole = 'f"{late and kept}"' if sys.version_info < (3, 12) else "kept"
    assert left == [
        "len(kept)", "sum(kept)", "kept[-1]", "each", "late", "kept or [1]", "[1]", "k", "kept",
        'open("x")', whole,
    ]  # fmt: skip


GUARDS = """\
def read(kept, late):
    assert kept is not None, kept[-1]
    a = 1 < late < len(kept)
    match late:
        case 1 if kept:
            pass
        case 0 if late:
            pass
    x: (late and int) = kept or 3
"""


def test_so_are_what_an_assert_says_later_comparisons_and_guards(noted):
    lines = GUARDS.splitlines()

    left, reached = noted(GUARDS, list(range(2, 10)), "read([], 0)")

    parts = [lines[at.line - 1][at.column : at.end_column] for at in reached.unreached()]
    assert list(zip(left, parts, strict=True)) == [
        (2, "kept[-1]"), (3, "len(kept)"), (5, "kept"), (6, "p"), (8, "p"),
    ]  # fmt: skip


def test_marked_parts_give_what_they_gave(noted):
    text = (
        "def f(late, kept):\n"
        "    a = (1 if late else 2, late and kept, late or kept, (lambda: kept)(),\n"
        "         [x or 3 for x in kept if x != 1], {x: late or x for x in kept})\n"
        "    return a\n"
    )
    expected = "(2, 0, [0, 1], [0, 1], [3], {0: 0, 1: 1})"

    assert noted(text, [2, 4], f"assert f(0, [0, 1]) == {expected}, f(0, [0, 1])")[0] == [2, 2]
