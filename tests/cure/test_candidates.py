from __future__ import annotations

import ast
import io
import tokenize

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("libcst")
from leakcheck.cure.candidates import TABLE, proposals
from leakcheck.cure.sites import LeakSite, read
from leakcheck.model import Holder, Kind, Suspect

LOOP = """\
import torch

log = []  # kept
state = None
for epoch in range(3):
    for step in range(9):
        loss = work(step)  # a comment
        {line}
"""
LINES = (
    "total += loss",
    "total = total + loss  # why",
    "mean = 0.9 * mean + 0.1 * loss",
    "log.append(loss)",
    "log.append((step, loss, -loss))",
    "log.append({'loss': loss})",
    "kept[step] = loss",
    "out, state = cell(loss, state)",
    "loss.backward(retain_graph=True, create_graph=True)",
    "handle = model.register_forward_hook(print)",
    "model.register_forward_hook(print)",
    "rows = torch.cat([rows, loss])",
    "if step: log.append(loss)",
    "first(); log.append(loss)",
)


def edits(line: str, kind: Kind = "graph", name: str = "log", size: int | None = None):
    source = read(LOOP.format(line=line))
    assert source is not None
    site = LeakSite(source, 8, Suspect(kind, "", holder=Holder("global", name)))
    return [(candidate.name, text) for _, candidate, text in proposals(site, size)]


def changed(line: str, kind: Kind = "graph", name: str = "log", size: int | None = None):
    """Return (candidate, the lines that are new) for each edit."""
    before = LOOP.format(line=line).splitlines()
    return [
        (candidate, [each.strip() for each in text.splitlines() if each not in before])
        for candidate, text in edits(line, kind, name, size)
    ]


def test_a_sum_is_offered_the_number_first_then_a_detached_value():
    assert changed("total += loss")[:3] == [
        ("item", ["total += loss.item()"]),
        ("detach", ["total += loss.detach()"]),
        ("float", ["total += float(loss)"]),
    ]


def test_in_an_average_the_number_is_what_is_added_and_the_old_value_stays():
    found = changed("mean = 0.9 * mean + 0.1 * loss")

    assert found[:2] == [
        ("item", ["mean = 0.9 * mean + 0.1 * loss.item()"]),
        ("detach", ["mean = (0.9 * mean + 0.1 * loss).detach()"]),
    ]


def test_of_a_record_each_part_is_cut_alone_then_all_of_them():
    found = [lines for name, lines in changed("log.append((step, loss))") if name == "item"]

    assert found == [
        ["log.append((step.item(), loss))"],
        ["log.append((step, loss.item()))"],
        ["log.append((step.item(), loss.item()))"],
    ]


def test_a_carried_state_is_cut_as_a_step_begins():
    found = [text for name, text in edits("out, state = cell(loss, state)") if name == "carried"]

    assert (
        "    for step in range(9):\n        state = state.detach()\n        loss = work(step)  # a"
        in "".join(found)
    )


def test_the_graph_is_let_go_and_other_arguments_stay():
    line = "loss.backward(weight, retain_graph=True)"

    assert ("graph", ["loss.backward(weight)"]) in changed(line)


def test_a_hook_is_removed_as_the_step_ends_or_registered_before_the_loop():
    found = dict(edits("model.register_forward_hook(print)", "object"))

    assert found["handle"].endswith(
        "        handle = model.register_forward_hook(print)\n        handle.remove()\n"
    )
    assert found["once"].endswith(
        "    model.register_forward_hook(print)\n"
        "    for step in range(9):\n        loss = work(step)  # a comment\n"
    )


def test_each_call_lets_its_own_graph_go_and_no_other():
    text = (
        "for step in range(9):\n    loss.backward(create_graph=True)\n"
        "def penalty(x, y):\n    return grad(y, x, create_graph=True)\n"
    )
    source = read(text)
    assert source is not None
    site = LeakSite(source, 2, Suspect("graph", "", holder=Holder("global", "log")))

    found = [after for _, c, after in proposals(site) if c.name == "graph"]

    assert found == [
        text.replace("backward(create_graph=True)", "backward()"),
        text.replace("grad(y, x, create_graph=True)", "grad(y, x)"),
    ]


def test_nothing_is_without_gradients_while_other_code_may_run():
    text = "import torch\nasync def watch(x):\n    log.append(await model(x))\n"
    rows = "import torch\ndef watch(x):\n    log.append(model(x))\n    yield x\n"

    assert {"no-grad", "no-grad-function"}.isdisjoint(edited(text, 3, "graph", "log"))
    assert "no-grad-function" not in edited(rows, 3, "graph", "log")
    assert "no-grad" in edited(rows, 3, "graph", "log")


@pytest.mark.parametrize(
    "use",
    [
        "out = os.fdopen(made)",
        "kept.append(made)",
        "return made",
        "self.made = made",
        "rows = [made]",
    ],
)
def test_what_somebody_else_has_is_not_ended(use):
    text = f"def load(path):\n    made = open(path)\n    {use}\n"

    assert "close" not in edited(text, 2, "descriptors", "")
    assert "close" in edited(text.replace(use, "rows = parse(made)"), 2, "descriptors", "")


def test_a_module_is_imported_behind_those_of_the_future():
    text = '"""Trains."""\nfrom __future__ import annotations\nlog = []\nlog.append(loss)\n'

    assert edited(text, 4, "tensor", "log", size=7)["deque"] == text.replace(
        "log = []", "import collections\nlog = collections.deque(maxlen=7)"
    )


def test_a_longer_name_that_backward_is_called_on_is_another():
    assert "item" in dict(changed("total_loss += loss"))
    learned = LOOP.format(line="loss += total") + "        total_loss.backward()\n"

    assert "item" in edited(learned, 8, "graph", "loss")


def test_what_reads_a_name_of_the_loop_is_not_made_before_it():
    text = "for at, x in rows:\n    made = open({name})\n    print(made)\n"

    assert "made-once" in edited(text.format(name="path"), 2, "descriptors", "files")
    assert "made-once" not in edited(text.format(name="at"), 2, "descriptors", "files")
    assert "made-once" in edited(text.format(name="rows"), 2, "descriptors", "files")


def test_a_size_is_the_owners_choice_and_not_guessed():
    assert ("deque", ["import collections", "log = collections.deque(maxlen=...)  # kept"]) in (
        changed("log.append(loss)", "tensor")
    )
    assert ("deque", ["import collections", "log = collections.deque(maxlen=7)  # kept"]) in (
        changed("log.append(loss)", "tensor", size=7)
    )
    assert [each.name for each in TABLE if each.choice] == [
        "deque",
        "window",
        "slice",
        "trim",
        "memo",
        "host",
    ]


def test_a_container_is_emptied_as_the_loop_around_the_steps_turns():
    found = dict(edits("log.append(loss)"))

    assert found["clear"].endswith("        log.append(loss)\n    log.clear()\n")


def test_a_function_may_make_no_graph_at_all():
    text = "import torch as th\n\n\n@timed\ndef evaluate(model, x):\n    log.append(model(x))\n"

    decorated = text.replace("@timed\n", "@timed\n@th.no_grad()\n")
    assert edited(text, 6, "graph", "log")["no-grad-function"] == decorated
    assert "no-grad-function" not in dict(edits("log.append(loss)"))


def test_an_entry_may_go_with_its_key_where_keys_are_objects():
    text = "seen = {}\nfor batch in batches:\n    seen[batch] = model(batch)\n"

    weak = edited(text, 3, "tensor", "seen")["weak-keys"]

    assert weak == "import weakref\n" + text.replace("{}", "weakref.WeakKeyDictionary()")
    for key in ("'a'", "7", "id(batch)", "(batch, 1)", "batch + 1"):
        plain = text.replace("[batch]", f"[{key}]")
        assert "weak-keys" not in edited(plain, 3, "tensor", "seen")


def test_no_grad_needs_torch_by_the_name_that_the_file_gives_it():
    source = read("import torch as th\nx = y * z\n")
    plain = read("x = y * z\n")
    assert source is not None
    assert plain is not None
    suspect = Suspect("graph", "", holder=Holder("global", "x"))

    found = {c.name: text for _, c, text in proposals(LeakSite(source, 2, suspect))}
    without = {c.name: text for _, c, text in proposals(LeakSite(plain, 1, suspect))}

    assert found["no-grad"] == "import torch as th\nwith th.no_grad():\n    x = y * z\n"
    assert "no-grad" not in without


def test_a_file_that_does_not_parse_has_no_edits():
    assert read("def f(:\n") is None


@given(
    st.sampled_from(LINES),
    st.sampled_from(("graph", "tensor", "object")),
    st.sampled_from((None, 5)),
    st.sampled_from(("\n", "\r\n")),
)
def test_every_edit_parses_changes_something_and_keeps_every_comment(line, kind, size, end):
    text = LOOP.format(line=line).replace("\n", end)
    source = read(text)
    assert source is not None
    site = LeakSite(source, 8, Suspect(kind, "", holder=Holder("global", "log")))

    for _, _, after in proposals(site, size):
        ast.parse(after)
        assert after != text
        assert comments(after) == comments(text)
        assert ("\r" in after) == ("\r" in text)


def comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sorted(each.string for each in tokens if each.type == tokenize.COMMENT)


def test_what_is_detached_already_is_not_detached_again():
    found = changed("outputs.append(out.detach().clone())", "tensor")

    assert "detach" not in [name for name, _ in found]


def edited(text: str, line: int, kind: Kind, name: str, size: int | None = None):
    """Return the edits of a whole text by the candidate's name."""
    source = read(text)
    assert source is not None
    site = LeakSite(source, line, Suspect(kind, "", holder=Holder("global", name)))
    return {candidate.name: after for _, candidate, after in proposals(site, size)}


KEPT = """\
kept = []
for step in range(9):
    train(step)
    kept.append(rows[step])
"""


def test_what_nothing_reads_need_not_be_kept():
    found = edited(KEPT, 4, "tensor", "kept")

    assert found["drop"] == KEPT.replace("    kept.append(rows[step])\n", "")
    assert found["place"] == KEPT.replace("rows[step]", "None")


def test_what_makes_a_value_that_is_not_kept_is_called_as_before():
    text = KEPT.replace("rows[step]", "send(rows, step)")
    pure = KEPT.replace("rows[step]", "float(rows[step].detach())")

    found = edited(text, 4, "tensor", "kept")

    assert found["drop"] == text.replace("kept.append(send(rows, step))", "send(rows, step)")
    assert found["place"].endswith("    send(rows, step)\n    kept.append(None)\n")
    assert edited(pure, 4, "tensor", "kept")["drop"].endswith("    train(step)\n")


def test_where_its_length_is_read_its_place_is_kept_and_where_more_is_the_value():
    length = edited(f"{KEPT}print(len(kept))\n", 4, "tensor", "kept")
    items = edited(f"{KEPT}print(kept)\n", 4, "tensor", "kept")

    assert ("drop" in length, "place" in length) == (False, True)
    assert ("drop" in items, "place" in items) == (False, False)


def test_a_line_that_is_alone_in_its_block_leaves_pass():
    text = "kept = {}\nfor step in range(9):\n    kept[step] = rows[step]\n"

    assert edited(text, 3, "tensor", "kept")["drop"].endswith(":\n    pass\n")


def test_an_exception_is_kept_by_its_words_and_another_value_is_not():
    text = "try:\n    work()\nexcept ValueError as error:\n    log.append({value})\n"

    assert (
        "log.append(str(error))" in edited(text.format(value="error"), 4, "object", "log")["text"]
    )
    assert "text" not in edited(text.format(value="other"), 4, "object", "log")


def test_a_part_is_kept_as_a_copy():
    assert ("copy", ["log.append(batch[0].clone())"]) in changed("log.append(batch[0])", "tensor")
    assert "copy" not in dict(changed("log.append(batch)", "tensor"))


REGISTRY = """\
class Timer:
    timers = []

    def __init__(self):
        Timer.timers.append({added})
"""


def test_instances_that_register_themselves_are_kept_weakly_and_others_are_not():
    weak = edited(REGISTRY.format(added="self"), 5, "object", "timers")["weak"]

    assert weak.startswith("import weakref\nclass Timer:\n    timers = weakref.WeakSet()\n")
    assert weak.endswith("Timer.timers.add(self)\n")
    assert "weak" not in edited(REGISTRY.format(added="rows"), 5, "object", "timers")


def test_of_a_dict_the_oldest_entry_goes_when_the_owner_has_said_how_many_stay():
    found = changed("memo[step] = loss", "tensor", "memo", size=7)

    assert ("trim", ["if len(memo) > 7:", "del memo[next(iter(memo))]"]) in found
    assert ("trim", ["if len(memo) > ...:", "del memo[next(iter(memo))]"]) in changed(
        "memo[step] = loss", "tensor", "memo"
    )


@pytest.mark.parametrize(
    ("maker", "end"),
    [
        ("open(path)", "file.close()"),
        ("os.open(path, os.O_RDONLY)", "os.close(file)"),
        ("plt.figure()", "plt.close(file)"),
        ("plt.subplots()", "plt.close(file)"),
        ("Pool(2)", "file.terminate()"),
        ("SummaryWriter()", "file.close()"),
    ],
)
def test_what_is_opened_is_ended_as_its_block_is_left(maker, end):
    text = f"import os\ndef load(path):\n    file = {maker}\n    return read(file)\n"
    tail = f"    try:\n        return read(file)\n    finally:\n        {end}\n"

    closed = edited(text, 3, "descriptors", "")["close"]

    assert closed == text.replace("    return read(file)\n", tail)


@pytest.mark.parametrize(
    ("maker", "end", "imports"),
    [("plt.subplots()", "plt.close(made)", ""), ("mkstemp()", "os.close(made)", "import os\n")],
)
def test_of_a_pair_the_one_that_has_to_be_ended_is(maker, end, imports):
    text = f"for step in range(9):\n    made, other = {maker}\n    other.plot(step)\n"

    found = edited(text, 2, "object", "Gcf.figs")

    assert found["close"] == imports + text.replace(
        "    other.plot(step)\n",
        f"    try:\n        other.plot(step)\n    finally:\n        {end}\n",
    )
    assert "close" not in edited(text.replace(maker, "load(step)"), 2, "object", "Gcf.figs")


def test_what_is_of_no_step_is_made_before_the_loop_and_what_is_of_one_is_not():
    once = changed("logger.addHandler(handler)", "descriptors", "handlers")
    each = changed("logger.addHandler(loss)", "descriptors", "handlers")
    gathered = changed("log.append(metric.state)", "tensor")

    assert "made-once" in dict(once)
    assert "made-once" not in dict(each)
    assert "made-once" not in dict(gathered)


def test_a_list_that_stays_one_is_cut_after_it_was_added_to():
    assert ("window", ["del log[:-7]"]) in changed("log.append(loss)", "tensor", size=7)
    assert ("window", ["del rows[:-7]", "del log[:-7]"]) in changed(
        "rows.append(step), log.append(loss)", "tensor", size=7
    )


def test_of_rows_that_are_put_before_the_old_ones_the_first_are_the_newest():
    assert ("slice", ["log = torch.cat([log, loss])[-7:]"]) in changed(
        "log = torch.cat([log, loss])", "tensor", size=7
    )
    assert ("slice", ["log = torch.cat([loss, log])[:7]"]) in changed(
        "log = torch.cat([loss, log])", "tensor", size=7
    )


def test_of_a_chain_the_newest_is_kept_without_the_one_before_it():
    assert ("unlinked", ["head = Event(step, None)"]) in changed(
        "head = Event(step, head)", "object", "head"
    )
    assert "unlinked" not in dict(changed("head = Event(step, tail)", "object", "head"))


def test_a_memo_that_is_limited_is_imported():
    text = "from functools import cache\n\n\n@cache\ndef rows(step):\n    return step\n"
    source = read(text)
    assert source is not None
    suspect = Suspect("tensor", "", holder=Holder("memo", "", function="rows"))

    found = {c.name: after for _, c, after in proposals(LeakSite(source, 5, suspect), 7)}

    assert found["memo"] == (
        "import functools\nfrom functools import cache\n\n\n"
        "@functools.lru_cache(maxsize=7)\ndef rows(step):\n    return step\n"
    )


def test_a_hook_that_leads_to_its_own_tensor_refers_to_its_object_weakly():
    text = "class A:\n    def run(self):\n        self.out = f()\n        self.out.{hook}\n"
    method = text.format(hook="register_hook(self.save)")
    source, other = read(method), read(text.format(hook="register_hook(save)"))
    assert source is not None
    assert other is not None
    suspect = Suspect("graph", "", holder=Holder("graph hook", "save"))

    found = {c.name: after for _, c, after in proposals(LeakSite(source, 3, suspect))}
    plain = {c.name: after for _, c, after in proposals(LeakSite(other, 3, suspect))}

    hook = "self.out.register_hook(functools.partial(type(self).save, weakref.proxy(self)))"
    assert hook in found["weak-hook"]
    assert "weak-hook" not in plain


def test_what_backward_is_called_on_and_what_holds_nothing_is_not_cut():
    learned = LOOP.format(line="loss = model(step)") + "        loss.backward()\n"

    assert {"item", "detach", "float"}.isdisjoint(edited(learned, 8, "graph", "loss"))
    assert {"item", "detach", "float"}.isdisjoint(dict(changed("log = None")))
    assert {"item", "detach", "float"}.isdisjoint(dict(changed("log = defaultdict(list)")))


def test_an_object_that_is_made_is_no_tensor_and_a_tensor_that_is_made_is_one():
    names = {"item", "detach", "float"}

    defined = f"class Meter:\n    pass\n\n\n{LOOP.format(line='meter = Meter()')}"

    assert not names.intersection(edited(defined, 12, "graph", "meter"))
    assert names.intersection(name for name, _ in edits("total += torch.Tensor([loss])"))


def test_only_what_has_a_value_before_the_step_is_carried_over():
    assert "carried" in dict(edits("state = cell(loss, state)", name="state"))
    assert "carried" not in dict(edits("other = cell(loss, loss)", name="other"))
    assert "carried" not in dict(edits("log.append(loss)", name="log"))


def test_a_method_that_is_called_at_the_exit_may_let_its_object_go():
    text = (
        "import atexit\n"
        "class Window:\n"
        "    def __init__(self):\n"
        "        atexit.register(self.flush)\n"
        "        atexit.register(self.flush, 1)\n"
        "        atexit.register(flush)\n"
    )
    source = read(text)
    assert source is not None
    leak = Suspect("tensor", "", holder=Holder("exits", "atexit.register"))

    found = [
        after
        for _, candidate, after in proposals(LeakSite(source, 4, leak))
        if candidate.name == "weak-exit"
    ]

    weak = "lambda living=weakref.ref(self): living() and living().flush()"
    assert found == [
        text.replace("register(self.flush)", f"register({weak})").replace(
            "import atexit\n", "import weakref\nimport atexit\n"
        )
    ]
