"""How often a use is come to, beside the line that adds."""

from __future__ import annotations

import pytest

from leakcheck.source.uses import uses_of
from tests.source.asked import held, program_of, uses

LOOPS = """
kept = []
def main():
    for epoch in range(9):
        {epoch}
        for x in xs:
            kept.append(x)  # adds
            {step}
    {after}
def another():
    {another}
main()
"""
PLACES = {
    "step": "each step",
    "epoch": "when a loop turns",
    "after": "once",
    "another": "elsewhere",
}


@pytest.mark.parametrize(("place", "reach"), PLACES.items())
def test_a_statement_runs_as_often_as_its_loop_turns(place, reach):
    parts = dict.fromkeys(PLACES, "pass") | {place: "kept.clear()"}
    found = uses(program_of(LOOPS.format(**parts)), "kept")

    assert [use.reach for use in found if use.role == "take"] == [reach]


@pytest.mark.parametrize(
    ("text", "reach"),
    [
        ("kept = cycle(rows())\nfor row in kept:  # adds\n    use(row)", "once"),
        ("kept = cycle(rows())\nwhile use(next(kept)):  # adds\n    pass", "once"),
        (
            "for fold in folds:\n    kept = cycle(rows())\n    for row in kept:  # adds\n"
            "        use(row)",
            "when a loop turns",
        ),
    ],
)
def test_the_head_of_a_loop_runs_as_often_as_what_is_in_it(text, reach):
    found = uses(program_of(text), "kept")

    assert [use.reach for use in found if use.role == "replace"] == [reach]


@pytest.mark.parametrize(("place", "reach"), PLACES.items())
def test_so_does_what_it_calls(place, reach):
    parts = dict.fromkeys(PLACES, "pass") | {place: "empty()"}
    text = f"def empty():\n    kept.clear()\n{LOOPS.format(**parts)}"
    found = uses(program_of(text), "kept")

    assert [use.reach for use in found if use.role == "take"] == [reach]


def test_a_function_without_a_name_runs_when_whoever_has_it_says():
    text = """
        kept = []
        callbacks = [lambda: kept.clear()]
        for x in xs:
            kept.append(x)  # adds
            for callback in callbacks:
                callback()
        """

    found = uses(program_of(text), "kept")

    assert [use.reach for use in found if use.role == "take"] == ["elsewhere"]


METER = """
class Meter:
    def __init__(self):
        self.kept = []
        self.reset()
    def add(self, x):
        self.kept.append(x)  # adds
    def {name}(self):
        self.kept.clear()
meter = Meter()
for x in xs:
    meter.add(x)
{more}
"""
UNCALLED = {
    ("reset", ""): "never called",
    ("clear", ""): "never called",  # though its own line calls the clear() of a list
    ("flush", ""): "elsewhere",  # libraries call that by themselves
    ("on_epoch_end", ""): "when a loop turns",
    ("reset", "def end():\n    meter.reset()"): "elsewhere",
    ("reset", "end = meter.reset"): "elsewhere",
    ("reset", "def end(m):\n    m.reset()"): "elsewhere",
    ("reset", "getattr(meter, 'reset')()"): "elsewhere",
    ("reset", "getattr(meter, name)()"): "elsewhere",
    ("reset", "getattr(meter, f're{name}')()"): "elsewhere",
    ("reset", "getattr(meter, f'on_{name}')()"): "never called",
    ("reset", "getattr(meter, 'on_' + name)()"): "never called",
    ("reset", "class Net:\n    def part(self, name):\n        return getattr(self, name)()"): (
        "never called"
    ),
    ("reset", "def call(each, name):\n    return getattr(each, name)()"): "elsewhere",
    ("reset", "exec(text)"): "once",
    ("reset", "def load(text):\n    exec(text)\nload(text)"): "once",
    ("reset", "def load(text):\n    exec(text)\nfor text in texts: load(text)"): "elsewhere",
    ("reset", "for text in texts: exec(text)"): "elsewhere",
    ("reset", "end = eval(text)"): "elsewhere",
    ("reset", "table.getattr()"): "never called",
    ("reset", "class Sub(Meter): pass"): "elsewhere",
    ("reset", "class Page: pass\npage = Page()\npage.reset()"): "never called",
    ("reset", "import torch\nkind = getattr(torch.optim, name)"): "never called",
    ("reset", "meter.reset()"): "once",
    ("__exit__", ""): "once",
}


@pytest.mark.parametrize(("method", "reach"), UNCALLED.items())
def test_a_method_that_no_line_calls_is_no_hope_where_all_lines_are_known(method, reach):
    name, more = method
    text = METER.format(name=name, more=more)

    def found(*, complete: bool) -> list[str]:
        program = program_of(text, complete=complete)
        return [use.reach for use in uses(program, "Meter.kept") if use.role == "take"]

    assert found(complete=True) == [reach]
    known = reach != "never called" and "exec" not in more  # whatever other lines there are
    assert found(complete=False) == [reach if known else "elsewhere"]


OTHERS_CALL = {
    "a decorator may hand it on": ("    def reset", "    @registered\n    def reset"),
    "a base may call it": ("class Meter", "import threading\nclass Meter(threading.local)"),
    "what makes it may hand it on": ("class Meter", "@registered\nclass Meter"),
    "a metaclass may call it": ("class Meter", "class Meter(metaclass=Registered)"),
    "a lambda may call it later": ("self.reset()", "self.later = lambda: self.reset()"),
    "whoever it is handed on to may": ("self.reset()", "at_end.append(self.reset)"),
}
NOBODY_CALLS = {
    "of a module of torch's, which it calls none of": ("class Meter", "class Meter(nn.Module)"),
    "of a class that is but data": ("class Meter", "@dataclass(slots=True)\nclass Meter"),
}


@pytest.mark.parametrize(("old", "new"), OTHERS_CALL.values(), ids=OTHERS_CALL)
def test_what_is_not_the_programs_own_may_call_a_method(old, new):
    text = METER.format(name="reset", more="").replace(old, new)
    found = uses(program_of(text, complete=True), "Meter.kept")

    assert [use.reach for use in found if use.role == "take"] == ["elsewhere"]


def test_another_file_may_call_a_method():
    text = METER.format(name="reset", more="")
    found = uses(program_of(text, "def finish(m):\n    m.reset()\n", complete=True), "Meter.kept")

    assert [use.reach for use in found if use.role == "take"] == ["elsewhere"]


@pytest.mark.parametrize(("old", "new"), NOBODY_CALLS.values(), ids=NOBODY_CALLS)
def test_what_leaves_a_method_alone_calls_none(old, new):
    text = METER.format(name="reset", more="").replace(old, new)
    found = uses(program_of(text, complete=True), "Meter.kept")

    assert [use.reach for use in found if use.role == "take"] == ["never called"]


HANDLERS = {
    "except MemoryError": "only in an except handler",
    "except Exception": "only in an except handler",
    "except": "only in an except handler",
    "except (RuntimeError, OSError)": "only in an except handler",
    "except StopIteration": "each step",
    "except (IndexError, queue.Empty)": "each step",
}


@pytest.mark.parametrize(("handler", "reach"), HANDLERS.items())
def test_what_handles_a_failure_may_never_run(handler, reach):
    text = f"for x in xs:\n    kept.append(x)  # adds\n    try: f()\n    {handler}: kept.clear()\n"
    found = uses(program_of(text), "kept")

    assert [use.reach for use in found if use.role == "take"] == [reach]


TRAIN = """
def train(n):
    kept = []
    for _ in range(n):
        kept.append(step())  # adds
{calls}
"""
CALLED = {
    "train(9)": "once",
    "if a: train(9)": "once",
    "for n in sizes: train(n)": "when a loop turns",
    "found = [train(n) for n in sizes]": "when a loop turns",
    "list(map(train, sizes))": "when a loop turns",
    "def fold(n): train(n)\nfor n in sizes: fold(n)": "when a loop turns",
    "train(9)\ntrain(99)": "elsewhere",
    "": "elsewhere",
}


@pytest.mark.parametrize(("calls", "reach"), CALLED.items())
def test_a_local_is_gone_as_often_as_its_function_is_called(calls, reach):
    found = uses(program_of(TRAIN.format(calls=calls)), "kept in train()")

    assert {use.reach for use in found if use.role == "replace"} == {reach}


SERVER = """
class Server:
    def __init__(self):
        self.kept = {{}}
    def answer(self, key):
        self.kept[key] = state()  # adds
def served():
    server = Server()
    listen(server.answer)
{calls}
"""


@pytest.mark.parametrize(
    ("calls", "reach"),
    [
        ("if __name__ == '__main__': served()", "once"),
        ("def test(): served()", "once"),
        ("for n in sizes: served()", "when a loop turns"),
    ],
)
def test_what_sets_a_local_is_come_to_as_often_as_its_function(calls, reach):
    found = uses(
        program_of(SERVER.format(calls=calls)), "Server.kept", owners=(("server", "served"),)
    )
    made = [use.reach for use in found if use.code == "server = Server()"]

    assert made == [reach]


HOOK = """
class Recorder:
    def __init__(self, layer):
        self.kept = []
        layer.register_forward_hook(self.keep)
    def keep(self, module, given, output):
        self.kept.append(output)  # adds
def main():
    {made}
if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("made", "reach"),
    [
        ("recorder = Recorder(layer)\n    for x in xs: layer(x)", ["once"]),
        ("for fold in range(9):\n        recorder = Recorder(layer)", ["when a loop turns"]),
    ],
)
def test_a_hook_is_handed_on_once_and_called_by_whoever_has_it(made, reach):
    found = uses(
        program_of(HOOK.format(made=made)), "Recorder.kept", owners=(("recorder", "main"),)
    )

    assert [use.reach for use in found if use.code == "recorder = Recorder(layer)"] == reach


TRAINER = """
import library
def main():
    trainer = library.Trainer()
    trainer.fit(model)  # adds
{calls}
"""
ADDED_AT = ("train.py", 5)
SEEN = {ADDED_AT: (("train.py", 6, "main"),)}  # which call was seen to lead there


@pytest.mark.parametrize(
    ("calls", "visits", "reach"),
    [
        ("main()", {}, "once"),  # it is in `fit` all the time: that has the loop
        ("main()", {ADDED_AT: 20}, "each step"),  # somebody calls it again and again
        ("for seed in seeds: main()", {}, "when a loop turns"),
    ],
)
def test_what_stands_beside_a_call_that_has_the_loop_is_come_to_as_that_call(calls, visits, reach):
    program = program_of(TRAINER.format(calls=calls))
    asked = held(program, "Trainer.events", owners=(("trainer", "main"),))
    found = uses_of(program, asked, visits, SEEN)

    assert [use.reach for use in found if use.code == "trainer = library.Trainer()"] == [reach]
