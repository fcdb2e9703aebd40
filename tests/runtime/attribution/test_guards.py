from __future__ import annotations

import linecache
from dataclasses import replace

import pytest

from leakcheck.model import Place, Suspect
from leakcheck.runtime.attribution.assignments import tree_of
from leakcheck.runtime.attribution.conditions import may_end
from leakcheck.runtime.attribution.guards import limited_by_program
from tests.holders import held_by


@pytest.mark.parametrize(
    ("source", "limit"),
    [
        ("if len(kept) < 300: kept.append(x)\n", "program.py:1 (len(kept) < 300)"),
        ("kept.append(x)\nif len(kept) > n: kept.pop(0)\n", "program.py:2 (len(kept) > n)"),
        (
            "kept.append(x)\nwhile len(kept) >= n:\n    del kept[0]\n",
            "program.py:2 (len(kept) >= n)",
        ),
        ("kept.append(x)\nif n < len(kept): kept = kept[-n:]\n", "program.py:2 (n < len(kept))"),
        (
            "if len(kept) < 9: heapq.heappush(kept, x)\nelse: heapq.heapreplace(kept, x)\n",
            "program.py:1 (len(kept) < 9)",
        ),
    ],
)
def test_a_length_that_is_compared_and_acted_on_is_a_limit(said, source, limit):
    assert said(source) == f"global `kept` grows, limited at {limit}"


@pytest.mark.parametrize(
    "source",
    [
        "kept.append(x)\n",
        "kept.append(x)\nif len(kept) > 0: kept.pop()\n",  # no limit but emptiness
        "kept.append(x)\nif len(kept) < 32: train()\n",  # enough to begin with
        "kept.append(x)\nif len(kept) % 10 == 0: print(kept[-1])\n",
        "kept.append(x)\nif len(other) > 9: other.pop()\n",
        "kept.append(x)\nif x in kept: kept.remove(x)\n",  # who unsubscribes
        "kept.append(x)\nif len(kept) > 9: kept.pop(\n",  # no Python
    ],
)
def test_other_questions_about_the_length_are_not(said, source):
    assert said(source) == ""


ADD = "def add(x): kept.append(x)\n"


@pytest.mark.parametrize(
    ("source", "limited"),
    [
        (f"{ADD}if len(kept) < 300: add(x)\n", True),
        (f"{ADD}if len(kept) >= n: pass\nelse: add(x)\n", True),
        (f"{ADD}if x and n > len(kept): add(x)\n", True),
        (f"{ADD}if not full(): add(x)\ndef full(): return len(kept) >= n\n", True),
        (f"{ADD}if x or len(kept) < n: add(x)\n", False),
        (f"{ADD}add(x)\nif len(kept) > n: trim()\ndef trim(): kept.pop(0)\n", True),
        (f"{ADD}while len(kept) < 300: add(x)\nfor x in rows: add(x)\n", False),  # to begin with
        (f"{ADD}if len(kept) > 300: add(x)\n", False),
        (f"{ADD}add(x)\nif len(kept) > 32: learn()\ndef learn(): print(kept)\n", False),
    ],
)
def test_what_a_branch_calls_may_keep_to_a_length(said, source, limited):
    assert bool(said(source)) == limited


@pytest.mark.parametrize(
    "cut",
    [
        "if step % 90 == 89: kept = []",
        "if (step + 1) % n == 0: kept.clear()",
        "if done: kept, other = [], 0",
        "if step % 90 == 0:\n    print(kept)\n    kept = deque(maxlen=9)",
        "if now - since > 60: kept = []",
        "if step % 90 == 0:\n    while kept: write(kept.pop())",
        "if step % 90 == 0: flush()\ndef flush():\n    write(kept)\n    kept.clear()",
        "if step % 90 == 0: flush()\ndef flush():\n    global kept\n    kept = []",
    ],
)
def test_what_is_emptied_again_and_again_has_a_limit(said, cut):
    assert said(f"kept.append(x)\n{cut}\n") != ""


@pytest.mark.parametrize(
    "other",
    [
        "if kept is None: kept = []",  # made once
        "if not ready: kept = []",
        "if step % 90 == 0: print(kept)",
        "if step % 90 == 0: other = []",
        "if step % 90 == 0: kept[0] = []",
        "if step % 90 == 0: kept = [first]",
        "if step % 90 == 0: look()\ndef look():\n    kept = []",  # a list of its own
        "if step % 90 == 0: look([])\ndef look(kept):\n    kept.clear()",
        "def flush():\n    kept.clear()",  # called by nobody
    ],
)
def test_what_is_made_once_or_not_emptied_has_none(said, other):
    assert said(f"kept.append(x)\n{other}\n") == ""


def test_a_table_whose_places_come_again_has_a_limit(said):
    told = "global `kept` grows, limited at program.py:1 (kept[step % 300] = x)"
    assert said("kept[step % 300] = x\n") == told
    assert said("kept[step // 300] = x\n") == ""


def test_what_is_handed_to_a_function_that_cuts_it_has_a_limit(said):
    helper = "def trim(rows, most):\n    if len(rows) > most: del rows[:-most]\n"

    told = "global `kept` grows, limited at program.py:2 (trim(kept, 200))"
    assert said(f"kept.append(x)\ntrim(kept, 200)\n{helper}") == told
    assert said(f"kept.append(x)\ntrim(other, 200)\n{helper}") == ""
    assert said(f"kept.append(x)\ntrim(kept[0], 200)\n{helper}") == ""


def test_a_list_that_is_cut_in_place_has_a_limit(said):
    told = "global `kept` grows, limited at program.py:2 (kept[:] = kept[-200:])"
    assert said("kept.append(x)\nkept[:] = kept[-200:]\n") == told


def test_attributes_emptied_by_a_method_that_is_called_again_and_again_have_a_limit(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "class Stats:\n"
        "    def add(self, row):\n"
        "        for name in self.names: getattr(self, name).append(row)\n"
        "    def end(self):\n"
        "        for name in self.names: getattr(self, name).clear()\n"
        "if step % 150 == 149: stats.end()\n"
    )
    place = Place(str(path), 3, "")

    told = limited_by_program(
        (Suspect("tensor", "", holder=held_by("attribute `Stats.a`"), locations=(place,)),)
    )

    assert told == f"attribute `Stats.a` grows, limited at {path}:6 (step % 150 == 149)"


def test_a_list_that_another_object_is_handed_and_empties_has_a_limit(tmp_path):
    path = tmp_path / "program.py"
    drain = "while self.pending: self.pending.pop()"
    source = (
        "log.rows.append(x)\n"
        "class Writer:\n"
        "    def __init__(self, path, rows): self.pending = rows\n"
        f"    def drain(self):\n        {drain}\n"
        "writer = Writer('log', log.rows)\n"
        "if step % 250 == 0: writer.drain()\n"
    )
    suspect = Suspect(
        "tensor", "", holder=held_by("attribute `Log.rows`"), locations=(Place(str(path), 1, ""),)
    )

    def said(source):
        path.write_text(source)
        tree_of.cache_clear()
        linecache.checkcache(str(path))
        return limited_by_program((suspect,))

    assert said(source) == f"attribute `Log.rows` grows, limited at {path}:7 (step % 250 == 0)"
    assert said(source.replace("log.rows)", "log.other)")) == ""


def test_an_attribute_of_another_class_is_another_list(tmp_path):
    path = tmp_path / "program.py"
    source = (
        "class A:\n"
        "    def cut(self):\n"
        "        if len(self.buf) > 50: self.buf.pop()\n"
        "class B{base}:\n"
        "    def add(self, x):\n"
        "        self.buf.append(x)\n"
    )
    place = Place(str(path), 6, "")
    suspect = Suspect("tensor", "", holder=held_by("attribute `B.buf`"), locations=(place,))

    def said(base: str) -> str:
        tree_of.cache_clear()
        path.write_text(source.format(base=base))
        linecache.checkcache(str(path))
        return limited_by_program((suspect,))

    assert said("") == ""
    assert said("(A)") != ""


@pytest.mark.parametrize(
    ("cut", "edges", "limited"),
    [
        ("kept = torch.cat([kept[-n:], x])", [], False),
        ("kept = torch.cat([kept[-n:], x])", [".queue"], False),
        ("kept = kept[-n:] + [x]", ["[x]"], True),
        ("kept = kept + x\nif len(kept) > n: kept = kept[-n:].detach()", [], True),
    ],
)
def test_a_tensor_with_its_history_is_not_limited_by_its_size(named, cut, edges, limited):
    tensor = replace(named(cut, "global `kept`", *edges), kind="graph", what="Tensor (16) float32")

    assert bool(limited_by_program([tensor])) == limited
    assert limited_by_program([replace(tensor, kind="tensor")])


def test_of_two_lists_on_one_line_the_limit_of_one_is_none_of_the_others(said):
    source = "other.append(a); kept.append(b)\nif len(other) > 100: other.clear()\n"

    assert said(source) == ""


def test_a_list_that_is_limited_under_another_name_has_a_limit(said):
    source = "recent.append(x)\nif len(recent) > 60: recent.pop(0)\n"

    told = "attribute `Bank.kept` grows, limited at program.py:2 (len(recent) > 60)"
    assert said(source, "attribute `Bank.kept`") == told


def test_the_same_name_in_another_function_is_another_list(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "def add(x, found):\n    found.append(x)\n"
        "def top(found):\n    if len(found) > 9: found.pop()\n"
    )
    place = Place(str(path), 2, "")
    suspect = Suspect(
        "tensor", "tensors", holder=held_by("attribute `Bank.kept`"), locations=(place,)
    )

    assert limited_by_program((suspect,)) == ""


def test_an_attribute_is_known_by_its_last_name(said):
    source = "if len(self.cache) > self.size: self.cache.clear()\n"

    assert said(source, "attribute `Data.cache`, from local `self` in get()").endswith(
        "limited at program.py:1 (len(self.cache) > self.size)"
    )


ELEMENTS = ("[x]", "[x]")  # of `kept`, a list each, and what is in one of them


@pytest.mark.parametrize(
    ("source", "limit"),
    [
        (
            "def add(k):\n    recent = kept[k]\n    if len(recent) > n: recent = recent[-n:]\n",
            "program.py:3 (len(recent) > n)",
        ),
        (
            "def add(k):\n    recent = kept.get(k)\n    while len(recent) > n: recent.pop(0)\n",
            "program.py:3 (len(recent) > n)",
        ),
        (
            "def trim():\n    for _, rows in kept.items():\n"
            "        if len(rows) > 9: del rows[0]\n",
            "program.py:3 (len(rows) > 9)",
        ),
        ("kept[k].append(x)\nkept[k] = kept[k][-n:]\n", "program.py:2 (kept[k] = kept[k][-n:])"),
    ],
)
def test_a_limit_of_each_element_limits_the_lists_in_it_and_not_itself(said, source, limit):
    assert said(source, "global `kept`", *ELEMENTS) == f"global `kept` grows, limited at {limit}"
    assert said(source, "global `kept`", "[x]") == ""


def test_what_a_function_calls_all_of_it_is_limited_there(said):
    body = "        rows = self.kept\n        if len(rows) > 9: rows.pop()\n"
    source = f"class Bank:\n    def add(self):\n{body}"

    told = "attribute `Bank.kept` grows, limited at program.py:4 (len(rows) > 9)"
    assert said(source, "attribute `Bank.kept`") == told


@pytest.mark.parametrize(
    ("source", "limited"),
    [
        ("if self.at >= len(kept): kept.append(x)\nself.at += 1\n", False),  # for ever
        ("if self.at >= len(kept): kept.append(x)\nself.at = (self.at + 1) % n\n", True),
        ("if self.at >= len(kept): kept.append(x)\nself.at += 1\nself.at %= n\n", True),
        ("if self.most >= len(kept): kept.append(x)\n", True),
    ],
)
def test_a_place_that_only_goes_up_is_no_limit(said, source, limited):
    assert bool(said(source)) is limited


def test_what_is_kept_beside_limits_both(said):
    body = "    if len(words) >= n: return 0\n    words.append(word)\n    kept.append(x)\n"
    told = "global `kept` grows, limited at program.py:2 (len(words) >= n)"

    assert said(f"def add(word):\n{body}", line=4) == told
    assert said(f"def add(word):\n{body.replace('words.append(word)', 'use(words)')}", line=4) == ""


def test_the_length_of_an_argument_limits_nothing(said):
    body = "    kept.extend(batch)\n    if len(batch) > n: kept.pop(0)\n"

    assert said(f"def add(batch):\n{body}", line=2) == ""
    assert said(f"def add(rows):\n{body}", line=2) != ""  # kept beside it
    cut = "    kept.extend(batch)\n    if batch.shape[0] > n: kept = kept[-n:]\n"
    assert said(f"def add(batch):\n{cut}", line=2) == ""
    assert said(f"def add(rows):\n{cut}", line=2) != ""


def test_a_key_that_is_put_together_is_no_place_in_a_ring(said):
    assert said("kept['%d of %d' % (step, n)] = x\n") == ""


@pytest.mark.parametrize(
    ("source", "ends"),
    [
        ("if epoch == 0:\n    kept.append(x)\n", True),
        ("if step < 500:\n    kept.append(x)\n", True),
        ("if key not in kept:\n    kept[key] = x\n", True),
        ("if self.collecting:\n    kept.append(x)\n", True),
        ("if not full:\n    kept.append(x)\n", True),
        ("for x in xs:\n    kept.append(x)\n", False),
        ("if epoch == 0:\n    for x in xs:\n        kept.append(x)\n", False),
        ("if step % 10 == 0:\n    kept.append(x)\n", False),
        ("if isinstance(x, int):\n    kept.append(x)\n", False),
        ("def keep(x):\n    kept.append(x)\n", False),
        ("if key in kept: use(kept[key])\nelse:\n    kept[key] = x\n", True),
        ("if key not in kept: use(x)\nelse:\n    kept[step] = x\n", False),
        ("if found is not None: use(found)\nelse:\n    kept[key] = x\n", True),
        ("try: kept[key]\nexcept KeyError:\n    kept[key] = x\n", True),
        ("try: run()\nexcept ValueError as error:\n    kept.append(error)\n", False),
        ("try: run()\nexcept:\n    kept.append(x)\n", False),
        ("for x in xs:\n    row = kept.setdefault(key, x)\n", True),
        ("for x in xs:\n    kept.setdefault(key, x)\n", True),
        ("for x in xs:\n    kept.setdefault(key, []).append(x)\n", False),
        ("for x in xs:\n    kept[key] = others.setdefault\n", False),
        ("this is no Python\n", False),
        ("def get(key):\n    if key in kept: return kept[key]\n    kept[key] = x\n", True),
        ("def get(key):\n    if found is not None: return found\n    kept[key] = x\n", True),
        ("try: return kept[key]\nexcept KeyError: pass\nkept[key] = x\n", False),  # no function
        (
            "def get(key):\n    try: return kept[key]\n"
            "    except KeyError: pass\n    kept[key] = x\n",
            True,
        ),
        ("def __missing__(self, key):\n    self[key] = x\n", True),
        ("def get(k):\n    if hasattr(self, k): return getattr(self, k)\n    keep(k, x)\n", True),
        ("if not hasattr(self, name):\n    self.register_buffer(name, x)\n", True),
        ("def get(key):\n    if len(kept) < 32: return None\n    kept[key] = x\n", False),
        ("def get(key):\n    if key in kept: use(key)\n    kept[step] = x\n", False),
    ],
)
def test_growth_under_a_condition_that_holds_for_a_while_may_end(tmp_path, source, ends):
    path = tmp_path / "program.py"
    path.write_text(source)
    line = len(source.splitlines())
    suspect = Suspect("tensor", "tensors pile up", locations=(Place(str(path), line, ""),))

    assert may_end((suspect,), {}) is ends
