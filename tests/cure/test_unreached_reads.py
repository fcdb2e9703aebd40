from __future__ import annotations

import pytest

pytest.importorskip("libcst")
from leakcheck.cure.sites import read
from leakcheck.cure.unreached_reads import Taken
from leakcheck.experiments import SourceSpan
from leakcheck.model import Holder, Reason

LOOP = """\
total = 0
for step in range(9):
    loss.backward()
    total += loss
    if step > 7:
        {late}
"""
METER = """\
class Meter:
    def update(self, loss):
        self.total += loss

    def learn(self):
        {learn}
"""
OWN, ATTRIBUTE = Holder("global", "total"), Holder("attribute", "total", "Meter")


def taken(text: str, holder: Holder = OWN, edited: int = 4) -> Taken:
    source = read(text)
    assert source is not None
    return Taken({"train.py": source}, holder, {"train.py": {edited}})


def left(*lines: int) -> set[SourceSpan]:
    """Return what a run did not come to: whole lines."""
    return {SourceSpan("train.py", line, 0, line, 99) for line in lines}


def late(code: str) -> Taken:
    return taken(LOOP.format(late=code))


def backward(code: str, line: int = 6) -> Reason:
    return Reason.of("backward-later", code=code, path="train.py", line=line)


def missed(code: str, line: int = 6) -> Reason:
    return Reason.of("read-later", code=code, path="train.py", line=line)


def test_a_run_is_asked_for_the_lines_that_may_miss_it_and_whether_their_functions_ran():
    assert late("print(total)").asked() == {"train.py": {3, 6}}
    assert taken(METER.format(learn="return self.total"), ATTRIBUTE, 3).asked() == {"train.py": {6}}


def test_a_backward_that_the_run_did_not_come_to_may_need_the_graph():
    assert late("(total + 1).backward()").missed_graph(left(6)) == backward(
        "(total + 1).backward()"
    )
    assert late("(total + 1).backward()").missed_graph(set()) is None


def test_a_backward_from_what_was_learned_from_elsewhere_was_compared_there():
    assert late("scaler.scale(loss).backward()").missed_graph(left(6)) is None


def test_a_second_backward_needs_a_graph_that_is_retained_whatever_it_goes_through():
    assert late("loss.backward()").missed_again(left(6)) == backward("loss.backward()")
    assert late("loss.backward()").missed_again(set()) is None


@pytest.mark.parametrize(
    "code",
    [
        "parts.append(total); loss = sum(parts)",
        "losses['kl'] = total; loss = sum(losses.values())",
        "loss: float = loss + total",
        "for old in total: loss = loss + old",
    ],
)
def test_what_a_loss_is_made_of_is_followed_through_lists_and_loops(code):
    assert late(code).missed_graph(left(6)) is not None


@pytest.mark.parametrize(
    "code", ["other.backward()", "scaler.scale(other).backward()", "other.mean().backward()"]
)
def test_another_loss_is_no_loss_that_was_learned_from(code):
    reached = "scaler.scale(loss).backward(retain_graph=True); loss.mean().backward()"
    text = LOOP.replace("loss.backward()", reached)

    assert taken(text.format(late=code)).missed_graph(left(6)) == backward(code)


def test_a_function_with_a_docstring_ran_if_what_follows_did():
    loop = LOOP.format(late="loss.backward()").replace("\n", "\n    ")
    text = f"def train():\n    '''Train.'''\n    {loop}"

    assert taken(text).asked() == {"train.py": {3, 5, 8}}
    assert taken(text).missed_again(left(8)) == backward("loss.backward()", 8)
    assert taken(text).missed_again(left(3, 5, 8)) is None


def test_what_another_loss_is_made_of_may_need_the_graph():
    code = "loss = loss + 0.5 * total"

    assert late(code).missed_graph(left(6)) == backward(code)
    assert late("mean = total / 9").missed_graph(left(6)) is None


def test_a_backward_in_a_function_that_never_ran_counts_if_it_names_what_holds_the_leak():
    learns = taken(METER.format(learn="self.total.backward()"), ATTRIBUTE, 3)
    other = taken(METER.format(learn="self.loss.backward()"), ATTRIBUTE, 3)

    assert learns.missed_graph(left(6)) == backward("self.total.backward()")
    assert other.missed_graph(left(6)) is None


def test_a_value_that_is_read_in_a_line_that_did_not_run_may_be_missed():
    assert late("print(total)").missed_value(left(6)) == missed("print(total)")
    assert late("print(total)").missed_value(set()) is None
    assert late("print(loss)").missed_value(left(6)) is None


@pytest.mark.parametrize(
    "code", ["total = 0", "total.append(loss)", "total.clear()", "del total[0]", "total += 1"]
)
def test_what_only_fills_empties_or_begins_anew_reads_nothing(code):
    assert late(code).missed_value(left(6)) is None


def test_a_value_that_another_method_reads_may_be_missed():
    read_there = taken(METER.format(learn="return self.total"), ATTRIBUTE, 3)

    assert read_there.missed_value(left(6)) == missed("return self.total")
    assert taken(METER.format(learn="total = 9"), ATTRIBUTE, 3).missed_value(left(6)) is None


@pytest.mark.parametrize(
    "code",
    ["vars(self)", "dataclasses.asdict(self)", "getattr(self, name)", "getattr(self, 'total')"],
)
def test_an_attribute_may_be_read_without_its_name(code):
    assert taken(METER.format(learn=code), ATTRIBUTE, 3).missed_value(left(6)) == missed(code)
    assert (
        taken(METER.format(learn="getattr(self, 'mean')"), ATTRIBUTE, 3).missed_value(left(6))
        is None
    )


def test_arguments_and_modules_hold_nothing_of_it():
    text = METER.format(learn="print(vars(args), getattr(models, arch))")
    before = "import models\nargs = parser.parse_args()\n"

    assert taken(before + text, ATTRIBUTE, 5).missed_value(left(8)) is None
    assert taken(text, ATTRIBUTE, 3).missed_value(left(6)) is not None


def test_a_local_is_one_of_its_own_function():
    text = "def train():\n    total = []\n    total.append(1)\n\ndef other():\n    return total\n"
    local = Holder("local", "total", function="train")

    assert taken(text, local, 3).missed_value(left(6)) is None
    assert taken(text, Holder("global", "total"), 3).missed_value(left(6)) == missed("return total")


@pytest.mark.parametrize(
    "made",
    [
        "{'losses': total}",
        "[total]",
        "dict(losses=total)",
        "total",
        "(last := total)",
        "len(total)",
    ],
)
def test_what_it_was_handed_on_to_reads_it_too(made):
    text = "total = []\nrecord = {made}\ntotal.append(1)\nprint(record)\n"
    beside = "total, record = [], 3\n" + text[11:]

    assert taken(text.format(made=made), edited=3).missed_value(left(4)) == missed(
        "print(record)", 4
    )
    assert taken(beside.format(made="4"), edited=3).missed_value(left(4)) is None


@pytest.mark.parametrize(
    "code",
    [
        "print(total)",
        "print(f'{total / 9:.2f}')",
        "total + 1",
        "print(float(total) / 9)",
        "mean = total / 9; print(mean)",
        "print('{}'.format(total))",
        "logging.info('%s', total)",
        "print(np.mean(total))",
        "seen = {'total': total}",
    ],
)
def test_a_number_may_be_printed_and_computed_with(code):
    assert late(code).missed_tensor(left(6)) is None


@pytest.mark.parametrize(
    "code",
    [
        "print(total.item())",
        "print((total / 9).item())",
        "m = torch.stack(total)",
        "m = torch.mean(total)",
        "mean = total / 9; mean.numpy()",
    ],
)
def test_what_may_be_used_as_a_tensor_is_not_to_be_a_number(code):
    assert late(code).missed_tensor(left(6)) == missed(code)


CALLER = """\
def train(losses):
    losses.append(loss)

kept = self.kept
train(kept)
if late:
    torch.stack({read})
"""


@pytest.mark.parametrize("name", ["kept", "self.kept", "vars(self)"])
def test_what_a_parameter_holds_is_read_by_the_names_of_its_callers_too(name):
    local = Holder("local", "losses", function="train")

    there = taken(CALLER.format(read=name), local, 2)

    code = f"torch.stack({name})"
    assert there.missed_value(left(7)) == (None if "vars" in name else missed(code, 7))
    assert there.missed_value(left(6)) is None
    assert taken(CALLER.format(read="lost"), local, 2).missed_value(left(7)) is None


@pytest.mark.parametrize(
    "call", ["show(total)", "show(values=total)", "Thread(target=show, args=(total,)).start()"]
)
def test_what_a_function_is_given_it_reads_as_its_parameter(call):
    text = f"{LOOP.format(late='pass')}\ndef show(values, *rest):\n    print(values)\n\n{call}\n"

    assert taken(text).missed_value(left(9)) == missed("print(values)", 9)
    assert taken(text.replace("total)", "1)").replace("(total", "(1")).missed_value(left(9)) is None


def test_a_part_of_a_line_that_was_not_run_may_miss_it():
    code = "mean = 0 if step else len(total)"
    part = SourceSpan("train.py", 6, 8 + code.index("len"), 6, 8 + len(code))

    assert late(code).missed_value({part}) == missed(code)
    assert late(code.replace("len(total)", "0")).missed_value({part}) is None


def test_a_stateful_module_hands_on_what_it_holds_through_its_calls():
    text = (
        "class Net:\n"
        "    def forward(self, x):\n"
        "        self.h = cell(x, self.h)\n"
        "        return self.h\n"
        "for x in data:\n"
        "    loss = net(x).mean()\n"
        "    loss.backward()\n"
        "    outs.append(net(x))\n"
        "    if late:\n"
        "        sum({outs}).backward()\n"
    )
    held = Holder("attribute", "h", "Net")

    told = taken(text.format(outs="outs"), held, 3).missed_graph(left(10))
    assert told == backward("sum(outs).backward()", 10)
    assert taken(text.format(outs="loss"), held, 3).missed_graph(left(10)) is None


def test_a_loss_that_is_computed_from_something_else_needs_no_graph_of_it():
    code, needs = (f"other = aux({of}); other.backward()" for of in ("x", "total"))

    assert late(code).missed_graph(left(6)) is None
    assert late(needs).missed_graph(left(6)) == backward(needs)


STATE = """\
class State:
    def __init__(self):
        self.outs = []

def made():
    return State()

{made}
state.outs.append(1)
"""


@pytest.mark.parametrize("made", ["state = State()", "state = made()", "also = state = made()"])
@pytest.mark.parametrize(
    "read",
    [
        "pickle.dumps(state)",
        "vars(state)",
        "json.dumps(state.__dict__)",
        "getattr(state, name)",
        "save(model=state)",
        "rows = [state]",
        "other = state; save(other)",
    ],
)
def test_what_takes_all_of_an_object_reads_what_it_holds(made, read):
    held = Holder("attribute", "outs", "State")

    told = taken(STATE.format(made=made) + read, held, 9).missed_anywhere(set())

    assert told == Reason.of("read-unnamed", code=read, path="train.py", line=10)


@pytest.mark.parametrize(
    "read",
    ["state.run(1)", "state(1)", "len(state.lr)", "other = state", "isinstance(state, State)"],
)
def test_what_asks_an_object_for_something_else_does_not_read_what_it_holds(read):
    held = Holder("attribute", "outs", "State")

    assert taken(STATE.format(made="state = made()") + read, held, 9).missed_anywhere(set()) is None


def test_a_namespace_may_be_read_as_a_whole():
    code = "save(globals().items())"

    told = Reason.of("read-unnamed", code=code, path="train.py", line=6)
    assert late(code).missed_anywhere(set()) == told
    assert late("save(globals_of(model))").missed_anywhere(set()) is None
