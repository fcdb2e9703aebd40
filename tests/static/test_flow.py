"""What carries a graph, and what does not: the analysis asked through one small training loop."""

import textwrap

import pytest

from leakcheck.static import registry
from leakcheck.static.engine import check_source
from leakcheck.static.project import Project

START = """
import torch
import torch as th
import torch.nn.functional as F
from torch import nn

def train(model, loader, criterion, optimizer, flag):
    total = 0.0
    kept = []
    table = {}
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()
"""


def graph_rules():
    return [rule for rule in registry.builtin_rules() if rule.code.startswith("LK1")]


def flagged(source: str) -> list[str]:
    """The text of each flagged line."""
    return [f.context.strip() for f in check_source(textwrap.dedent(source), "a.py", graph_rules())]


def in_loop(statements: str) -> list[str]:
    return flagged(START + textwrap.indent(textwrap.dedent(statements), "        "))


def test_what_is_zipped_keeps_its_place():
    assert in_loop("for name, each in zip(['a'], [loss]):\n    kept.append(name)") == []
    assert in_loop("for name, each in zip(['a'], [loss]):\n    kept.append(each)") == [
        "kept.append(each)"
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "total += loss",
        "total = total + loss",
        "total = loss + total",
        "total = torch.add(total, loss)",
        "total -= -loss / 2",
        "total += loss.clone()",
        "total += loss.cpu().float()",
        "total += loss * x.size(0)",
        "total += 0.5 * loss if flag else 0.0",
        "total += loss.view(-1)[0]",
        "total += F.relu(loss).mean()",
        "kept.append(loss)",
        "kept.append((step, loss))",
        "kept.append({'loss': loss})",
        "kept += [loss]",
        "kept.extend([loss])",
        "table[step] = loss",
        "kept.append([part for part in (loss, step)])",
    ],
)
def test_a_value_that_keeps_its_graph_is_found(statement):
    assert in_loop(statement) == [statement]


@pytest.mark.parametrize(
    "statement",
    [
        "total += loss.item()",
        "total += loss.detach()",
        "total += loss.data",
        "total += float(loss)",
        "total += loss.detach().cpu() * 2",
        "total += loss.tolist()",
        "total += (loss > 1)",
        "total += loss.shape[0]",
        "total += y.eq(model(x).argmax(1)).sum()",
        "kept.append(loss.item())",
        "kept.append(f'{loss:.3f}')",
        "kept.append(str(loss))",
        "table['loss'] = loss",
        "total = loss",
    ],
)
def test_a_value_without_graph_is_not(statement):
    assert in_loop(statement) == []


def test_rebinding_decides_not_the_name():
    assert in_loop("loss = loss.item()\ntotal += loss") == []
    assert in_loop("value = loss\ntotal += value") == ["total += value"]
    assert in_loop("value, n = loss, 1\ntotal += value") == ["total += value"]
    assert in_loop("total += (value := loss)") == ["total += (value := loss)"]


def test_no_grad_is_a_property_of_the_value_not_of_the_line():
    assert in_loop("with torch.no_grad():\n    value = loss * 2\ntotal += value") == []
    assert in_loop("with th.inference_mode():\n    total += loss * 2") == []
    assert in_loop("with open('f') as f, torch.no_grad():\n    v = model(x)\nkept.append(v)") == []
    outside = "value = loss * 2\nwith torch.no_grad():\n    kept.append(value)"
    assert in_loop(outside) == ["kept.append(value)"]


def test_the_switch_decided_by_a_flag_leaves_what_backward_shows():
    source = """
    import torch
    def train(model, loader, criterion, phase):
        total = other = 0.0
        for x, y in loader:
            with torch.set_grad_enabled(phase == "train"):
                out = model(x)
                loss = criterion(out, y)
                if phase == "train":
                    loss.backward()
            total += loss
            other += model.score(x)
        return total
    """
    assert flagged(source) == ["total += loss"]


def test_types_that_are_tested_are_known():
    assert in_loop("if torch.is_tensor(loss):\n    loss = loss.item()\ntotal += loss") == []
    assert in_loop("if not isinstance(loss, float):\n    loss = loss.item()\ntotal += loss") == []


def test_a_total_that_is_reset_or_detached_each_turn_is_clean():
    assert in_loop("total = 0\nfor part in loss:\n    total += part\ntotal.sum()") == []
    assert in_loop("total += loss\ntotal = total.detach()") == []


def test_what_a_function_gives_back_is_followed():
    source = """
    import torch
    def step(model, x):
        loss = model(x).mean()
        loss.backward()
        return loss, loss.item()

    def train(model, loader):
        total = number = 0.0
        for x in loader:
            loss, value = step(model, x)
            total += loss
            number += value
        return total, number
    """
    assert flagged(source) == ["total += loss"]


METER = """
class Meter:
    def __init__(self):
        self.sum = 0.0
    def add(self, value):
        self.sum += value
"""
CALLER = """
import torch
from {module} import Meter

def train(model, loader):
    meter = Meter()
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        meter.add({argument})
"""


@pytest.mark.parametrize("module", ["meters", ".meters", "pkg.meters"])
def test_a_meter_in_another_module_is_seen_through_the_import(module):
    sources = {
        "pkg/meters.py": METER,
        "pkg/train.py": CALLER.format(module=module, argument="loss"),
    }
    project = Project(sources)

    findings = check_source(sources["pkg/train.py"], "pkg/train.py", graph_rules(), project)

    assert [(f.rule, f.context.strip()) for f in findings] == [
        ("undetached-meter", "meter.add(loss)")
    ]


def test_a_meter_given_a_number_is_clean():
    text = CALLER.format(module="meters", argument="loss.item()")
    project = Project({"meters.py": METER, "train.py": text})

    assert check_source(text, "train.py", graph_rules(), project) == ()


def test_an_unknown_meter_is_not_accused():
    text = CALLER.format(module="elsewhere", argument="loss")

    assert check_source(text, "train.py", graph_rules(), Project({"train.py": text})) == ()


def test_backward_after_the_inner_loop_is_how_losses_are_built():
    source = """
    import torch
    def train(model, batches, optimizer):
        for batch in batches:
            total = 0
            for x in batch:
                total = total + model(x).mean()
            total.backward()
            optimizer.step()
    """
    assert flagged(source) == []


def test_detached_only_where_backward_ran_is_not_accused():
    source = """
    import torch
    def score(model, parts, with_backward):
        losses = []
        for x in parts:
            loss = model(x).mean()
            if with_backward:
                loss.backward()
                loss = loss.detach()
            losses.append(loss)
        return sum(losses)
    """
    assert flagged(source) == []


def test_endless_and_broken_loops_are_walked():
    source = """
    import torch
    def train(model, stream):
        total = 0
        while True:
            x = next(stream)
            if x is None:
                break
            loss = model(x).mean()
            loss.backward()
            if loss.item() > 3:
                continue
            total += loss
        print(total)
    """
    assert flagged(source) == ["total += loss"]


@pytest.mark.parametrize(
    ("method", "lines"),
    [("to_empty", 0), ("_apply", 0), ("reset_parameters", 0), ("remember", 1)],
)
def test_a_method_that_moves_a_modules_parameters_carries_nothing(method, lines):
    source = """
    import torch
    def replaced(old: torch.nn.Parameter, new: torch.Tensor):
        if old.device.type == "meta":
            return torch.nn.Parameter(new, requires_grad=new.requires_grad)
        return old
    class Quantized(lib.nn.Linear):
        def forward(self, x):
            return x @ self.weight + self.bias
        def METHOD(self, device=None):
            self.bias = replaced(self.bias, torch.empty_like(self.bias, device=device))
    """
    assert len(flagged(source.replace("METHOD", method))) == lines


BASE_METER = """
    class Meter:
        def __init__(self):
            self.total = 0

        def add(self, value):
            self.total = self.total + value
"""
KIN = """
    from base import Meter

    class Losses(Meter):
        pass

    def train(model, loader, optimizer):
        losses = Losses()
        for x, y in loader:
            loss = (model(x) - y).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.add(loss)
"""


def test_what_an_inherited_method_keeps_is_told_at_the_call():
    sources = {"base.py": textwrap.dedent(BASE_METER), "train.py": textwrap.dedent(KIN)}

    findings = check_source(sources["train.py"], "train.py", graph_rules(), Project(sources))

    assert [(f.rule, f.context.strip()) for f in findings] == [
        ("undetached-meter", "losses.add(loss)")
    ]


@pytest.mark.parametrize(
    ("given", "lines"),
    [("predict(model, held_out)", []), ("model(held_out)", ["best[better] = errors[better]"])],
)
def test_what_a_loss_gets_from_one_caller_is_not_what_it_gets_from_another(given, lines):
    source = """
    import torch
    def squared(output, target):
        return (output - target).square().mean()
    def metric(output, target, name):
        return squared(output, target).sqrt() if name == "rms" else (output != target).float()
    @torch.no_grad()
    def predict(model, data):
        return model(data)
    def fit(data, held_out):
        model = torch.nn.Linear(3, 3)
        optimizer = torch.optim.SGD(model.parameters(), 1.0)
        best = torch.full((3,), 1.0)
        for epoch in range(100):
            for x, y in data:
                squared(model(x), y).backward()
                optimizer.step()
            errors = metric(GIVEN, torch.zeros(3), "rms")
            better = errors < best
            best[better] = errors[better]
        return best
    """
    assert flagged(source.replace("GIVEN", given)) == lines
