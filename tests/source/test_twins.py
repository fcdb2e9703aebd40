"""Innocent code beside a leak changes nothing; what empties beside distracting code is seen."""

from __future__ import annotations

import pytest

from tests.source.asked import outlook, program_of
from tests.source.recorded import recorded

# the leaks: by their holder, as the run knows it
LEAKS = {
    "buf": """
        import torch
        buf = []
        def step(x):
            buf.append(x)  # adds
        for x in range(9999):
            step(x)
        """,
    "buf in train()": """
        import torch
        def train():
            buf = []
            for x in range(9999):
                buf.append(x)  # adds
        train()
        """,
    "Meter.buf": """
        class Meter:
            def __init__(self):
                self.buf = []
            def update(self, x):
                self.buf.append(x)  # adds
        meter = Meter()
        for x in range(9999):
            meter.update(x)
        """,
    "Base.buf": """
        class Base:
            def __init__(self):
                self.buf = {}
            def update(self, x):
                self.buf[x] = x  # adds
        class Run(Base):
            pass
        def main():
            run = Run()
            for x in range(9999):
                run.update(x)
        main()
        """,
    "closure: buf in record()": """
        def record():
            buf = []
            def hook(module, given, made):
                buf.append(made)  # adds
            return hook
        for module in modules:
            module.register_forward_hook(record())
        """,
    "default: buf in note()": """
        def note(x, buf=[]):
            buf.append(x)  # adds
        for x in range(9999):
            note(x)
        """,
    "Counts.buf": """
        from collections import defaultdict
        class Counts:
            def __init__(self):
                self.buf = defaultdict(list)
            def note(self, key, x):
                rows = self.buf[key]
                rows.append(x)  # adds
        counts = Counts()
        while True:
            counts.note(next(keys), object())
        """,
    "Records.buf": """
        import dataclasses
        from collections import defaultdict
        @dataclasses.dataclass
        class Records:
            buf: list = dataclasses.field(default_factory=list)
        records = Records()
        while True:
            records.buf.append(object())  # adds
        """,
}
# innocent code, that never touches them
BESIDE = {
    "an unrelated class that clears its own": """
        class Page:
            def __init__(self):
                self.buf = []
            def turn(self):
                self.buf.clear()
        page = Page()
        def turn_page():
            page.turn()
        """,
    "a parameter of that name": """
        def look(buf):
            buf.clear()
        def turn_over():
            look([])
        """,
    "a local of that name": """
        def collect(rows):
            buf = []
            for row in rows:
                buf.append(row)
                if len(buf) > 9:
                    buf = []
            return buf
        """,
    "an object that gets its own": """
        class Sheet:
            pass
        def renew(step):
            sheet = Sheet()
            if step % 100 == 0:
                sheet.buf = []
        """,
    "another class's that is annotated": """
        class Leaf:
            buf: list
        def wipe(leaf: Leaf):
            leaf.buf = []
            del leaf.buf[:]
        """,
    "an object of that is handed on": """
        class Card:
            pass
        def wipe(card):
            card.buf.clear()
        def wipe_all():
            card = Card()
            wipe(card)
        """,
    "another that is cut to a window": """
        class Window:
            def __init__(self):
                self.buf = []
            def push(self, x):
                self.buf.append(x)
                if len(self.buf) > 30:
                    self.buf = self.buf[-30:]
        window = Window()
        """,
    "a local that is an attribute's window": """
        class Other:
            def show(self):
                buf = self.rows[-9:]
                buf.pop()
                return buf
        """,
    "one of the same name in a comprehension": """
        def join(pages):
            return [buf.pop() for buf in pages]
        """,
}
LIMIT = """
    if len({name}) > 10 ** 12:
        {name}.clear()
    """


def beside(leak: str, innocent: str):
    return program_of(leak.replace("import torch\n", ""), innocent)


@pytest.mark.parametrize("innocent", BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("holder", LEAKS)
def test_innocent_code_in_another_file_changes_nothing(holder, innocent):
    alone = outlook(program_of(LEAKS[holder]), holder)

    assert alone.kind == "leak"
    assert outlook(program_of(LEAKS[holder], innocent), holder) == alone


@pytest.mark.parametrize("innocent", BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("holder", LEAKS)
def test_nor_does_it_in_the_same_file(holder, innocent):
    both = program_of(LEAKS[holder])
    texts = {"train.py": both.texts["train.py"] + program_of(innocent).texts["train.py"]}
    alone = outlook(both, holder)

    assert outlook(type(both)(texts), holder) == alone


IN_ANOTHER_FILE = """
class Store:
    def keep(self, x):
        self.buf[x] = x  # adds

class Meter(Store):
    def __init__(self):
        self.buf = {}
"""
TRAINS = """
from other import Meter

def main():
    meter = Meter()
    for x in range(9999):
        meter.keep(x)
main()
"""


@pytest.mark.parametrize("innocent", BESIDE.values(), ids=BESIDE)
def test_nor_where_the_leak_is_in_a_base_class_of_another_file(innocent):
    alone = outlook(program_of(TRAINS, IN_ANOTHER_FILE), "Meter.buf")

    assert alone.kind == "leak"
    assert outlook(program_of(TRAINS, IN_ANOTHER_FILE, innocent), "Meter.buf") == alone


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("if len(meter.buf) > 90: meter.buf.popitem()", "fills"),
        ("if x % 90 == 0: meter.buf.clear()", "emptied"),
        ("print(meter.buf)", "leak"),
    ],
)
def test_what_empties_it_may_be_in_the_file_that_trains(statement, kind):
    text = TRAINS.replace("meter.keep(x)", f"meter.keep(x)\n        {statement}")

    assert outlook(program_of(text, IN_ANOTHER_FILE), "Meter.buf").kind == kind


# of which class these objects are the files do not say: they may have the one that grows
MAY_BE_IT = {"old.buf = []", "x = other.buf.pop()", "buf.pop(0)"}


@pytest.mark.parametrize("holder", LEAKS)
def test_nor_does_any_source_that_the_reader_is_compared_on(holder):
    alone = outlook(program_of(LEAKS[holder]), holder, homes=("train.py",))
    texts = {"\n".join(case.files.values()).replace("kept", "buf") for case in recorded()}
    others = (program_of(LEAKS[holder], text.replace("# adds", "")) for text in sorted(texts))
    found = [outlook(program, holder, homes=("train.py",)) for program in others]
    changed = {dict(one.reason.fields)["code"] for one in found if one != alone}

    assert len(found) > 500
    assert changed == (MAY_BE_IT if "." in holder else set())


HARMLESS = {
    "a limit that no machine comes to": "if len(meter.buf) > 10 ** 12:\n    meter.buf.clear()",
    "a clean-up after a failure": "try: x = 1\nexcept MemoryError: meter.buf.clear()",
    "what is read": "print(len(meter.buf), meter.buf[-1], sum(meter.buf))",
    "what is copied": "rows = list(meter.buf); rows.clear()",
    "an element": "row = meter.buf[0]; row.clear()",
    "made where it is missing": "if meter.buf is None: meter.buf = []",
    "made where the object has none": "if not hasattr(meter, 'buf'): meter.buf = []",
}


@pytest.mark.parametrize("statement", HARMLESS.values(), ids=HARMLESS)
def test_statements_that_take_nothing_away_change_nothing(statement):
    text = LEAKS["Meter.buf"] + "\n" + indented(statement, 12)

    assert outlook(program_of(text), "Meter.buf") == outlook(
        program_of(LEAKS["Meter.buf"]), "Meter.buf"
    )


def indented(statement: str, by: int) -> str:
    return "\n".join(" " * by + line for line in statement.splitlines()) + "\n"


REACHABLE = {
    "if len(meter.buf) > 10 ** 5:\n    meter.buf.clear()": "fills",
    "try: x = 1\nexcept StopIteration: meter.buf.clear()": "emptied",
    "rows = meter.buf; rows.clear()": "emptied",
    "if x.done: meter.buf = []": "emptied",
    "if x % 300 == 0: meter.buf = []": "emptied",
    "meter.buf = meter.buf[-300:]": "fills",
    "vars(meter).update(buf=[])": "emptied",
    "setattr(meter, 'buf', [])": "emptied",
    "if x.full: meter = Meter()": "emptied",
}


@pytest.mark.parametrize(("statement", "kind"), REACHABLE.items())
def test_their_twins_that_do_are_waited_for(statement, kind):
    text = LEAKS["Meter.buf"] + "\n" + indented(statement, 12)
    found = outlook(program_of(text), "Meter.buf", owners=(("meter", ""),))

    assert found.kind == kind, found


TWO = """
class Meter:
    def __init__(self):
        self.buf = []
    def update(self, x):
        self.buf.append(x)  # adds
    def reset(self):
        self.buf.clear()
def main():
    meter = Meter()
    other = Meter()
    for epoch in range(9):
        for x in range(999):
            meter.update(x)
            other.update(x)
        {statement}
main()
"""
OF_TWO = {
    "other.reset()": "leak",
    "other.buf.clear()": "leak",
    "empty(other)\ndef empty(one):\n    one.reset()": "leak",
    "meter.reset()": "emptied",
    "meter.buf.clear()": "emptied",
    "other = meter; other.reset()": "emptied",
    "for each in (meter, other): each.reset()": "emptied",
    "every[0].reset()": "emptied",
    "empty(meter); empty(other)\ndef empty(one):\n    one.reset()": "emptied",
}


@pytest.mark.parametrize(("statement", "kind"), OF_TWO.items())
def test_another_object_of_the_same_class_is_not_the_one_that_grows(statement, kind):
    program = program_of(TWO.format(statement=statement), complete=True)
    found = outlook(program, "Meter.buf", owners=(("meter", "main"),))

    assert found.kind == kind, found


# what is emptied, cut back or limited, each beside code that adds elsewhere
CLEAN = {
    "emptied at an epoch's end": (
        "Meter.buf",
        """
        class Meter:
            def __init__(self):
                self.buf = []
            def update(self, x):
                self.buf.append(x)  # adds
            def reset(self):
                self.buf.clear()
        def main():
            meter = Meter()
            for epoch in range(9):
                for x in range(999):
                    meter.update(x)
                meter.reset()
        main()
        """,
        ("emptied", "emptied-at-a-turn"),
    ),
    "a local made anew in each epoch": (
        "buf in main()",
        """
        def main():
            for epoch in range(9):
                buf = []
                for x in range(999):
                    buf.append(x)  # adds
        main()
        """,
        ("emptied", "emptied-at-a-turn"),
    ),
    "a local of what trains one epoch": (
        "buf in epoch()",
        """
        def epoch():
            buf = []
            for x in range(999):
                buf.append(x)  # adds
        for _ in range(9):
            epoch()
        """,
        ("emptied", "emptied-at-a-turn"),
    ),
    "cut to a window": (
        "buf",
        """
        buf = []
        for x in range(9999):
            buf.append(x)  # adds
            buf = buf[-400:]
        """,
        ("fills", "fills-to-a-number"),
    ),
    "a window by a length": (
        "buf",
        """
        buf, most = [], compute()
        for x in range(9999):
            buf.append(x)  # adds
            if len(buf) > most:
                buf.pop(0)
        """,
        ("fills", "fills-to-a-limit"),
    ),
    "a ring": (
        "Ring.buf",
        """
        class Ring:
            capacity = 500
            def __init__(self):
                self.buf, self.at = [], 0
            def push(self, x):
                if len(self.buf) < self.capacity:
                    self.buf.append(x)  # adds
                else:
                    self.buf[self.at % self.capacity] = x
                self.at += 1
        ring = Ring()
        for x in range(9999):
            ring.push(x)
        """,
        ("fills", "fills-to-a-number"),
    ),
    "drained by another function": (
        "Log.buf",
        """
        class Log:
            def __init__(self):
                self.buf = []
            def note(self, x):
                self.buf.append(x)  # adds
            def flush(self):
                rows, self.buf = self.buf, []
                return rows
        log = Log()
        for x in range(9999):
            log.note(x)
            if x % 200 == 199:
                log.flush()
        """,
        ("emptied", "emptied-now-and-then"),
    ),
    "a limit where it is added": (
        "buf",
        """
        MOST = 2 * 350
        buf = []
        def note(x):
            if len(buf) >= MOST:
                return
            buf.append(x)  # adds
        for x in range(9999):
            note(x)
        """,
        ("fills", "fills-to-a-number"),
    ),
    "a loop that ends": (
        "buf",
        """
        buf = []
        while True:
            buf.append(work())  # adds
            if len(buf) > 900:
                break
        """,
        ("fills", "fills-to-a-number"),
    ),
    "a memo": (
        "Memo.buf",
        """
        class Memo:
            def __init__(self):
                self.buf = {}
            def get(self, key):
                if key in self.buf:
                    return self.buf[key]
                self.buf[key] = made(key)  # adds
                return self.buf[key]
        memo = Memo()
        for x in range(9999):
            memo.get(x % 37)
        """,
        ("memo", "memo"),
    ),
    "a queue that is read": (
        "buf",
        """
        import queue
        buf = queue.Queue()
        for x in range(9999):
            buf.put(x)  # adds
            if x > 300:
                old = buf.get()
        """,
        ("emptied", "emptied-elsewhere"),
    ),
    "handed to what cuts it": (
        "buf",
        """
        buf = []
        def trim(rows, most):
            while len(rows) > most:
                rows.pop(0)
        for x in range(9999):
            buf.append(x)  # adds
            trim(buf, 250)
        """,
        ("fills", "fills-to-a-number"),
    ),
    "a hook that empties it": (
        "Model.buf",
        """
        class Model:
            def __init__(self):
                self.buf = []
            def training_step(self, x):
                self.buf.append(x)  # adds
            def on_train_epoch_end(self):
                self.buf = []
        """,
        ("emptied", "emptied-at-a-turn"),
    ),
}
DISTRACTING = """
class Hoard:
    def __init__(self):
        self.buf = []
    def update(self, x):
        self.buf.append(x)
hoard = Hoard()
def fill(buf, rows):
    for row in rows:
        buf.append(row)
"""


@pytest.mark.parametrize("distracting", ["", DISTRACTING], ids=["alone", "beside what adds"])
@pytest.mark.parametrize("clean", CLEAN.values(), ids=CLEAN)
def test_what_is_emptied_cut_back_or_limited_is_waited_for(clean, distracting):
    holder, text, expected = clean
    found = outlook(program_of(text, distracting), holder)

    assert (found.kind, found.reason.code) == expected
