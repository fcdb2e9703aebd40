"""The role of each use: what a statement does to `kept`, or to the attribute of an object."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leakcheck.source.places import Held
from leakcheck.source.uses import RELIEVES, Use, uses_of
from tests.source.asked import ADDS, held, outlook, program_of, reliefs, uses

ROLES = {
    "kept.append(x)": "add",
    "kept += [x]": "add",
    "kept = kept + [x]": "add",
    "kept = [*kept, x]": "add",
    "kept = torch.cat([kept, x])": "add",
    "kept = sorted(kept)": "add",
    "kept = kept[:]": "add",
    "kept[key] = x": "add",
    "heapq.heappush(kept, x)": "add",
    "kept.pop()": "take",
    "kept.pop(key, None)": "take",
    "kept.clear()": "take",
    "del kept[0]": "take",
    "old = kept.get()": "take",
    "heapq.heappop(kept)": "take",
    "kept = []": "replace",
    "kept, n = [], 0": "replace",
    "del kept": "replace",
    "kept[:] = []": "replace",
    "with opened() as kept: pass": "replace",
    "kept = rows": "replace",
    "kept = kept[:0]": "replace",
    "kept = {k: [] for k in kept}": "replace",
    "kept.update({k: [] for k in names})": "replace",
    "kept = kept[-9:]": "cut",
    "kept[:] = kept[-9:]": "cut",
    "del kept[:-9]": "cut",
    "kept = [r for r in kept if r.alive]": "cut",
    "kept = {k: kept[k] for k in recent}": "cut",
    "kept = heapq.nlargest(9, kept)": "cut",
    "kept = collections.deque(kept, maxlen=9)": "cut",
    "kept &= recent": "cut",
    "kept.difference_update(old)": "cut",
    "del kept[step - n]": "cut",
    "kept.discard(step - n)": "cut",
    "head, *kept = kept": "cut",
    "kept[step % n] = x": "ring",
    "kept[random.randrange(n)] = x": "ring",
    "kept[self.at] = x": "ring",
    "heapq.heapreplace(kept, x)": "ring",
    "kept = prune(kept)": "escape",
    "kept = kept + [x] if more else []": "escape",
    "done, kept = wait(kept)": "escape",
    "prune(kept)": "escape",
    "kept.prune()": "escape",
    "list(map(list.clear, (kept, rows)))": "escape",
    "future.add_done_callback(kept.discard)": "escape",
    "print(kept, len(kept), kept[0])": "read",
    "row = kept.get(key)": "read",
    "for row in kept: use(row)": "read",
    "kept.sort()": "read",
    "list(map(list.sort, (kept, rows)))": "read",
    "droplet(kept)": "read",
}


@pytest.mark.parametrize(("statement", "role"), ROLES.items())
def test_the_role_of_a_use(statement, role):
    found = uses(program_of(f"for x in xs:\n    {statement}\n"), "kept")
    acting = {use.role for use in found} - {"read"}

    assert acting == {role} - {"read"}


TO_PLACES = {
    "self.at = (self.at + 1) % self.most": {"ring"},
    "self.at = self.at + 1 if self.at < self.most else 0": {"ring"},
    "self.at += 1": {"add"},
    "self.at = self.at + len(x)": {"add"},
    "self.at += 1\n    def begin(self):\n        self.at = 0": {"ring"},  # each epoch anew
}


@pytest.mark.parametrize(("next_place", "roles"), TO_PLACES.items())
def test_what_is_set_at_a_place_that_only_counts_up_is_added(next_place, roles):
    program = program_of(f"""
class Store:
    def __init__(self, most):
        self.rows, self.at, self.most = {{}}, 0, most
    def put(self, x):
        self.rows[self.at] = x
        {next_place}
""")
    found = uses(program, "Store.rows")

    assert {use.role for use in found if use.reach != "once"} == roles


OTHERS = {
    "class Page:\n    def turn(self):\n        self.at = 0": {"add"},
    "class Base:\n    def turn(self):\n        self.at = 0": {"ring"},
    "def turn(store):\n    store.at = 0": {"ring"},
}


@pytest.mark.parametrize(("beside", "roles"), OTHERS.items())
def test_a_place_of_another_class_of_that_name_is_another(beside, roles):
    program = program_of(f"""
class Store(Base):
    def put(self, x):
        self.rows[self.at] = x
        self.at += 1

{beside}
""")

    assert {use.role for use in uses(program, "Store.rows")} == roles


BEGUN = {
    "trainer.run()": "add",
    "for epoch in range(9):\n    trainer.run()": "ring",  # the next epoch comes to the same places
}


@pytest.mark.parametrize(("call", "role"), BEGUN.items())
def test_a_place_that_counts_from_a_number_set_before_the_loop_comes_once(call, role):
    program = program_of(
        "def note(trainer, loss):\n    trainer.losses[trainer.step] = loss\n",
        f"""
class Trainer:
    def run(self):
        self.step = 0
        while True:
            note(self, work())
            self.step += 1

{call}
""",
    )

    assert {use.role for use in uses(program, "Trainer.losses")} == {role}


@pytest.mark.parametrize(("keyed", "role"), [(True, "add"), (False, "ring")])
def test_of_a_dictionary_another_object_s_attribute_is_a_new_key(keyed, role):
    program = program_of("""
class Store:
    def put(self, request, x):
        self.rows[request.id] = x
""")
    found = uses(program, "Store.rows", keyed=keyed)

    assert [use.role for use in found] == [role]


GATHERED = {
    "for x in xs:\n    kept.append(x)\nprint(torch.cat(kept))": True,
    "for x in xs:\n    kept.append(x)\nnp.stack([each.cpu() for each in kept])": True,
    "for x in xs:\n    kept.append(x)\ntorch.save({'kept': kept}, path)": True,
    "for x in xs:\n    kept.append(x)\nprint(len(kept))": False,
    "for x in xs:\n    kept.append(x)\nprint(torch.cat([y, kept[0]]))": False,
    "for x in xs:\n    kept.append(x)\nprint(torch.cat(others, kept))": False,
    "for x in xs:\n    kept.append(x)\n    torch.cat(kept)": False,
    "for e in es:\n    for x in xs:\n        kept.append(x)\n    torch.cat(kept)": False,
    "for e in es:\n    for x in xs:\n        kept.append(x)\ntorch.cat(kept)": True,
    "while True:\n    kept.append(x)\ntorch.cat(kept)": False,
    "for x in itertools.count():\n    kept.append(x)\ntorch.cat(kept)": False,
}
RETURNED = "def train():\n    for x in xs:\n        kept.append(x)\n    return {}\n"
GATHERED |= {
    RETURNED.format("kept") + "print(torch.stack(train()))": True,
    RETURNED.format("kept") + "history = train()\nprint(torch.stack(history).mean())": True,
    RETURNED.format("kept, x") + "history, last = train()\ntorch.save(history, path)": True,
    RETURNED.format("kept") + "history = train()\nprint(len(history))": False,
    RETURNED.format("len(kept)") + "history = train()\nprint(torch.stack(history))": False,
    RETURNED.format("kept") + "history = train()\ndef f(history): torch.stack(history)": False,
}
COUNTED = {  # where `n` is counted up
    "while n < 9:": "",
    "while not n >= most and go_on():": "",
    "while True:": "if n >= most: break",
    "while more():": "if done() or n == most: break",
    "for i in itertools.count():": "if i > most: break",
}
NOT_COUNTED = {
    "while n > 9:": "",
    "while n < 9 or go_on():": "",
    "while x < 9:": "",
    "while True:": "if n >= most: report()",
    "while more():": "if done() and n == most: break",
}


def uses_where_it_appends(text: str) -> tuple[Use, ...]:
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines, 1) if "append" in line)
    program = program_of(text)
    return uses_of(program, replace(held(program, "kept"), adds=(("train.py", at),)))


@pytest.mark.parametrize(("text", "gathers"), GATHERED.items())
def test_what_is_joined_once_after_a_loop_that_ends_was_gathered(text, gathers):
    assert any(use.gathers for use in uses_where_it_appends(text)) == gathers


@pytest.mark.parametrize(
    ("loop", "leaves", "ends"),
    [
        *((loop, leaves, True) for loop, leaves in COUNTED.items()),
        *((loop, leaves, False) for loop, leaves in NOT_COUNTED.items()),
    ],
)
def test_a_loop_that_counts_up_to_a_number_ends(loop, leaves, ends):
    body = f"    kept.append(x)\n    n += 1\n    {leaves or 'pass'}"
    found = uses_where_it_appends(f"n = 0\n{loop}\n{body}\ntorch.cat(kept)")

    assert any(use.gathers for use in found) == ends


@pytest.mark.parametrize(("number", "cuts"), [("0", False), ("8", True), ("args.keep", True)])
def test_the_newest_none_of_a_list_are_all_of_it(number, cuts):
    """`kept[-0:]` is `kept[0:]`."""
    text = f"KEEP = {number}\nfor x in xs:\n    kept.append(x)\n    kept = kept[-KEEP:]"
    found = uses_where_it_appends(text)

    assert any(use.role == "cut" for use in found) is cuts


LOOP = "for x in xs:\n    kept.append(x)\n"
AFTER = {
    f"{LOOP}print(sorted(kept))": True,
    f"{LOOP}for row in kept: write(row)": True,
    f"{LOOP}mean = sum(each.item() for each in kept) / n": True,
    f"{LOOP}json.dump({{'rows': kept}}, file)": True,
    f"{LOOP}table = frame(rows=[kept, others])": True,
    f"{LOOP}plot(*kept)": True,
    f"{LOOP}write(kept.copy())": True,
    "def gather():\n    for x in xs:\n        kept.append(x)\n    return kept": True,
    "for e in es:\n    for x in xs:\n        kept.append(x)\nplot(kept)": True,
    "def fill(x):\n    kept.append(x)\nfor x in xs: fill(x)\nplot(kept)": True,
    "def told():\n    return frame(kept)\nfor x in xs: kept.append(x)\ntold()": True,
    f"{LOOP}print(len(kept), kept[-1], id(kept))": False,
    "def run():\n    for x in xs: kept.append(x)\nrun()\nplot(kept)": True,
    "def run():\n    for x in xs: kept.append(x)\n    plot(kept)\nrun()": True,
    "def run():\n    for x in xs: kept.append(x)\n    plot(kept)\nfor e in es: run()": False,
    "def run():\n    for x in xs: kept.append(x)\n    plot(kept)\n"
    "def main():\n    for e in es: run()\nmain()": False,
    "def run():\n    for x in xs: kept.append(x)\n    return kept\nprint(run())": True,
    "def run():\n    for x in xs: kept.append(x)\n    return kept\nrun()": False,
    f"{LOOP}rows = kept": False,
    f"{LOOP}if kept: print('some')": False,
    f"{LOOP}print(kept.count(3))": False,
    f"begin(kept)\n{LOOP}": False,
    "for x in xs:\n    kept.append(x)\n    look(kept)": False,
    "def told():\n    return frame(kept)\ntold()\nfor x in xs: kept.append(x)": False,
    "def told():\n    return frame(kept)\nfor x in xs: kept.append(x)": False,
    "for e in es:\n    for x in xs:\n        kept.append(x)\n    plot(kept)": False,
    "while more():\n    kept.append(x)\nplot(kept)": False,
    "for x in xs:\n    try: kept.append(x)\n    except OSError: plot(kept)": False,
}


@pytest.mark.parametrize(("text", "after"), AFTER.items())
def test_what_is_asked_for_as_a_whole_after_a_loop_that_ends(text, after):
    assert any(use.after for use in uses_where_it_appends(text)) == after


@pytest.mark.parametrize(("last", "after"), [("plot(kept)", True), ("print(len(kept))", False)])
def test_the_loop_that_calls_a_hook_is_the_one_that_ran(last, after):
    text = f"kept = []\nhook(lambda x: kept.append(x))\nfor x in xs:\n    model(x)\n{last}\n"
    program = program_of(text)
    adds = replace(held(program, "kept"), adds=(("train.py", 2),))
    ran = {("train.py", 2): 24, ("train.py", 3): 24, ("train.py", 4): 24}

    assert any(use.after for use in uses_of(program, adds, ran)) == after
    assert not any(use.after for use in uses_of(program, adds))


def test_a_collection_asks_each_of_its_own_for_what_it_gathered():
    text = (
        "class Metric:\n"
        "    def add(self, x):\n        self.kept.append(x)\n"
        "    def compute(self):\n        return mean(self.kept)\n"
        "metrics = Collection(Metric())\nfor x in xs: metrics.add(x)\n{owner}.compute()\n"
    )
    kept = Held("attribute", "kept", classes=("Metric",), adds=(("train.py", 3),))
    kept = replace(kept, owners=(("metrics", ""),))
    ran = {("train.py", 3): 24, ("train.py", 7): 24}

    def after(owner: str) -> list[int]:
        found = uses_of(program_of(text.format(owner=owner)), kept, ran)
        return [use.line for use in found if use.after]

    assert (after("metrics"), after("Other()")) == ([5], [])


def test_what_a_property_gives_is_asked_for_where_it_is_read():
    program = program_of(
        "class Meter:\n"
        "    def add(self, x):\n        self.kept.append(x)\n"
        "    @property\n    def mean(self):\n        return mean(self.kept)\n"
        "meter = Meter()\nfor x in xs: meter.add(x)\nprint(meter.mean)\n"
    )
    kept = Held("attribute", "kept", classes=("Meter",), adds=(("train.py", 3),))

    assert [use.line for use in uses_of(program, kept) if use.after] == [6]


SURE = {
    "kept.pop()": True,
    "del kept[0]": True,
    "kept.clear()": True,
    "kept = []": True,
    "kept.pop(key, None)": False,
    "kept = prune(kept)": False,
    "if x: kept.pop()": False,
    "y = kept.pop() if x else 0": False,
    "x and kept.pop()": False,
}


@pytest.mark.parametrize(("statement", "sure"), SURE.items())
def test_whether_something_is_gone_whenever_a_line_runs(statement, sure):
    found = uses(program_of(f"for x in xs:\n    kept.append(x)\n    {statement}\n"), "kept")

    assert [use.sure for use in found if use.role in ("take", "replace", "escape")] == [sure]


BY_KEY = {
    "del kept[key]": True,
    "old = kept.pop(key)": True,
    "return kept.pop(key, None)": True,
    "kept.discard(key)": True,
    "kept.pop(0)": False,
    "del kept[0]": False,
    "del kept[:10]": False,
    "kept.clear()": False,
    "kept.popitem()": False,
    "kept = {}": False,
}


@pytest.mark.parametrize(("statement", "by_key"), BY_KEY.items())
def test_what_takes_one_entry_by_its_key_is_told_from_what_empties(statement, by_key):
    found = uses(program_of(f"def act(key):\n    {statement}\n"), "kept")

    assert any(use.by_key for use in found) == by_key


def test_a_use_says_where_it_is_and_how_often_it_ran():
    text = "for x in xs:\n    kept.append(x)\n    if x:\n        kept.pop(\n            0)\n"
    from leakcheck.source.uses import uses_of
    from tests.source.asked import held

    program = program_of(text)
    found = uses_of(program, held(program, "kept"), {("train.py", 4): 7})

    (taken,) = (use for use in found if use.role == "take")
    assert (taken.path, taken.line, taken.code, taken.ran) == ("train.py", 4, "kept.pop(0)", 7)


SET_BACK = {
    "rows = kept[-9:]; kept = rows": ["cut"],
    "rows = kept; rows = rows[-9:]; kept = rows": ["cut"],
    "rows = kept[-9:]; other = rows": [],
    "rows = other[-9:]; kept = rows": ["replace"],
}


@pytest.mark.parametrize(("statement", "roles"), SET_BACK.items())
def test_a_part_may_be_set_back_by_another_name(statement, roles):
    found = uses(program_of(f"for x in xs:\n    kept.append(x)\n    {statement}\n"), "kept")

    assert [use.role for use in found if use.role not in ("read", "add")] == roles


CLOSURES = """
def make_log(out):
    {made} = []
    def log(x):
        kept.append(x)  # adds
    def flush():
        {emptied}.clear()
    return log, flush
"""


@pytest.mark.parametrize(
    ("made", "emptied", "takes"),
    [("kept", "kept", True), ("kept", "out", False), ("kept = other", "other", False)],
)
def test_what_another_function_does_to_a_closure_s_cell_is_done_to_it(made, emptied, takes):
    program = program_of(CLOSURES.format(made=made, emptied=emptied))

    for function in ("log", "make_log"):
        found = uses(program, f"closure: kept in {function}()")
        assert any(use.role == "take" for use in found) == takes


HOOKED = """
def track(model):
    kept = []
    def hook(module, x):
        kept.append(x)  # adds
    model.register_forward_hook(hook)
    class Report:
        def on_evaluate(self):
            kept.clear()
    return Report()
reports = [track(model)]
for epoch in epochs:
    for x in xs:
        model(x)
    for report in reports:
        report.on_evaluate()
"""


def test_the_loop_around_what_was_seen_to_call_a_hook_is_the_one_that_turns():
    program = program_of(HOOKED)
    kept = held(program, "closure: kept in hook()")
    seen = {("train.py", 5): (("train.py", 14, "__call__"),)}

    found = uses_of(program, kept, {("train.py", 5): 9, ("train.py", 14): 9}, seen)

    assert [use.reach for use in found if use.role == "take"] == ["when a loop turns"]


def test_of_many_lists_another_may_be_what_is_taken_from():
    text = "for x in xs:\n    kept[x].append(x)  # adds\n    kept[x].pop(0)\n    kept.popitem()\n"
    found = uses(program_of(text), "kept", inner=True)

    assert [(use.code, use.sure) for use in found if use.role == "take"] == [
        ("kept[x].pop(0)", False),
        ("kept.popitem()", True),
    ]


def test_a_limit_that_no_machine_comes_to_counts_for_inner_lists_too():
    text = "for x in xs:\n    kept[x].append(x)  # adds\n    if len(kept) > {}: kept.clear()\n"
    found = [uses(program_of(text.format(n)), "kept", inner=True) for n in (9, 10**12)]

    limits = [use.guard.n for each in found for use in each if use.role == "take"]
    assert limits == [None, 10**12]


def test_a_comprehension_that_was_seen_to_add_replaces_what_was_at_its_end():
    text = "for x in xs:\n    kept = [make(x) for _ in range(3)]  # adds\n"

    assert reliefs(program_of(text), "kept") == [
        ("replace", "none", "each step", "kept = [make(x) for _ in range(3)]")
    ]
    assert outlook(program_of(text), "kept").kind == "emptied"
    assert outlook(program_of(text.replace("[make", "kept + [make")), "kept").kind == "leak"


NAMES = {
    "rows = kept; rows.clear()": True,
    "rows: list = kept; rows.clear()": True,
    "rows, n = kept, 9; rows.clear()": True,
    "print(rows := kept); rows.clear()": True,
    "for rows in (kept, other): rows.clear()": True,
    "empty(kept)": True,
    "empty(rows=kept)": True,
    "Keeper(kept)": True,
    "empty(other)": False,
    "empty(kept[0])": False,
    "rows = list(kept); rows.clear()": False,
    "rows = kept; rows = []": False,
    "rows = kept[0]; rows.clear()": False,
    "other.kept.clear()": False,
}
HELPERS = """
def empty(rows):
    rows.clear()

class Keeper:
    def __init__(self, rows):
        self.pending = rows
    def turn(self):
        self.pending.clear()

"""


@pytest.mark.parametrize(("statement", "takes"), NAMES.items())
def test_what_is_given_another_name_is_followed(statement, takes):
    text = f"{HELPERS}kept = []\nfor x in xs:\n    kept.append(x)  # adds\n    {statement}\n"
    found = [each for each in reliefs(program_of(text), "kept") if each[0] != "replace"]

    assert bool(found) is takes


OTHERS = {
    "import train\ntrain.kept.clear()": True,
    "from train import kept\nkept.clear()": True,
    "from train import kept as rows\nkept = []\nkept.clear()": False,
    "from elsewhere import kept\nkept.clear()": False,
    "kept = []\nkept.clear()": False,
}


@pytest.mark.parametrize(("other", "takes"), OTHERS.items())
def test_a_global_is_known_in_another_file_by_its_import(other, takes):
    program = program_of("kept = []\nfor x in xs:\n    kept.append(x)  # adds\n", other)

    assert any(use.role == "take" for use in uses(program, "kept")) is takes


METER = """
class Meter:
    def __init__(self):
        self.kept = []
    def add(self, x):
        self.kept.append(x)  # adds

class Sub(Meter):
    pass

class Page:
    pass

meter = Meter()
{statement}
"""
OWNERS = {
    "meter.kept.clear()": True,
    "getattr(meter, 'kept').clear()": True,
    "getattr(meter, name).clear()": True,
    "def turn(m):\n    m.kept.clear()": True,
    "def turn(m: Meter):\n    m.kept.clear()": True,
    "def turn(m: Page):\n    m.kept.clear()": False,
    "def turn(m):\n    m.kept.clear()\nturn(Page())": False,
    "page = Page()\npage.kept.clear()": False,
    "Page().kept.clear()": False,
    "sub = Sub()\nsub.kept.clear()": False,
    "getattr(meter, 'rows').clear()": False,
    "class A:\n    def turn(self):\n        self.kept.clear()": False,
    "class A:\n    kept = []\n    kept.clear()": False,
}


@pytest.mark.parametrize(("statement", "takes"), OWNERS.items())
def test_an_attribute_is_that_of_its_owner_s_class(statement, takes):
    program = program_of(METER.format(statement=statement))

    assert any(use.role == "take" for use in uses(program, "Meter.kept")) is takes


THROUGH = {
    "self.__init__()": True,
    "setattr(self, 'kept', [])": True,
    "vars(self).update(kept=[])": True,
    "for rows in vars(self).values(): rows.clear()": True,
    "setattr(self, 'other', [])": False,
    "vars(self).update(other=[])": False,
    "super().__init__()": False,
}


@pytest.mark.parametrize(("statement", "sets"), THROUGH.items())
def test_an_attribute_may_be_set_through_its_object(statement, sets):
    method = f"\n    def reset(self):\n        {statement}\n"
    program = program_of(METER.replace("\nclass Sub", f"{method}\nclass Sub").format(statement=""))
    found = [use for use in uses(program, "Meter.kept") if use.reach == "elsewhere"]

    assert [use.role for use in found if use.role == "replace"] == ["replace"] * sets


COMPUTED = {
    "setattr(self, name, [])": True,
    "setattr(self, name, self.made[name]())": True,
    "getattr(self, name).clear()": True,
    "setattr(self, name, value)": False,
    "getattr(self, name).sort()": False,
}


@pytest.mark.parametrize("called", ["meter.reset()", "pass"])
@pytest.mark.parametrize(("statement", "empties"), COMPUTED.items())
def test_a_name_that_is_computed_may_be_any_attribute_s_where_the_program_comes_there(
    statement, empties, called
):
    program = program_of(f"""
        class Meter:
            def __init__(self, names):
                self.kept, self.names = [], names
            def add(self, x):
                self.kept.append(x)  # adds
            def reset(self):
                for name in self.names:
                    {statement}
        meter = Meter(["kept"])
        for step in range(90):
            meter.add(step)
            if step % 30 == 0:
                {called}
        """)
    found = {use.role for use in uses(program, "Meter.kept") if use.reach == "each step"}

    assert bool(found & {"replace", "take"}) is (empties and called != "pass")


def test_a_comprehension_may_empty_each_list_of_a_table():
    text = """
        table = {}
        for step in range(90):
            table.setdefault(step % 2, []).append(step)  # adds
            if step % 30 == 0:
                [rows.METHOD() for rows in table.values()]
        """
    roles = [
        {use.role for use in uses(program_of(text.replace("METHOD", method)), "table", inner=True)}
        for method in ("clear", "copy")
    ]

    assert ["take" in each for each in roles] == [True, False]


def test_of_lists_in_a_table_those_that_grow_are_meant():
    text = """
        table = {}
        def note(key, x):
            table.setdefault(key, []).append(x)  # adds
        def trim():
            for rows in table.values():
                if len(rows) > 9:
                    del rows[0]
        """
    program = program_of(text)

    assert ("take", "above", "elsewhere", "del rows[0]") in reliefs(program, "table", inner=True)


OTHER_ENTRIES = {
    'state["window"].pop(0)': False,
    'state["trace"].pop(0)': True,
    "state[name].pop(0)": True,
    'state.get("window").clear()': False,
    'state.get("trace").clear()': True,
    'state["window"] = []': False,
    'state["trace"] = []': True,
    'del state["window"]': False,
    'state.pop("window")': False,
    'state.pop("trace")': True,
    "state.clear()": True,
    'if name == "window": state[name].clear()': False,
    'if name == "window" and full: state[name].clear()': False,
    'if name in ("window", "age"): state[name].clear()': False,
    'if name in ("window", "trace"): state[name].clear()': True,
    'if name != "window": state[name].clear()': True,
    'for name in ("window", "age"): state[name].clear()': False,
    'for name in ("window", "trace"): state[name].clear()': True,
    "for name in state: state[name].clear()": True,
    'if name != "window": return\n    state[name].clear()': False,
    'if name == "window": return\n    state[name].clear()': True,
}


@pytest.mark.parametrize(("line", "relieves"), OTHER_ENTRIES.items())
def test_an_entry_of_another_name_is_not_the_one_that_grows(line, relieves):
    program = program_of(
        f'state = {{"window": [], "trace": []}}\ndef step(x, name):\n    {line}\n'
        f'    state["trace"].append(x)  {ADDS}\nfor x in xs: step(x, key())\n'
    )

    def at_the_line(**known: object) -> bool:
        found = uses(program, "state", inner=True, **known)
        return any("state = {" not in use.code and use.role in RELIEVES for use in found)

    assert at_the_line(names=frozenset({"trace"})) == relieves
    assert at_the_line()
