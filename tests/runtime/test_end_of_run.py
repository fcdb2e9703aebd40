"""What the end of a run tells: what was taken out by then, what is garbage, whose loop it was."""

from __future__ import annotations

import textwrap

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

ONE_EPOCH = """
import torch
from torch import nn


class Results:
    def __init__(self):
        self.of = {{}}


class Trainer:
    def __init__(self):
        self.results, self.kept = Results(), []

    def fit(self, epochs, steps):
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for epoch in range(epochs):
            for step in range(steps):
                loss = model(torch.randn(4, 8)).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                self.results.of.setdefault("fit", {{}})[step] = torch.zeros(512) + step
            self.end_epoch()

    def end_epoch(self):
        for name in list(self.results.of):
            {ends}


trainer = Trainer()
trainer.fit({epochs})
"""
TRAINER = """
import torch


class Debugger:
    def __init__(self):
        self.events = []


class Trainer:
    def __init__(self):
        self.debugger = Debugger()

    def fit(self, model, steps):
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for step in range(steps):
            loss = model(torch.randn(4, 8)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            {event}
"""
IN_CYCLES = """
import torch
from torch import nn

model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


class Result:
    pass


for step in range(300):
    loss = model(torch.randn(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 14 == 0:
        result = Result()
        result.own, result.value = result, torch.zeros(3)
"""
KEPT_BY_A_LOCAL = """
import torch
from torch import nn


def train(steps):
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    kept = []
    for step in range(steps):
        loss = model(torch.randn(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append({kept})
        {cut}


train({steps})
"""
IN_AN_EVALUATION = """
import torch
from torch import nn


def train(epochs):
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    predictions = []
    for epoch in range(epochs):
        for step in range(20):
            loss = model(torch.randn(4, 8)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            for batch in range(20):
                predictions.append(model(torch.randn(4, 8)))


train({epochs})
"""
A_CACHE = """
import torch
from torch import nn

cache = {{}}
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(360):
    key = {key}
    if key not in cache:
        cache[key] = torch.randn(4, 8)
    loss = model(cache[key]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.fixture
def report_of(watched, tmp_path):
    def report_of(text: str) -> dict:
        program = tmp_path / "train.py"
        program.write_text(textwrap.dedent(text))
        return watched(program)

    return report_of


@pytest.mark.parametrize(
    "ends",
    ["del self.results.of[name]", "self.results = Results()", "self.results.of = None"],
)
def test_what_the_only_epoch_gathered_is_no_leak_once_it_is_taken_out(report_of, ends):
    report = report_of(ONE_EPOCH.format(ends=ends, epochs="1, 600"))

    assert report["verdict"] == "steady", report["stderr"]
    told = [each["said"] for each in report["notices"]]
    assert told == [
        "at step 600: host.heap, tensors had grown, and grew no more as what holds it was emptied"
    ]


def test_what_is_taken_out_and_kept_elsewhere_is_not_acquitted(report_of):
    ends = "self.kept.append(self.results.of.pop(name))"
    report = report_of(ONE_EPOCH.format(ends=ends, epochs="1, 600"))

    assert (report["verdict"], report["reason"]["code"]) == ("unclear", "may-be-taken")


def test_what_each_epoch_keeps_elsewhere_is_a_leak(report_of):
    ends = "self.kept.append(self.results.of.pop(name))"
    report = report_of(ONE_EPOCH.format(ends=ends, epochs="6, 200"))

    assert report["verdict"] == "growing", report["stderr"]


@pytest.fixture
def report_of_library(report_of, tmp_path):
    """Run a program with a library of one trainer."""

    def report_of_library(event: str, program: str) -> dict:
        folder = tmp_path / "lib" / "python3" / "site-packages"
        folder.mkdir(parents=True)
        (folder / "trainers.py").write_text(TRAINER.format(event=event))
        found = f"import sys\nsys.path.append({str(folder)!r})\nimport trainers\n"
        return report_of(found + "from torch import nn\n" + program)

    return report_of_library


CALLERS = {
    "global": "trainer = trainers.Trainer()\ntrainer.fit(nn.Linear(8, 1), 600)",
    "local": """\
def main():
    trainer = trainers.Trainer()
    trainer.fit(nn.Linear(8, 1), 600)

main()""",
}


@pytest.mark.parametrize("caller", CALLERS)
def test_what_a_librarys_loop_keeps_is_a_leak_though_a_line_made_its_trainer(
    report_of_library, caller
):
    report = report_of_library("self.debugger.events.append(torch.zeros(512))", CALLERS[caller])

    assert report["verdict"] == "growing", report["stderr"]
    holders = [suspect["holder"] for suspect in report["suspects"]]
    root = {"global": "global `trainer`", "local": "local `trainer` in main()"}[caller]
    assert holders == [f"attribute `Debugger.events`, from {root}"]


def test_what_a_librarys_loop_cuts_back_is_none(report_of_library):
    event = "self.debugger.events = [*self.debugger.events, torch.zeros(512)][-8:]"
    report = report_of_library(event, CALLERS["global"])

    assert report["verdict"] == "steady", report["stderr"]


def test_garbage_that_waits_for_a_collection_is_no_growth(report_of):
    assert report_of(IN_CYCLES)["verdict"] == "steady"


TWO_LISTS = """
import torch
from torch import nn

model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
rows, names = [], []
for epoch in range(1):
    for step in range(600):
        loss = model(torch.randn(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rows.append([(step, str(step), place) for place in range({rows})])
        names.append([str(step + 1000)])
    if epoch % 2:
        rows.clear()
"""


def test_what_is_tolerated_alone_is_no_leak_beside_what_may_be_emptied(report_of):
    """The names gain 200 bytes a step: only the rows decide, and they may yet be cleared."""
    report = report_of(TWO_LISTS.format(rows=16))

    assert (report["verdict"], report["suspects"]) == ("unclear", []), report["stderr"]


def test_what_is_not_tolerated_is_a_leak_beside_what_may_be_emptied(report_of):
    names = "names.append([str(step + 1000)])"
    more = "names.append([str(step + n) for n in range(40)])"
    report = report_of(TWO_LISTS.format(rows=16).replace(names, more))

    assert report["verdict"] == "growing", report["stderr"]
    assert [suspect["holder"] for suspect in report["suspects"]] == ["global `names`"]


@pytest.mark.parametrize(
    ("kept", "steps", "code"),
    [
        ("loss.detach()", 40, "rose"),
        ("loss.detach()", 90, "unattributed"),
        ("torch.zeros(20_000)", 90, "unattributed"),
        ("{'step': step, 'text': 'x' * 3000 + str(step)}", 90, "unattributed"),
    ],
)
def test_what_was_let_go_only_as_the_function_returned_is_not_steady(report_of, kept, steps, code):
    report = report_of(KEPT_BY_A_LOCAL.format(kept=kept, steps=steps, cut="pass"))

    assert (report["verdict"], report["reason"]["code"]) == ("unclear", code), report["stderr"]


@pytest.mark.parametrize("steps", [40, 90])
def test_what_the_function_kept_no_more_than_a_few_of_is(report_of, steps):
    text = KEPT_BY_A_LOCAL.format(kept="loss.detach()", steps=steps, cut="del kept[:-5]")

    assert report_of(text)["verdict"] == "steady"


@pytest.mark.parametrize("epochs", [18, 20])
def test_what_each_evaluation_adds_is_not_full_between_the_last_two(report_of, epochs):
    report = report_of(IN_AN_EVALUATION.format(epochs=epochs))

    assert report["verdict"] == "growing", report["stderr"]
    (suspect,) = report["suspects"]
    assert suspect["holder"] == "local `predictions` in train()"


@pytest.mark.parametrize(
    ("key", "verdict"),
    [("step % 300", "unclear"), ("step", "growing")],
    ids=["full", "never asked"],
)
def test_a_cache_that_gained_nothing_for_a_while_may_be_full(report_of, key, verdict):
    report = report_of(A_CACHE.format(key=key))

    assert report["verdict"] == verdict, report["stderr"]
