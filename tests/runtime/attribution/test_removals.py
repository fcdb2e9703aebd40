"""Statements that may take something away, in ways that no list of limits has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leakcheck.model import LeakTrace, Link
from leakcheck.runtime.attribution.removals import removed_at
from tests.holders import held_by

TAKING = """
kept = prune(kept)
kept = self.prune(kept, step)
kept = trim(kept, n=n)
kept[:] = prune(kept)
kept = [r for r in kept if alive(r)]
kept = [r for r in kept if not r.done()]
kept = list(filter(alive, kept))
kept = sorted(set(kept + [x]))
kept = list(dict.fromkeys(kept + [x]))
kept = merge(kept, x)
kept = kept + [x] if more else []
kept = kept.difference(done)
kept = kept.index_select(0, index)
kept = kept[kept.age < n]
kept = torch.topk(kept, n).values
kept = torch.unique(torch.cat([kept, x]))
kept = {k: v for k, v in {**kept, k: x}.items() if v.t > t}
kept -= done
kept ^= done
done, kept = wait(kept)
kept, old = split(kept, n)
old, kept = kept[:1], kept[1:]
head, *kept = kept
prune(kept)
lib.prune(kept)
drop(kept, k - n)
gc_cache(kept)
kept.prune()
kept.pop(oldest, None)
old = kept.pop(ring[i % n], None)
kept.discard(victim)
del kept[victim]
y = kept.get()
[kept.pop(o) for o in stale(kept)]
any(kept.pop(o, None) for o in old)
for o in stale(kept): kept.pop(o)
for r in done: kept.remove(r)
future.add_done_callback(kept.discard)
delattr(kept, "x9")
weakref.finalize(x, kept.pop, k)
assert len(kept) < 9999
if len(kept) > n: break
if len(kept) > n: raise StopIteration
while len(kept) < n: pass
"""
READING = """
print(len(kept), sum(kept) / len(kept))
last = kept[-1]
rows = kept[-9:]
mean = torch.stack(kept).mean()
for x in kept: use(x)
best = max(kept, key=score)
other = [r for r in kept if r.alive]
kept = kept + [x]
kept += [x]
kept = kept | {x}
kept = torch.cat([kept, x])
kept = torch.cat([kept, x.detach()], dim=0)
kept = np.append(kept, x)
kept = [*kept, x]
kept = (*kept, x)
kept = {**kept, k: x}
kept = [r.detach() for r in kept]
kept = kept.copy()
kept = list(kept)
kept, other = kept + [x], 0
kept = Entry(x, kept)
kept = functools.partial(work, kept)
kept = lambda: x + kept()
kept = kept + [x] if more else kept
kept[k] = x
kept.append(x)
kept.setdefault(k, []).append(x)
value = kept.get(k)
value = kept.get(k, None)
writer.log(kept)
kept = args.kept
if not kept: raise ValueError
if len(kept) > 0: break
if len(kept) % 100 == 0: print(len(kept))
x = other.kept.pop()
"""


def statements(block: str) -> list[str]:
    return block.strip().splitlines()


@pytest.mark.parametrize("statement", statements(TAKING))
def test_what_is_not_known_to_read_or_add_may_take_away(named, statement):
    suspect = named(f"kept.append(x)\nwhile True:\n    {statement}\n")

    assert removed_at([suspect], {}) is not None


@pytest.mark.parametrize("statement", statements(READING))
def test_what_reads_or_adds_takes_nothing_away(named, statement):
    suspect = named(f"kept.append(x)\nwhile True:\n    {statement}\n")

    assert removed_at([suspect], {}) is None


def test_the_statement_is_told_with_its_line(named):
    suspect = named("kept.append(x)\nkept = prune(\n    kept)\n")
    found = removed_at([suspect], {})

    assert (found.line, found.code) == (2, "kept = prune(kept)")


def test_each_of_several_suspects_needs_one_and_a_graph_has_none(named):
    suspect = named("kept.append(x)\nother.append(x)\nprune(kept)\n")
    beside = (replace(suspect.locations[0], line=2),)
    other = replace(suspect, holder=held_by("global `other`"), locations=beside)

    assert removed_at([suspect, suspect], {}) is not None
    assert removed_at([suspect, other], {}) is None
    assert removed_at([replace(suspect, kind="graph")], {}) is None
    assert removed_at([], {}) is None


@pytest.mark.parametrize("taken", ["kept.pop()", "x = kept.popleft()", "del kept[0]", "kept.get()"])
def test_what_took_one_each_time_while_it_grew_has_not_kept_up(named, taken):
    suspect = named(f"for x in xs:\n    kept.append(x)\n    {taken}\n", line=2)
    path = suspect.locations[0].path

    assert removed_at([suspect], {(path, 3): 24}) is None
    assert removed_at([suspect], {}) is not None


@pytest.mark.parametrize(
    "taken", ["kept.pop(k, None)", "if old(): kept.pop()", "kept.pop() if old() else 0"]
)
def test_a_line_that_ran_may_yet_have_taken_nothing(named, taken):
    suspect = named(f"for x in xs:\n    kept.append(x)\n    {taken}\n", line=2)
    path = suspect.locations[0].path

    assert removed_at([suspect], {(path, 3): 24}) is not None


def test_what_is_replaced_where_else_it_is_added_to_may_be_full(named):
    swap = "if room(kept):\n    {}\nelse:\n    {}\n"
    beside = named(swap.format("kept.append(x)", "kept[oldest()] = x"), line=2)
    assert removed_at([beside], {}) is not None

    below = named(swap.format("heapq.heapreplace(kept, x)", "heapq.heappush(kept, x)"), line=4)
    assert removed_at([below], {}) is not None

    both = named(swap.format("kept.append(x)\n    kept[0] = y", "pass"), line=2)
    assert removed_at([both], {}) is None


HANDED = """
def keep(rows):
    rows.append(1)
    {statement}

kept = []
while True:
    kept.append(x)
    keep(kept)
"""


def test_a_function_of_the_file_is_looked_into(named):
    taking = named(HANDED.format(statement="rows.remove(1)"), line=8)
    assert removed_at([taking], {}) is not None

    pruning_by_name_alone = HANDED.replace("keep(", "prune(").format(statement="pass")
    assert removed_at([named(pruning_by_name_alone, line=8)], {}) is None


@pytest.mark.parametrize(
    ("body", "all_of_it"),
    [
        ("return rows + [1]", True),
        ("rows.append(1); return rows", True),
        ("return lambda: rows()", True),
        ("return rows[1:] + [1]", False),
        ("rows.pop(); return rows", False),
        ("return rows if rows else None", False),
        ("print(rows)", False),
    ],
)
def test_what_a_function_of_the_file_hands_back_may_be_all_of_it(named, body, all_of_it):
    suspect = named(f"def more(rows):\n    {body}\nwhile True:\n    kept = more(kept)\n", line=4)

    assert (removed_at([suspect], {}) is None) is all_of_it


METER = """
class Meter:
    def __init__(self):
        self.kept = []

    def update(self, x):
        self.kept.append(x)

    def turn(self, kept):
        {statement}
"""


def test_what_comes_once_after_the_loop_takes_nothing_away_in_it(named):
    loop = "for x in xs:\n    kept.append(x)\n"

    assert removed_at([named(f"{loop}kept = prune(kept)\n", line=2)], {}) is None
    assert removed_at([named(f"{loop}    kept = prune(kept)\n", line=2)], {}) is not None
    function = "def fit():\n    for x in xs:\n        kept.append(x)\n    kept.pop()\n"
    assert removed_at([named(function, line=3)], {}) is None
    other = f"{function}\ndef end():\n    kept.pop()\n"
    assert removed_at([named(other, line=3)], {}) is not None
    each_step = "def add(x):\n    kept.append(x)\n    prune(kept)\n"
    assert removed_at([named(each_step, line=2)], {}) is not None


def test_another_object_may_take_the_place_of_the_one_that_holds_it(named):
    holder = "attribute `Meter.kept`, from global `meter`"
    links = (Link(".kept", "list", suspect=True),)

    def found(statement: str):
        source = f"for x in xs:\n    meter.kept.append(x)\n    {statement}\n"
        suspect = replace(named(source, holder, line=2), trace=LeakTrace("global `meter`", links))
        return removed_at([suspect], {})

    assert found("meter = meter.write(x)").code == "meter = meter.write(x)"
    assert found("meter = meter.to(x)") is None
    assert found("other = meter.write(x)") is None


TABLE = """
class Table(dict):
    def observe(self, k, x):
        self[k] = x
        {statement}

kept = Table()
for k, x in xs:
    kept.observe(k, x)
"""


@pytest.mark.parametrize(
    ("statement", "takes"),
    [("self.shrink()", True), ("del self[k - 9]", True), ("len(self)", False)],
)
def test_a_container_of_its_own_kind_may_take_away_itself(named, statement, takes):
    suspect = named(TABLE.format(statement=statement), line=4)

    assert (removed_at([suspect], {}) is not None) is takes


def test_an_attribute_is_no_variable_of_the_same_name(named):
    holder = "attribute `Meter.kept`, from global `meter`"

    def found(statement: str):
        source = METER.format(statement=statement)
        return removed_at([named(source, holder, ".kept", line=7)], {})

    assert found("self.kept = prune(self.kept)") is not None
    assert found("done, self.kept = wait(self.kept)") is not None
    assert found("kept = prune(kept)") is None
    assert found("other = prune(other.rows)") is None


def test_a_local_is_that_of_its_own_function(named):
    source = """
def train():
    kept = []
    while True:
        kept.append(x)

def evaluate(kept):
    kept = prune(kept)
"""
    assert removed_at([named(source, "local `kept` in train()", line=5)], {}) is None
    assert removed_at([named(source, "local `kept` in evaluate()", line=5)], {}) is not None


@pytest.mark.parametrize(
    ("statement", "takes"),
    [
        ("stack.close()", True),
        ("with stack: pass", False),
        ("stack.push(x)", False),
        ("other.close()", False),
    ],
)
def test_an_object_of_a_library_may_be_told_to_let_go(named, statement, takes):
    holder = "attribute `ExitStack._exit_callbacks`, from global `stack`"
    source = f"stack.callback(f)\n{statement}\n"
    suspect = named(source, holder, "._exit_callbacks")
    links = (Link("._exit_callbacks", "deque", suspect=True),)
    suspect = replace(suspect, trace=LeakTrace("global `stack`", links))

    assert (removed_at([suspect], {}) is not None) is takes


@pytest.mark.parametrize(
    ("text", "takes"),
    [
        ("delete from rows where id < ?", True),
        ("DROP TABLE rows", True),
        ("select * from rows", False),
    ],
)
def test_rows_of_a_data_base_may_be_deleted(named, text, takes):
    insert = 'db.execute("insert into rows values (?)", x)'
    suspect = named(f"{insert}\ndb.execute({text!r}, n)\n", "")
    suspect = replace(suspect, locations=(replace(suspect.locations[0], code=insert),))

    assert (removed_at([suspect], {}) is not None) is takes


LINKED = """
class Chain:
    def push(self, x):
        self.tail.next = Node(x)
        self.tail = self.tail.next
        if self.length > self.longest:
            {statement}
"""


def test_the_head_of_a_linked_list_may_move_on(named):
    holder = "attribute `Node.value`, from global `chain`"
    edges = (".head", ".next", ".value")

    def found(statement: str):
        source = LINKED.format(statement=statement).replace("self.tail.next\n", "node\n")
        return removed_at([named(source, holder, *edges, line=4)], {})

    assert found("self.head = self.head.next").code == "self.head = self.head.next"
    assert found("self.length -= 1") is None
