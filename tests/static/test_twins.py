"""Programs in pairs: one that leaks, and its clean twin that differs in a few characters."""

import textwrap

import pytest

from leakcheck.static import registry
from leakcheck.static.engine import check_source

IMPORTS = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
STEP = """
def step(model, opt, batch):
    opt.zero_grad()
    loss = F.mse_loss(model(batch[0]), batch[1])
    loss.backward()
    opt.step()
    return RETURNED
"""
OUTPUTS = """
def train(model: nn.Module, loader, total=0):"""
LOOP = """
def train(model, loader, opt):
    total = 0
    kept = []
    for step, (x, y) in enumerate(loader):
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
"""


def lines(source: str) -> list[str]:
    """The text of each line flagged by the rules on graphs."""
    rules = [rule for rule in registry.builtin_rules() if rule.code.startswith("LK1")]
    return [f.context.strip() for f in check_source(IMPORTS + source, "a.py", rules)]


def in_loop(statements: str) -> list[str]:
    return lines(LOOP + textwrap.indent(textwrap.dedent(statements), "        "))


@pytest.mark.parametrize(
    "trimming",
    [
        "if len(kept) > 100:\n    kept.pop(0)",
        "if len(kept) > 100:\n    del kept[0]",
        "del kept[:-100]",
        "kept = kept[-100:]",
        "if len(kept) == 100:\n    kept.clear()",
        "if step % 50 == 0:\n    print(len(kept))\n    kept = []",
    ],
)
def test_a_list_that_is_cut_back_in_its_loop_is_no_leak(trimming):
    assert in_loop(f"kept.append(loss)\n{trimming}") == []


def test_looking_at_the_length_of_a_list_does_not_cut_it_back():
    found = in_loop("kept.append(loss)\nif len(kept) > 100:\n    print(len(kept))")
    assert found == ["kept.append(loss)"]


def test_a_total_that_starts_anew_every_few_steps_keeps_the_graphs_of_a_few():
    anew = "if step % 50 == 0:\n    print(total)\n    total = 0"
    assert in_loop(f"total += loss\n{anew}") == ["total += loss"]
    assert in_loop(f"total += loss.item()\n{anew}") == []


def test_a_total_that_is_learned_from_before_it_starts_anew_is_no_leak():
    program = """
def train(model, opt, loader):
    total = 0
    for step, (x, y) in enumerate(loader):
        loss = F.mse_loss(model(x), y)
        total += loss
        if step % 4 == 3:
            total.backward()
            opt.step()
            total = 0
"""
    assert lines(program) == []


def test_a_total_that_is_set_at_the_first_step_only_is_a_leak():
    found = in_loop("if step == 0:\n    total = 0\ntotal += loss")
    assert found == ["total += loss"]


def test_a_method_called_in_the_loop_may_start_the_total_anew():
    program = """
class Trainer:
    def __init__(self, model, opt):
        self.model, self.opt, self.total = model, opt, 0.0

    def fit(self, loader):
        for step, (x, y) in enumerate(loader):
            loss = F.mse_loss(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.total += loss
            self.report(step)

    def report(self, step):
        print(self.total)
"""
    assert lines(program) == ["self.total += loss"]
    assert lines(program + "        self.total = 0.0\n") == []


@pytest.mark.parametrize(
    ("keeping", "flagged"),
    [
        ("losses = [step(model, opt, b) for b in loader]", True),
        ("losses = list(step(model, opt, b) for b in loader)", True),
        ("total = sum(step(model, opt, b) for b in loader)", True),
        ("print(max(float(step(model, opt, b)) for b in loader))", False),
    ],
)
def test_a_comprehension_over_training_steps_keeps_what_they_return(keeping, flagged):
    program = STEP + f"\ndef train(model, opt, loader):\n    {keeping}\n"
    assert lines(program.replace("RETURNED", "loss")) == ([keeping] if flagged else [])
    assert lines(program.replace("RETURNED", "loss.item()")) == []


def test_a_comprehension_whose_losses_are_backwarded_is_no_leak():
    program = """
def train(model, opt, loader):
    for batches in loader:
        losses = [F.mse_loss(model(x), y) for x, y in batches]
        sum(losses).backward()
        opt.step()
"""
    assert lines(program) == []


def test_a_generator_of_training_steps_hands_out_losses():
    program = """
def steps(model, opt, loader):
    for x, y in loader:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        yield RETURNED

def train(model, opt, loader):
    total = 0
    for loss in steps(model, opt, loader):
        total += loss
    print(total)
"""
    assert lines(program.replace("RETURNED", "loss")) == ["total += loss"]
    assert lines(program.replace("RETURNED", "loss.item()")) == []


def test_getattr_reads_the_attribute_it_names():
    program = """
class Trainer:
    def step(self, x, y):
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        self.total = getattr(self, "total", 0) + ADDED
"""
    flagged = 'self.total = getattr(self, "total", 0) + loss'
    assert lines(program.replace("ADDED", "loss")) == [flagged]
    assert lines(program.replace("ADDED", "loss.item()")) == []


@pytest.mark.parametrize(
    ("stars", "store", "given"),
    [
        ("*values", "self.values.extend(values)", "loss"),
        ("**values", "for v in values.values():\n            self.values.append(v)", "mse=loss"),
    ],
)
def test_a_meter_may_take_its_values_by_stars(stars, store, given):
    program = f"""
class Meter:
    def __init__(self):
        self.values = []

    def update(self, {stars}):
        {store}

def train(model, opt, loader):
    meter = Meter()
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        meter.update({given})
"""
    assert lines(program) == [store.splitlines()[-1].strip()]
    assert (
        lines(program.replace("=loss)", "=loss.item())").replace("(loss)", "(float(loss))")) == []
    )


def test_what_a_trainer_subclass_keeps_in_compute_loss_has_been_backwarded():
    program = """
from transformers import Trainer

class Logged(Trainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.history = []

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(**inputs)
        self.history.append(outputs.loss)
        return (outputs.loss, outputs) if return_outputs else outputs.loss
"""
    assert lines(program) == ["self.history.append(outputs.loss)"]
    assert lines(program.replace("append(outputs.loss)", "append(outputs.loss.item())")) == []


def test_the_state_that_is_carried_is_blamed_and_not_the_loss():
    program = """
rnn = nn.LSTM(4, 8)
head = nn.Linear(8, 1)

def train(opt, xs, ys):
    hidden = None
    for x, y in zip(xs, ys):
        out, hidden = rnn(x, hidden)
        loss = F.mse_loss(head(out), y)
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()
"""
    assert lines(program) == ["out, hidden = rnn(x, hidden)"]
    cut = "        hidden = tuple(h.detach() for h in hidden)\n        opt.zero_grad()"
    program = program.replace("retain_graph=True", "")
    assert lines(program.replace("        opt.zero_grad()", cut)) == []


def test_retain_graph_is_not_called_needless_where_an_unknown_state_goes_round():
    program = """
def train(rnn, head, opt, xs, ys, h):
    for x, y in zip(xs, ys):
        out, h = rnn(x, h)
        loss = F.mse_loss(head(out), y)
        loss.backward(retain_graph=True)
        opt.step()
"""
    assert lines(program) == []


@pytest.mark.parametrize("counted", ["count", "acc", "num_tokens", "n", "n_correct", "bsz"])
def test_what_a_model_counts_beside_its_loss_is_no_graph(counted):
    body = f"""
    for x, y in loader:
        loss, {counted} = model(x, y)
        loss.backward()
        total += {counted}
    """
    assert lines(OUTPUTS + body) == []
    assert lines(OUTPUTS + body.replace(f"+= {counted}", "+= loss")) == ["total += loss"]


@pytest.mark.parametrize(
    ("added", "found"),
    [
        ("out.num_tokens", []),
        ("out['acc']", []),
        ("out.loss", ["total += out.loss"]),
        ("out['nll']", ["total += out['nll']"]),
        ("out[0]", ["total += out[0]"]),
    ],
)
def test_what_an_output_counts_is_told_by_its_slot(added, found):
    body = f"""
    for x, y in loader:
        out = model(x, y)
        out.loss.backward()
        total += {added}
    """
    assert lines(OUTPUTS + body) == found


def test_a_count_that_backward_is_called_on_is_no_count():
    body = """
    for x, y in loader:
        other, size = model(x, y)
        size.backward()
        total += size
    """
    assert lines(OUTPUTS + body) == ["total += size"]
