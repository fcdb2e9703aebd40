"""What another file says acquits a place, and its twin, which differs in a line, is still told."""

from __future__ import annotations

from textwrap import dedent
from typing import NamedTuple

import pytest

from leakcheck.static import registry
from leakcheck.static.engine import check_source
from leakcheck.static.project import Project


class Case(NamedTuple):
    code: str
    source: str
    told: str  # the line that is flagged in the leaking one
    clean: str  # what another file says
    leaking: str


CASES = {
    "a file that no worker inherits": Case(
        "LK504",
        """
        import h5py
        from torch.utils.data import Dataset

        class Samples(Dataset):
            def __init__(self, path):
                self.file = h5py.File(path, "r")

            def __getitem__(self, index):
                return self.file["x"][index]
        """,
        'self.file = h5py.File(path, "r")',
        "DataLoader(Samples(path), batch_size=8, num_workers=0)",
        "DataLoader(Samples(path), batch_size=8, num_workers=4)",
    ),
    "an update that its user takes off": Case(
        "LK310",
        """
        import torch

        def adapt(model, grads, lr):
            for p, g in zip(model.parameters(), grads):
                p.update = -lr * g
            return update(model)
        """,
        "p.update = -lr * g",
        "p.update = None",
        "print(p.update)",
    ),
    "state that is reset with all parts of the model": Case(
        "LK106",
        """
        import torch
        from torch import nn

        class Neuron(nn.Module):
            def __init__(self):
                super().__init__()
                self.v = 0.0

            def forward(self, x):
                self.v = 0.9 * self.v + x.mean(0)
                return x

            def reset(self):
                self.v = 0.0
        """,
        "self.v = 0.9 * self.v + x.mean(0)",
        """
        def reset_net(net):
            for part in net.modules():
                if hasattr(part, "reset"):
                    part.reset()
        """,
        """
        def reset_environment(environment):
            environment.reset()
        """,
    ),
    "a switch that nobody turns on": Case(
        "LK203",
        """
        import torch

        class Attention(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.save_maps = False

            def forward(self, x):
                maps = torch.softmax(x, -1)
                if self.save_maps:
                    self.maps = maps
                    maps.register_hook(self.save)
                return maps

            def save(self, gradient):
                self.gradient = gradient
        """,
        "maps.register_hook(self.save)",
        "print(attention.save_maps)",
        "attention.save_maps = True",
    ),
    "a switch that is set by its name": Case(
        "LK203",
        """
        import torch

        class Attention(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.save_maps = False

            def forward(self, x):
                maps = torch.softmax(x, -1)
                if self.save_maps:
                    self.maps = maps
                    maps.register_hook(lambda gradient: self.save(gradient))
                return maps

            def save(self, gradient):
                self.gradient = gradient
        """,
        "maps.register_hook(lambda gradient: self.save(gradient))",
        "print('saves maps')",
        "setattr(attention, 'save_maps', True)",
    ),
    "a key of which every caller gives the same": Case(
        "LK315",
        """
        class Filters:
            def __init__(self):
                self.filter_cache = {}

            def designed(self, cutoff):
                cache_key = (cutoff, 5)
                if cache_key not in self.filter_cache:
                    self.filter_cache[cache_key] = [cutoff]
                return self.filter_cache[cache_key]
        """,
        "self.filter_cache[cache_key] = [cutoff]",
        "filters.designed(1000.0)",
        """
        filters.designed(1000.0)
        filters.designed(measured)
        """,
    ),
    "an object for each request": Case(
        "LK315",
        """
        class Planner:
            def __init__(self):
                self.plans = {}

            def plan(self, request_id, request):
                self.plans[request_id] = [request]
                return self.plans[request_id]
        """,
        "self.plans[request_id] = [request]",
        """
        from checked import Planner

        def serve(request):
            return Planner().plan(request.id, request)
        """,
        """
        from checked import Planner

        planner = Planner()

        def serve(request):
            return planner.plan(request.id, request)
        """,
    ),
    "a search for each batch": Case(
        "LK304",
        """
        import torch

        class Search:
            def advance(self, tokens):
                self.tokens = torch.cat([self.tokens, tokens], dim=1)
        """,
        "self.tokens = torch.cat([self.tokens, tokens], dim=1)",
        """
        from checked import Search

        class BeamSearch(Search):
            pass

        def make(row):
            return BeamSearch(row)

        def decode(batch):
            return [make(row) for row in batch]
        """,
        """
        from checked import Search

        class Decoder:
            def __init__(self):
                self.search = Search()
        """,
    ),
    "a method of what is set up": Case(
        "LK211",
        """
        import torch

        class Model(torch.nn.Module):
            def name_all(self):
                def name(module):
                    module.name = self.name
                    for child in module.children():
                        name(child)

                name(self)
        """,
        "def name(module):",
        """
        class Trainer:
            def setup(self, model):
                model.name_all()
        """,
        """
        class Trainer:
            def train(self, model):
                model.name_all()
        """,
    ),
    "a base that keeps a model": Case(
        "LK212",
        """
        import torch
        from other import Base

        class Guesser(Base):
            def guess(self, batch):
                self.method = self.by_length
                return self.method(batch)

            def by_length(self, batch):
                return torch.numel(batch)
        """,
        "self.method = self.by_length",
        """
        class Base:
            def __init__(self, name):
                self.name = name
        """,
        """
        class Base:
            def __init__(self, model):
                self.model = model
        """,
    ),
    "a figure of a script": Case(
        "LK601",
        """
        import matplotlib.pyplot as plt

        def plot(path):
            plt.figure()
            plt.savefig(path)
        """,
        "plt.figure()",
        """
        from checked import plot

        plot("all.png")
        """,
        """
        from checked import plot

        for number in range(9):
            plot(f"{number}.png")
        """,
    ),
}


def told(case: Case, other: str) -> list[str]:
    """The lines that the rule flags, in a project with another file."""
    files = {"checked.py": dedent(case.source), "other.py": dedent(other)}
    rules = [rule for rule in registry.builtin_rules() if rule.code == case.code]
    found = check_source(files["checked.py"], "checked.py", rules, Project(files))
    return [finding.context.strip() for finding in found]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_another_file_says_acquits_a_place(case):
    assert told(case, case.clean) == []


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_its_leaking_twin_is_told(case):
    assert told(case, case.leaking) == [case.told]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ("torch.onnx.export(model, x, path)", []),
        ("torch.testing.assert_close(y, x)", []),
        ("started = time.perf_counter()", []),
        ("print(y.mean().item())", ["y = model(x)"]),
    ],
)
def test_a_model_that_is_tried_out_on_made_up_numbers_sees_no_data(outcome, expected):
    source = f"""
import time
import torch

def tried(model, path):
    model.eval()
    x = torch.randn(1, 3, 32, 32)
    for turn in range(5):
        y = model(x)
    {outcome}
    return y.detach().numpy()
"""
    rules = [rule for rule in registry.builtin_rules() if rule.code == "LK406"]

    found = check_source(source, "tried.py", rules, Project({"tried.py": source}))

    assert [finding.context.strip() for finding in found] == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("loss.item()", []),
        ("(self.step, epoch_loss)", []),
        ("len(batch)", []),
        ("batch is not None", []),
        ("batch", ["self.history.append(batch)"]),
        ("self.model(batch)", ["self.history.append(self.model(batch))"]),
        ("(epoch_loss, batch)", ["self.history.append((epoch_loss, batch))"]),
    ],
)
def test_a_public_history_of_numbers_is_for_others_to_read(value, expected):
    source = f"""
class Trainer:
    def __init__(self, model):
        self.model = model
        self.history = []

    def train(self, batch, loss, epoch_loss):
        self.history.append({value})
"""
    rules = [rule for rule in registry.builtin_rules() if rule.code == "LK312"]

    found = check_source(source, "train.py", rules, Project({"train.py": source}))

    assert [finding.context.strip() for finding in found] == expected
