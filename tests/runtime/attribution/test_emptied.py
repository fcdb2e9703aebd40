"""What the source empties when the loop around the steps turns."""

from __future__ import annotations

import textwrap
import threading
from dataclasses import replace

import pytest

from leakcheck.model import LeakTrace, Link, Place, Suspect
from leakcheck.runtime.attribution import emptied
from tests.holders import held_by

LIST = "attribute `Model.kept`, from local `model` in main()"
LOCAL = "local `kept` in train()"
LOOPS = """
def train():
    {before}
    for epoch in range(9):
        {within}
        for batch in batches:
            kept.append(step(batch))  # adds
        {after}
"""
MODEL = """
class Model:
    def __init__(self):
        self.kept = []

    def training_step(self, batch):
        self.kept.append(batch)  # adds

    def on_epoch_end(self):
        {statement}
"""


def is_emptied(tmp_path, source: str, holder: str, kind: str = "tensor") -> bool:
    program = tmp_path / f"program{len(list(tmp_path.iterdir()))}.py"  # sources are remembered
    program.write_text(textwrap.dedent(source))
    line = next(i for i, text in enumerate(source.splitlines(), 1) if "# adds" in text)
    adds = Place(str(program), line, "kept.append(...)")
    return emptied.by_program(
        [Suspect(kind, "list of Tensor", holder=held_by(holder), locations=(adds,))]
    )


@pytest.mark.parametrize(
    "statement",
    [
        "self.kept.clear()",
        "self.kept = []",
        "self.kept, self.other = [], {}",
        "self.kept = deque()",
        "del self.kept[:]",
    ],
)
def test_an_attribute_that_another_method_empties(tmp_path, statement):
    assert is_emptied(tmp_path, MODEL.format(statement=statement), LIST)


@pytest.mark.parametrize(
    "statement",
    [
        "self.other.clear()",
        "self.kept = sorted(self.kept)",
        "self.kept[0] = []",
        "del self.kept[0]",
        "pass",
    ],
)
def test_one_that_none_empties(tmp_path, statement):
    assert not is_emptied(tmp_path, MODEL.format(statement=statement), LIST)


@pytest.mark.parametrize(
    ("before", "within", "after", "emptied"),
    [
        ("kept = []", "pass", "pass", False),
        ("kept = []", "kept = []", "pass", True),
        ("kept = []", "pass", "kept.clear()", True),
        ("kept = []", "pass", "del kept", True),
    ],
)
def test_a_local_is_emptied_within_the_loop_around_that_of_the_steps(
    tmp_path, before, within, after, emptied
):
    source = LOOPS.format(before=before, within=within, after=after)

    assert is_emptied(tmp_path, source, LOCAL) is emptied
    in_module = textwrap.dedent(source.partition("train():\n")[2])
    assert is_emptied(tmp_path, in_module, "global `kept`") is emptied


def test_a_local_of_what_trains_one_epoch_is_gone_when_that_returns(tmp_path):
    source = "def train():\n    kept = []\n    for b in batches:\n        kept.append(b)  # adds\n"

    assert is_emptied(tmp_path, source, LOCAL)
    assert not is_emptied(tmp_path, source, LOCAL, kind="graph")
    assert not is_emptied(tmp_path, source, "held outside Python: no Python object refers to it")


def test_what_a_method_makes_before_its_own_loops_is_made_once(tmp_path):
    source = (
        "class Trainer:\n"
        "    def fit(self):\n"
        "        self.kept = []\n"
        "        for epoch in range(9):\n"
        "            for batch in batches:\n"
        "                self.kept.append(batch)  # adds\n"
    )

    assert not is_emptied(tmp_path, source, "attribute `Trainer.kept`, from local `self` in fit()")


def test_nobody_empties_what_has_no_holder():
    assert not emptied.by_program([])
    assert not emptied.by_program([Suspect("tensor", "Tensor", holder=held_by("global `kept`"))])


def is_emptied_elsewhere(tmp_path, source: str, holder: str) -> bool:
    program = tmp_path / f"program{len(list(tmp_path.iterdir()))}.py"  # sources are remembered
    program.write_text(textwrap.dedent(source))
    adds = Place(str(program), 3, "kept.append(...)")
    return emptied.elsewhere([Suspect("tensor", "list", holder=held_by(holder), locations=(adds,))])


def test_a_local_of_a_function_that_is_called_again_and_again(tmp_path):
    train = "def train(n):\n    kept = []\n    kept.append(n)\n"

    assert is_emptied_elsewhere(tmp_path, train + "train(1)\ntrain(2)\n", LOCAL)
    fits = "def fit():\n    train(1)\n\nfit()\nfit()\n"
    assert is_emptied_elsewhere(tmp_path, train + fits, LOCAL)
    itself = train + "    train(n - 1) + train(n - 2)\n\ntrain(9)\n"
    assert is_emptied_elsewhere(tmp_path, itself, LOCAL)
    assert not is_emptied_elsewhere(tmp_path, train + "train(1)\n", LOCAL)
    assert not is_emptied_elsewhere(tmp_path, train + "train(1) if a else train(2)\n", LOCAL)
    assert not is_emptied_elsewhere(tmp_path, train + "train(1)\ntrain(2)\n", "global `kept`")


@pytest.mark.parametrize(
    "calls",
    ["[train(n) for n in sizes]", "list(map(train, sizes))", "dict((n, train(n)) for n in sizes)"],
)
def test_a_local_of_a_function_that_is_called_for_each_of_some(tmp_path, calls):
    train = "def train(n):\n    kept = []\n    for _ in range(n): kept.append(step())  # adds\n"

    assert is_emptied_elsewhere(tmp_path, f"{train}found = {calls}\n", LOCAL)
    assert not is_emptied_elsewhere(tmp_path, f"{train}train(1)\n", LOCAL)


FOLD = """
class Fold:
    def run(self):
        self.kept.append(step())  # adds

def one(k):
    return Fold(k).run()

"""
OF_FOLD = "attribute `Fold.kept`, from local `self` in run()"


@pytest.mark.parametrize(
    ("calls", "gone"),
    [
        ("sum(Fold(k).run() for k in range(5))", True),
        ("[one(k) for k in range(5)]", True),
        ("one(1)\none(2)", True),
        ("fold = Fold(1)\n[fold.run() for k in range(5)]", False),
        ("Fold(1).run()", False),
    ],
)
def test_what_an_object_keeps_that_is_made_for_one_call_is_gone_with_it(tmp_path, calls, gone):
    program = tmp_path / f"program{len(list(tmp_path.iterdir()))}.py"
    program.write_text(f"{FOLD}{calls}\n")
    trace = LeakTrace("local `self` in run()", (Link(".kept", "list", suspect=True),))
    adds = (Place(str(program), 4, "self.kept.append(step())"),)
    suspect = Suspect(
        "tensor", "list of Tensor", holder=held_by(OF_FOLD), trace=trace, locations=adds
    )

    assert emptied.elsewhere([suspect]) is gone


def test_what_a_loop_of_another_thread_empties(tmp_path):
    source = """
        def drain(started, over):
            while not over.wait(0.01):  # line 3
                kept.clear()
                started.set()
        """
    path = tmp_path / "drain.py"
    path.write_text(textwrap.dedent(source))
    names: dict = {"kept": []}
    exec(compile(path.read_text(), str(path), "exec"), names)
    started, over = threading.Event(), threading.Event()
    thread = threading.Thread(target=names["drain"], args=(started, over))
    thread.start()
    started.wait()
    adds = Place(str(path), 1, "kept.append(...)")
    suspects = [Suspect("tensor", "list", holder=held_by("global `kept`"), locations=(adds,))]

    try:
        assert emptied.elsewhere(suspects)
        assert not emptied.elsewhere([replace(suspects[0], holder=held_by("global `other`"))])
        assert not emptied.elsewhere([replace(suspects[0], kind="graph")])
    finally:
        over.set()
        thread.join()
    assert not emptied.elsewhere(suspects)


@pytest.mark.parametrize(
    ("turn", "lets_go"),
    [
        ("kept, other = zip(*made())", True),
        ("kept = made()", True),
        ("kept = kept + made()", False),
        ("kept += made()", False),
        ("other = kept", False),
    ],
)
def test_a_local_that_gets_another_value_at_each_turn_lets_go_of_what_it_held(
    tmp_path, turn, lets_go
):
    path = tmp_path / "train.py"
    step = "        for _ in range(9):\n            log(kept)\n"
    path.write_text(f"def train(kept):\n    for _ in range(9):\n        {turn}\n{step}")
    adds = Place(str(path), 5, "log(kept)")

    assert (
        emptied.by_turn([Suspect("tensor", "list", holder=held_by(LOCAL), locations=(adds,))])
        == lets_go
    )
