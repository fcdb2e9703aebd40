"""Where evidence of a graph comes from, and where it must not go: callers, slots, frameworks."""

import pytest

from leakcheck.static import registry
from leakcheck.static.engine import check_source

IMPORTS = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def lines(source: str) -> list[str]:
    """The text of each line flagged by the rules on graphs."""
    rules = [rule for rule in registry.builtin_rules() if rule.code.startswith("LK1")]
    return [f.context.strip() for f in check_source(IMPORTS + source, "a.py", rules)]


SCALED = """
def train(net, loader, optimizer, loss_of, every=4):
    run = 0.0
    for x, y in loader:
        loss = loss_of(net(x), y) / every
        loss.backward()
        optimizer.step()
        run += ADDED * every
"""


def test_backward_on_a_quotient_shows_nothing_of_the_divisor():
    assert lines(SCALED.replace("ADDED", "loss.item()")) == []
    assert lines(SCALED.replace("ADDED", "loss")) == ["run += loss * every"]


VALUES = """
def collect(env, critic, opt, steps):
    rewards = []
    for _ in range(steps):
        state, reward = env.step()
        error = (critic(state) - reward) ** 2
        opt.zero_grad()
        error.backward()
        opt.step()
        rewards.append(KEPT)
"""


def test_backward_on_a_difference_shows_nothing_of_either_side():
    assert lines(VALUES.replace("KEPT", "reward")) == []
    assert lines(VALUES.replace("KEPT", "error")) == ["rewards.append(error)"]


METHOD = """
class Runner:
    def __init__(self, net, measure, optimizer):
        self.net, self.measure, self.optimizer = net, measure, optimizer
        self.track = []

    def compute(self, batch):
        distance = self.measure(self.net(batch[0]), batch[1])
        self.track.append(KEPT)
        return distance

    def train(self, loader):
        for batch in loader:
            distance = self.compute(batch)
            self.optimizer.zero_grad()
            distance.backward()
            self.optimizer.step()
"""


def test_a_caller_that_calls_backward_shows_what_a_method_keeps():
    assert lines(METHOD.replace("KEPT", "distance")) == ["self.track.append(distance)"]
    assert lines(METHOD.replace("KEPT", "distance.item()")) == []


def test_what_the_caller_reads_back_before_backward_is_no_leak():
    used = METHOD.replace("KEPT", "distance").replace(
        "            distance.backward()",
        "            (distance + sum(self.track)).backward()\n            self.track = []",
    )
    assert lines(used) == []


OUTPUT = """
def train(task, optimizer, bar):
    outputs = []
    for i, batch in bar:
        optimizer.zero_grad()
        output = task.training_step(batch, i)
        output["loss"].backward()
        optimizer.step()
        BEFORE
        outputs.append(output)
    return task.summary(outputs)
"""


def test_an_output_with_a_loss_in_it_keeps_the_graph_of_the_loss():
    assert lines(OUTPUT.replace("BEFORE", "pass")) == ["outputs.append(output)"]
    assert lines(OUTPUT.replace("BEFORE", 'output["loss"] = output["loss"].detach()')) == []


TRAINER = """
from transformers import Trainer

class Logging(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        outputs = model(**inputs)
        loss = self.weigh(outputs, inputs)
        self.running = getattr(self, "running", 0) + KEPT
        return (loss, outputs) if return_outputs else loss
"""


def test_a_trainer_calls_backward_on_what_compute_loss_returns():
    assert lines(TRAINER.replace("KEPT", "loss")) == [
        'self.running = getattr(self, "running", 0) + loss'
    ]
    assert lines(TRAINER.replace("KEPT", "loss.detach()")) == []


STEP = """
import pytorch_lightning as pl

class Task(pl.LightningModule):
    def __init__(self, net, criterion):
        super().__init__()
        self.net, self.criterion = net, criterion

    def training_step(self, batch, index):
        guess = self.net(batch[0])
        loss = F.mse_loss(guess, batch[1])
        part = F.mse_loss(guess[:, 0], batch[1][:, 0])
        return {"loss": loss, "part": KEPT}

    def COLLECTING(self, outputs):
        self.log("part", torch.stack([output["part"] for output in outputs]).mean())
"""


def test_what_a_lightning_step_returns_beside_its_loss_is_kept_until_the_epoch_ends():
    keeping = STEP.replace("COLLECTING", "training_epoch_end")
    assert lines(keeping.replace("KEPT", "part")) == ['return {"loss": loss, "part": part}']
    assert lines(keeping.replace("KEPT", "part.detach()")) == []
    assert lines(STEP.replace("COLLECTING", "unused").replace("KEPT", "part")) == []


NORMED = """
class Normed(nn.Module):
    def __init__(self, inner, size):
        super().__init__()
        self.inner = inner
        self.register_buffer("mean", torch.zeros(size))

    def forward(self, x):
        h = self.inner(x)
        self.mean = 0.9 * self.mean + 0.1 * h.mean(0)CUT
        return h - self.mean

    def inverse(self, y):
        return y + self.mean
"""


@pytest.mark.parametrize("cut", ["", ".detach()"])
def test_a_buffer_is_fed_by_layers_that_the_module_was_given(cut):
    leaking = ["self.mean = 0.9 * self.mean + 0.1 * h.mean(0)"]
    assert lines(NORMED.replace("CUT", cut)) == ([] if cut else leaking)


AVERAGED = """
class Average:
    def __init__(self, model):
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

    def update(self, model):
        for name, p in model.named_parameters():
            self.shadow[name] = 0.99 * self.shadow[name] + 0.01 * KEPT
"""


def test_an_average_of_parameters_keeps_the_graph_of_each_update():
    found = ["self.shadow[name] = 0.99 * self.shadow[name] + 0.01 * p"]
    assert lines(AVERAGED.replace("KEPT", "p")) == found
    assert lines(AVERAGED.replace("KEPT", "p.detach()")) == []


LANGUAGE = """
class Model(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.lstm = nn.LSTM(32, 64)
        self.out = nn.Linear(64, words)

    def forward(self, x, state=None):
        y, state = self.lstm(x, state)
        return self.out(y), INNER

def evaluate(model: Model, loader, score):
    model.eval()
    state, total = None, 0.0
    for x, y in loader:
        guess, state = model(x, state)
        OUTER
        total += score(guess, y).item()
    return total
"""


def test_state_that_goes_through_a_module_and_comes_back_is_carried():
    kept = LANGUAGE.replace("INNER", "state").replace("OUTER", "pass")
    assert lines(kept) == ["guess, state = model(x, state)"]
    inside = LANGUAGE.replace("INNER", "tuple(s.detach() for s in state)").replace("OUTER", "pass")
    assert lines(inside) == []
    cut = LANGUAGE.replace("INNER", "state").replace(
        "OUTER", "state = tuple(s.detach() for s in state)"
    )
    assert lines(cut) == []


RETAINING = """
def train(rnn, batches, optimizer, words):
    state = None
    for x, y in batches:
        guess, state = rnn(x, state)
        loss = F.cross_entropy(guess.reshape(-1, words), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward(RETAIN)
        optimizer.step()
        AFTER
"""


def test_a_loop_that_must_retain_its_graph_carries_state_through_a_function_unknown():
    kept = RETAINING.replace("RETAIN", "retain_graph=True").replace("AFTER", "pass")
    assert lines(kept) == ["guess, state = rnn(x, state)"]
    cut = RETAINING.replace("RETAIN", "").replace("AFTER", "state = state.detach()")
    assert lines(cut) == []


GUESSES = """
def train(model, loader, criterion, optimizer):
    guesses = []
    for x, y in loader:
        guess, extra = model(x)
        loss = criterion(guess, y) + 0.4 * criterion(extra, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        guesses.append((KEPT, y))
    return guesses
"""


def test_backward_on_a_criterion_shows_that_the_guess_has_a_graph():
    assert lines(GUESSES.replace("KEPT", "guess")) == ["guesses.append((guess, y))"]
    assert lines(GUESSES.replace("KEPT", "guess.argmax(-1)")) == []
    assert lines(GUESSES.replace("KEPT", "x")) == []


TRACKER = """
class Tracker:
    def __init__(self):
        self.rows = {"loss": []}

    def add(self, name, value):
        self.rows[name].append(value)

    def add_all(self, **values):
        for name, value in values.items():
            self.add(name, value)

def train(model, loader, optimizer):
    tracker = Tracker()
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        tracker.add_all(loss=KEPT)
"""


def test_a_meter_is_fed_through_another_of_its_methods():
    assert lines(TRACKER.replace("KEPT", "loss")) == ["self.rows[name].append(value)"]
    assert lines(TRACKER.replace("KEPT", "loss.item()")) == []


def test_a_place_that_only_some_turns_set_carries_nothing():
    source = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x)

def evaluate(net: Net, loader):
    net.eval()
    for step, x in enumerate(loader):
        if step % 10 == 0:
            guess = net(x)
        print(guess.mean().item())
"""
    assert lines(source) == []
