"""What the program might empty, in ways that no length or epoch tells of."""

from __future__ import annotations

import textwrap

import pytest

from leakcheck.model import LeakTrace, Link, Place, Suspect
from leakcheck.runtime.attribution.perhaps import emptied_at
from tests.holders import held_by

GLOBAL = "global `kept`"
ATTRIBUTE = "attribute `Meter.kept`, from global `meter`"
LOOP = """
kept = {made}
for step in range(9000):
    kept.append(train())  # adds
    {statement}
"""
METER = """
class Meter:
    def __init__(self):
        self.kept = []

    def update(self, loss):
        self.kept.append(loss)  # adds

    def reset(self):
        {statement}

meter = Meter()
for step in range(9000):
    meter.update(train())
"""


@pytest.fixture
def may(tmp_path):
    """Say whether what a source adds to at its marked line may be emptied."""

    def may(source: str, holder: str = GLOBAL, kind: str = "tensor") -> bool:
        source = textwrap.dedent(source)
        path = tmp_path / f"program{len(list(tmp_path.iterdir()))}.py"  # sources are remembered
        path.write_text(source)
        line = next(i for i, text in enumerate(source.splitlines(), 1) if "# adds" in text)
        trace = LeakTrace(holder.rpartition("from ")[2], (Link(".kept", "list", suspect=True),))
        places = (Place(str(path), line, ""),)
        suspect = Suspect(kind, "tensors", holder=held_by(holder), trace=trace, locations=places)
        return emptied_at([suspect]) is not None

    return may


@pytest.mark.parametrize(
    "statement",
    [
        "if step % 400 == 0: kept = {'loss': []}",
        "if left == 0: kept, left = [], 400",
        "if left == 0: kept.clear()",
        "if full: del kept[:]",
        "while kept: kept.pop()",
        "if full:\n        for rows in (kept, other): rows.clear()",
        "try: x = next(batches)\n    except StopIteration: kept, epoch = [], epoch + 1",
    ],
)
def test_a_name_that_is_given_something_else_now_and_then(may, statement):
    assert may(LOOP.format(made="[]", statement=statement))


@pytest.mark.parametrize(
    "statement",
    [
        "print(len(kept), sum(kept) / len(kept))",
        "last = kept[-1]",
        "if step % 400 == 0: print(torch.stack(kept).mean())",
        "if step % 400 == 0: other = []",
        "kept = kept + [step]",
        "loss = kept.pop()",  # one on each step: it grows all the same
        "meter.update(kept)",
    ],
)
def test_reading_it_empties_nothing(may, statement):
    assert not may(LOOP.format(made="[]", statement=statement))


@pytest.mark.parametrize(
    "statement",
    [
        "self.kept = deque()",
        "self.__init__()",
        "setattr(self, 'kept', [])",
        "vars(self).update(kept=[])",
        "for rows in vars(self).values(): rows.clear()",
        "self.kept[:] = []",
        "self.kept, self.before = [], self.kept",
    ],
)
def test_an_attribute_that_another_method_may_empty(may, statement):
    assert may(METER.format(statement=statement), ATTRIBUTE)


@pytest.mark.parametrize("statement", ["return sum(self.kept)", "self.other = []", "pass"])
def test_an_attribute_that_no_method_empties(may, statement):
    assert not may(METER.format(statement=statement), ATTRIBUTE)


def test_an_object_that_is_made_anew_now_and_then(may):
    assert may(METER.format(statement="pass") + "    if full(): meter = Meter(9)\n", ATTRIBUTE)


def test_what_a_function_makes_before_its_loop_it_makes_once(may):
    source = """
        def train(steps):
            kept = []
            for _ in range(steps):
                kept.append(step())  # adds
        """
    assert not may(source, "local `kept` in train()")


def test_a_function_that_empties_what_it_is_handed(may):
    flush = "def flush(rows):\n    print(rows)\n    rows.clear()\n"
    statement = "if step % 400 == 0: flush(kept)"
    assert may(flush + LOOP.format(made="[]", statement=statement))


def test_a_list_that_empties_itself(may):
    log = "class Log(list):\n    def flush(self):\n        self[:] = []\n"
    assert may(log + LOOP.format(made="Log()", statement="if step % 9 == 0: kept.flush()"))


def test_a_graph_is_not_to_wait_nor_what_nobody_holds(may):
    source = LOOP.format(made="[]", statement="if left == 0: kept.clear()")
    assert not may(source, kind="graph")
    assert not may(source, holder="")


MADE_LATE = """
kept, state, found = {{}}, {{}}, None
for step in range(9000):
    {made}
    kept["rows"].append(train())  # adds
"""


@pytest.mark.parametrize(
    "made",
    [
        'if not kept: kept["rows"] = []',
        'if "rows" not in kept: kept["rows"] = []',
        'if kept.get("rows") is None: kept["rows"] = []',
        'if len(kept) == 0 and step: kept["rows"] = []',
        'if not hasattr(state, "kept"): kept["rows"] = []',
        """if "rows" in kept: pass
    else: kept["rows"] = []""",
        """if kept: pass
    else: kept["rows"] = []""",
        """rows = kept.get("rows")
    if rows is None: rows = kept["rows"] = []""",
    ],
)
def test_what_is_made_where_it_is_missing_takes_nothing_away(may, made):
    assert not may(MADE_LATE.format(made=made))


@pytest.mark.parametrize(
    "emptied",
    [
        'if step % 100 == 0: kept["rows"] = []',
        'if kept: kept["rows"] = []',
        'if len(kept["rows"]) != 0: kept["rows"] = []',
        'if "rows" in kept: kept["rows"] = []',
        'if not found: kept["rows"] = []',
    ],
)
def test_what_is_made_where_it_is_there_does(may, emptied):
    assert may(MADE_LATE.format(made=emptied))


MADE_BY_ANOTHER = """
def test_leak():
    meter = Meter()
    for step in range(9000):
        meter.kept.append(train())  # adds

def test_other():
    for epoch in range(8):
        for batch in range(9):
            train()
        meter = Meter()
"""


def test_a_local_of_the_same_name_in_another_function_is_another(may):
    holder = "attribute `Meter.kept`, from local `meter` in {}()"

    assert not may(MADE_BY_ANOTHER, holder.format("test_leak"))
    assert may(MADE_BY_ANOTHER, holder.format("test_other"))


LAZY = """
class Augment:
    def rng(self):
        if not hasattr(self, "random"):
            self.random = Random(0)
            self.kept = []
        return self.random

    def __call__(self, x):
        self.kept.append(self.rng().random())  # adds
"""


def test_what_is_made_with_an_attribute_that_is_missing_is_made_once(may):
    holder = "attribute `Augment.kept`, from global `augment`"

    assert not may(LAZY, holder)
    assert may(LAZY.replace('not hasattr(self, "random")', "self.full"), holder)
