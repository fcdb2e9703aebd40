"""The condition around a use."""

from __future__ import annotations

import pytest

from leakcheck.source.uses import uses_of, with_numbers
from tests.source.asked import held, program_of, uses

CONDITIONS = {
    "if len(kept) < 300: kept.append(x)": ("below", 300),
    "if 300 > len(kept): kept.append(x)": ("below", 300),
    "if x and len(kept) < 300: kept.append(x)": ("below", 300),
    "if not len(kept) >= 300: kept.append(x)": ("below", 300),
    "if len(kept) >= 300: pass\n    else: kept.append(x)": ("below", 300),
    "if kept.full(): pass\n    else: kept.append(x)": ("below", None),
    "while len(kept) < 300: kept.append(x)": ("below", 300),
    "if len(kept) != 300: kept.append(x)": ("below", 300),
    "if len(kept) >= 300: continue\n    kept.append(x)": ("below", 300),
    "kept.append(x)\n    if len(kept) > 300: break": ("below", 300),
    "assert len(kept) < 300\n    kept.append(x)": ("below", 300),
    "kept.extend(rows[: 300 - len(kept)])": ("below", 300),
    "for _ in range(300 - len(kept)): kept.append(x)": ("below", 300),
    "kept.append(x) if len(kept) < 300 else None": ("below", 300),
    "len(kept) < 300 and kept.append(x)": ("below", 300),
    "if len(others) < 300:\n        others.append(x); kept.append(x)": ("below", 300),
    "if len(kept) < most: kept.append(x)": ("below", None),
    "if len(kept) < MOST: kept.append(x)": ("below", 700),
    "if len(kept) < 2 * MOST - 7: kept.append(x)": ("below", 1393),
    "if x or len(kept) < 300: kept.append(x)": ("other", None),
    "if len(others) < 300: kept.append(x)": ("other", None),
    "if len(kept) > 300: kept.append(x)": ("above", 300),
    "if step % 90 == 0: kept.append(x)": ("every", 90),
    "if (step + 1) % 90: kept.append(x)": ("other", None),
    "if key not in kept: kept[key] = x": ("new", None),
    "if key in kept: continue\n    kept[key] = x": ("new", None),
    "if kept.get(key) is None: kept[key] = x": ("new", None),
    "try: kept[key]\n    except KeyError: kept[key] = x": ("new", None),
    "kept.setdefault(key, x)": ("new", None),
    "if not kept: kept.append(x)": ("missing", None),
    "if len(kept) == 0: kept.append(x)": ("missing", None),
    "if kept is None: kept.append(x)": ("missing", None),
    "if step < 500: kept.append(x)": ("first", 500),
    "if epoch == 0: kept.append(x)": ("first", 0),
    "if collecting: kept.append(x)": ("flag", None),
    "if not self.done: kept.append(x)": ("flag", None),
    "if isinstance(x, int): kept.append(x)": ("other", None),
    "if kept: kept.append(x)": ("none", None),
    "if len(kept) > 0: kept.append(x)": ("none", None),
    "kept.append(x)": ("none", None),
}


@pytest.mark.parametrize(("statement", "guard"), CONDITIONS.items())
def test_the_condition_around_what_adds(statement, guard):
    found = uses(program_of(f"MOST = 700\nfor x in xs:\n    {statement}\n"), "kept")

    assert [(u.guard.kind, u.guard.n) for u in found if u.role == "add"] == [guard]


def test_a_condition_around_the_loop_ends_nothing_in_it():
    text = "if epoch == 0:\n    for x in xs:\n        kept.append(x)\n"

    assert [use.guard.kind for use in uses(program_of(text), "kept")] == ["other"]


HEAP = """
class Heap:
    capacity = 40

    def __init__(self, most=90):
        self.kept, self.most, self.size, self.at = [], most, 0, 0

    def full(self):
        return len(self.kept) >= self.most

    @property
    def has_room(self):
        return len(self.kept) < self.capacity

    def add(self, x):
        {statement}
"""
ASKED = {
    "if not self.full(): self.kept.append(x)": ("below", 90),
    "if self.has_room: self.kept.append(x)": ("below", 40),
    "ok = self.has_room\n        if ok: self.kept.append(x)": ("below", 40),
    "if self.size < self.most:\n            self.kept.append(x); self.size += 1": ("below", 90),
    "if self.at >= len(self.kept): self.kept.append(x)\n"
    "        self.at = (self.at + 1) % self.most": ("below", 90),
    "if self.at >= len(self.kept): self.kept.append(x)\n        self.at += 1": ("none", None),
    "if self.size < self.most: self.kept.append(x)": ("same", None),
    "if self.size < self.most: self.kept.append(x)\n        self.size = x": ("first", None),
    "self.size -= len(x)\n        if self.size < 0: raise BufferError\n"
    "        self.kept.append(x)": ("first", 0),
    "self.size += len(x)\n        if self.size < 0: raise BufferError\n"
    "        self.kept.append(x)": ("none", None),
    "if (x > 0.5).any(): self.kept.append(x)": ("first", 1),
    "hard = x > 0.5\n        if hard.any(): self.kept.append(x)": ("first", 1),
    "if x.any(): self.kept.append(x)": ("other", None),
    "if not x.isnan().any(): self.kept.append(x)": ("other", None),
    "if not self.other(): self.kept.append(x)": ("flag", None),
    "if not other(x): self.kept.append(x)": ("other", None),
}


@pytest.mark.parametrize(("statement", "guard"), ASKED.items())
def test_a_condition_may_be_asked_of_the_object(statement, guard):
    found = uses(program_of(HEAP.format(statement=statement)), "Heap.kept")

    assert [(u.guard.kind, u.guard.n) for u in found if u.role == "add"] == [guard]


@pytest.mark.parametrize(("made", "most"), [("Heap()", 90), ("Heap(7)", 7), ("Heap(most=8)", 8)])
def test_the_number_is_what_the_object_is_made_with(made, most):
    statement = "if not self.full(): self.kept.append(x)"
    text = HEAP.format(statement=statement) + f"\nheap = {made}\n"

    assert [u.guard.n for u in uses(program_of(text), "Heap.kept") if u.role == "add"] == [most]


def test_of_two_numbers_none_is_known_but_how_it_is_spelt():
    statement = "if not self.full(): self.kept.append(x)"
    text = HEAP.format(statement=statement) + "\none, other = Heap(7), Heap(8)\n"
    (guard,) = (u.guard for u in uses(program_of(text), "Heap.kept") if u.role == "add")

    assert (guard.n, guard.limit, guard.test) == (None, "self.most", "not self.full()")


CALLS = {
    "if len(kept) < 300: add(x)": "below",
    "if step < 500: add(x)": "first",
    "def note(x): add(x)\nif step < 500: note(x)": "first",
    "if step < 500: add(x)\nadd(x)": "none",
    "callbacks.append(add)\nif step == 400: callbacks.remove(add)": "first",
    "h = m.register_forward_hook(add)\nif step == 400: h.remove()": "first",
    "h = m.register_forward_hook(add)\nh.remove()": "none",
}


@pytest.mark.parametrize(("calls", "kind"), CALLS.items())
def test_a_condition_may_be_around_each_call_of_what_adds(calls, kind):
    found = uses(program_of(f"def add(x):\n    kept.append(x)  # adds\n{calls}\n"), "kept")

    assert [use.guard.kind for use in found if use.role == "add"] == [kind]


# what is set before the loop, the condition in it, and whether that may cease to hold
STAYS = {
    "rank = int(os.environ['RANK'])\n---\nif rank == 0: kept.append(x)": "same",
    "rank = 0\n---\nif rank == 0: kept.append(x)\n    rank = x": "first",
    "mode = 'train'\n---\nif mode == 'eval': continue\n    kept.append(x)": "same",
    "mode = 'train'\n---\nif mode == 'train': kept.append(x)": "same",
    "args = parser.parse_args()\n---\nif args.keep: kept.append(x)": "same",
    "args = parser.parse_args()\n---\nif args.keep: kept.append(x)\n    args.keep = x": "flag",
    "KEEP = True\nthis.KEEP = x\n---\nif KEEP: kept.append(x)": "flag",
    "KEEP = True\nsetattr(this, 'KEEP', x)\n---\nif KEEP: kept.append(x)": "flag",
    "KEEP = True\nsetattr(this, 'OTHER', x)\n---\nif KEEP: kept.append(x)": "same",
    "KEEP = 1\ndef stop():\n    global KEEP\n    KEEP = 0\n---\nif KEEP: kept.append(x)": "flag",
    "args = parser.parse_args()\nsetattr(args, name, x)\n---\nif args.keep: kept.append(x)": "flag",
    "waiting = []\n---\nif waiting: kept.append(x)": "flag",
    "skip = {3, 7}\n---\nif x in skip: continue\n    kept.append(x)": "other",
    "skip = {3, 7}\n---\nif x in skip: continue\n    kept.append(x); skip.add(x)": "new",
    "skip = {3, 7}\n---\nif x in skip: continue\n    kept.append(x); note(skip)": "new",
    "step, keep = 0, load()\n---\nstep += 1\n    if step in keep: kept.append(x)": "first",
    "step, skip = 0, load()\n---\nstep += 1\n    if step not in skip: kept.append(x)": "other",
    "\n---\nif x not in ('a', 'b'): continue\n    kept.append(x)": "other",
    "step = 0\n---\nstep += 1\n    if step > 100: kept.append(x)": "other",
    "step = 0\n---\nstep += 1\n    if step < 100: kept.append(x)": "first",
    "\n---\nif loss > 100: kept.append(x)": "first",
}


@pytest.mark.parametrize(("text", "kind"), STAYS.items())
def test_a_condition_that_is_the_same_at_each_step_does_not_cease_to_hold(text, kind):
    before, _, statement = text.partition("\n---\n")
    found = uses(program_of(f"{before}\nfor x in xs:\n    {statement}\n"), "kept")

    assert [use.guard.kind for use in found if use.role == "add"] == [kind]


# what is set before the loop, the condition in it, its kind, and whether it may cease to hold
ASKS = {
    "logger = get()\n---\nif logger.isEnabledFor(10): kept.append(x)": ("flag", True),
    "CFG = load()\n---\nif CFG['debug']['collect']: kept.append(x)": ("flag", True),
    "CFG = load()\n---\nif CFG['on'] and x % 2 == 0: kept.append(x)": ("every", True),
    "CFG = load()\n---\nif CFG['on'] or x % 2 == 0: kept.append(x)": ("other", False),
    "step, cfg = 0, load()\n---\nstep += 1\n    if step >= cfg.warmup: kept.append(x)": (
        "other",
        False,
    ),
    "n, cfg = 0, load()\n---\nn += 1\n    if n < cfg.warmup: continue\n    kept.append(x)": (
        "other",
        False,
    ),
    "bank = Bank()\n---\nif bank.wants(int(x)): kept.append(x)": ("flag", True),
    "m = Machine()\n---\nmatch m.phase:\n        case 'probe': kept.append(x)": ("first", True),
    "import config\nconfig.keep = 3\n---\nif config.keep(x): kept.append(x)": ("flag", True),
    "import torch\n---\nif torch.is_tensor(x): kept.append(x)": ("other", False),
    "budget = Budget()\n---\ntry: budget.take()\n    except Spent: pass\n"
    "    else: kept.append(x)": ("flag", True),
    "---\nloss = model(x)\n    try: loss.backward()\n    except RuntimeError: pass\n"
    "    else: kept.append(x)": ("other", False),
    "---\nif isinstance(x, int): kept.append(x)": ("other", False),
    "---\nif wanted(x): kept.append(x)": ("other", False),
    "seen = load()\n---\nif x in seen: kept.append(x)": ("other", False),
    "---\nloss = model(x)\n    if loss.isfinite(): kept.append(x)": ("other", False),
}


@pytest.mark.parametrize(("text", "told"), ASKS.items())
def test_what_an_object_that_lasts_answers_may_cease_to_hold_and_the_data_of_a_step_not(text, told):
    before, _, statement = text.partition("---\n")
    found = uses(program_of(f"{before}\nfor x in xs:\n    {statement}\n"), "kept")

    guards = [use.guard for use in found if use.role == "add"]
    assert [(each.kind, each.ceases) for each in guards] == [told]


CUTS = """
class Bank:
    def __init__(self, frozen=False):
        self.kept, self.frozen = [], frozen

    def note(self, x):
        self.kept.append(x)  # adds
        if {condition}:
            self.kept = self.kept[-512:]
"""


@pytest.mark.parametrize(
    ("condition", "seen", "barred"),
    [
        ("self.frozen", [7, 8], True),
        ("not self.frozen and len(self.kept) > 512", [7, 8], False),
        ("self.frozen", [7, 8, 9], False),
        ("self.frozen", [7], False),
        ("self.thawed", [7, 8], False),
    ],
)
def test_what_did_not_run_where_a_condition_never_changes_is_barred(condition, seen, barred):
    program = program_of(CUTS.format(condition=condition))
    visits = {("train.py", line): 40 for line in seen}

    found = uses_of(program, held(program, "Bank.kept"), visits)

    assert [use.barred for use in found if use.role == "cut"] == [barred]


@pytest.mark.parametrize(
    "given",
    [
        "keeps = keeps and len(kept) < 300",
        "keeps = other and x; other = keeps and x",
        "keeps = not keeps",
    ],
)
def test_a_condition_that_asks_for_itself_is_followed_to_an_end(given):
    found = uses(program_of(f"for x in xs:\n    if keeps: kept.append(x)\n    {given}\n"), "kept")

    assert {use.guard.kind for use in found if use.role == "add"} <= {"below", "flag", "other"}


ENDS = """
def train(quiet=False):
    limit = 900
    for step, x in enumerate(xs):
        {condition}
        kept.append(x)  # adds

{call}
"""


@pytest.mark.parametrize(
    ("condition", "call", "seen", "kind"),
    [
        ("if step >= limit: break", "train()", [4, 5, 6], "none"),
        ("if step >= limit: return", "train()", [4, 5, 6], "none"),
        ("if step >= limit: continue", "train()", [4, 5, 6], "first"),
        ("if step >= limit: break", "train()", [3, 4, 5, 6], "first"),
        ("if step >= limit: break", "for _ in ys: train()", [3, 4, 5, 6, 8], "first"),
        ("if quiet: continue", "train()", [4, 5, 6], "same"),
        ("if quiet: continue", "for _ in ys: train()", [4, 5, 6], "flag"),
        ("if quiet: continue", "run(train)", [4, 5, 6], "flag"),
        ("if quiet: continue", "train(True); train()", [4, 5, 6], "flag"),
    ],
)
def test_what_a_loop_that_goes_on_does_not_set_stays_and_to_leave_it_ends_the_steps(
    condition, call, seen, kind
):
    program = program_of(ENDS.format(condition=condition, call=call))
    visits = {("train.py", line): 40 for line in seen}

    (use,) = uses_of(program, held(program, "kept"), visits)

    assert use.guard.kind == kind


@pytest.mark.parametrize(
    ("loop", "seen", "kind"),
    [
        ("while step < most:", [3, 4], "none"),
        ("while step < most:", [2, 3, 4], "first"),
        ("while not done:", [3, 4], "none"),
        ("while len(kept) < 900:", [3, 4], "below"),
    ],
)
def test_the_condition_of_a_loop_that_goes_on_ends_the_steps(loop, seen, kind):
    program = program_of(
        f"def train():\n    step = 0\n    {loop}\n        kept.append(x)  # adds\ntrain()\n"
    )
    visits = {("train.py", line): 40 for line in seen}

    found = uses_of(program, held(program, "kept"), visits)

    assert [use.guard.kind for use in found if use.role == "add"] == [kind]


def test_functions_above_a_loop_of_the_module_are_not_what_runs_before_it():
    program = program_of(
        """\
        def loss_of(x):
            return x

        for step, x in enumerate(xs):
            if step >= most: break
            kept.append(loss_of(x))  # adds
        """
    )
    visits = {("train.py", line): 40 for line in (2, 4, 5, 6)}

    (use,) = uses_of(program, held(program, "kept"), visits)

    assert use.guard.kind == "none"


RUNS_ON = """
def add(x):
    kept.append(x)  # adds

def train():
    for x in xs:
        add(x)

if key not in done: {call}
"""


@pytest.mark.parametrize(
    ("call", "seen", "kind"),
    [
        ("train()", [3, 7], "other"),
        ("train(lambda: x)", [3, 7, 9], "other"),
        ("train()", [3, 7, 9], "new"),
    ],
    ids=["still running", "though a lambda on its line was called", "made again and again"],
)
def test_a_condition_before_a_call_that_still_runs_ends_nothing_in_it(call, seen, kind):
    program = program_of(RUNS_ON.format(call=call))
    visits = {("train.py", line): 40 for line in seen}

    (use,) = uses_of(program, held(program, "kept"), visits)

    assert use.guard.kind == kind


ONLY = {
    "if len(kept) > 300: kept.pop(0)": True,
    "while len(kept) > 300: kept.pop(0)": True,
    "if x % 9 == 0 and len(kept) > 300: kept.pop(0)": False,
    "if x % 9 == 0:\n        if len(kept) > 300: kept.pop(0)": False,
    "if x is None: continue\n    if len(kept) > 300: kept.pop(0)": False,
}


@pytest.mark.parametrize(("statement", "only"), ONLY.items())
def test_a_guard_says_whether_nothing_else_is_asked(statement, only):
    found = uses(program_of(f"for x in xs:\n    kept.append(x)\n    {statement}\n"), "kept")

    assert [(u.guard.n, u.guard.only) for u in found if u.role == "take"] == [(300, only)]


MEASURED = {
    "if len(meter.kept) > 300: meter.kept.pop(0)": "above",
    "if len(page.kept) > 300: meter.kept.pop(0)": "flag",
    "if len(kept) > 300: meter.kept.pop(0)": "other",
    "rows = meter.kept\nif len(rows) > 300: meter.kept.pop(0)": "above",
}


@pytest.mark.parametrize(("statement", "kind"), MEASURED.items())
def test_the_length_of_another_of_that_name_is_another(statement, kind):
    text = f"""
class Meter:
    def add(self, x):
        self.kept.append(x)  # adds
class Page: pass
meter, page = Meter(), Page()
{statement}
"""
    found = uses(program_of(text), "Meter.kept")

    assert [use.guard.kind for use in found if use.role == "take"] == [kind]


def test_live_objects_may_know_the_numbers():
    def live(path: str, limit: str) -> int | None:
        return {("train.py", "self.most"): 70}.get((path, limit))

    text = "for x in xs:\n    kept.append(x)\n    if len(kept) > self.most: kept.pop(0)\n"
    found = with_numbers(uses(program_of(text), "kept"), live)

    assert [use.guard.n for use in found if use.role == "take"] == [70]


MOVES = """
class Bank:
    def __init__(self):
        self.kept, self.size, self.seen, self.limit = [], 0, 0, 128

    def note(self, x):
        self.kept.append(x)  # adds
        self.seen += 1
        if {condition}:
            self.kept.pop(0)
            self.size -= 1
"""


@pytest.mark.parametrize(
    ("condition", "beside", "barred"),
    [
        ("self.size > self.limit", "", True),
        ("128 < self.size and x", "", True),
        ("self.seen < self.limit", "", True),
        ("not self.seen >= self.limit", "", True),
        ("self.size < self.limit", "", False),
        ("self.seen > self.limit", "", False),
        ("self.size > self.limit or x", "", False),
        ("self.size > self.limit", "def refill(bank):\n    bank.size = 900", False),
        ("self.size > self.limit", "def refill(bank):\n    bank.size += 900", False),
        ("self.size > self.limit", "def refill(bank):\n    bank.limit = -1", False),
    ],
)
def test_what_a_counter_moves_away_from_is_barred(condition, beside, barred):
    program = program_of(f"{MOVES.format(condition=condition)}\n{beside}")
    visits = {("train.py", line): 40 for line in (7, 8, 9)}

    found = uses_of(program, held(program, "Bank.kept"), visits)

    assert [use.barred for use in found if use.role == "take"] == [barred]
