"""Who runs once, and who is called: what releases are judged by."""

import ast
from textwrap import dedent

import pytest

from leakcheck.static.facts.extract import extract
from leakcheck.static.facts.link import Linked
from leakcheck.static.facts.resources import acquired, callee, figure_position
from leakcheck.static.facts.runs import runs_once


def linked(source):
    return Linked("a.py", extract(ast.parse(dedent(source))), None)


def call_of(file, name):
    return next(call for call in file.facts.calls if call.method == name)


def once(rest, decorator=""):
    return linked(f"{decorator}\ndef train(model):\n    model.train()\n    start()\n{rest}")


@pytest.mark.parametrize(
    "file",
    [
        once("train(1)"),
        once("def main():\n    train(1)"),
        once("def search():\n    train(1)\nsearch()"),
        once("fire.Fire(train)"),
        once("torch.multiprocessing.spawn(train, args=(1,))"),
        once("", "@hydra.main()"),
        once("", "@click.command()"),
    ],
)
def test_what_the_program_itself_begins_runs_once(file):
    assert runs_once(file, call_of(file, "start").function)


@pytest.mark.parametrize(
    "file",
    [
        once(""),
        once("def main():\n    for _ in range(3):\n        train(1)"),
        once("def search():\n    train(1)"),
        once("def search():\n    train(1)\nfor _ in range(3):\n    search()"),
        once("model.train()"),
        once("register(train)"),
    ],
)
def test_what_others_call_may_run_again(file):
    assert not runs_once(file, call_of(file, "start").function)


@pytest.mark.parametrize(("path", "runs"), [("pkg/__main__.py", True), ("pkg/work.py", False)])
def test_what_nobody_calls_by_name_in_a_program_runs_once(path, runs):
    file = Linked(path, once("").facts, None)

    assert runs_once(file, call_of(file, "start").function) is runs


def test_a_function_is_found_by_its_name_and_a_method_through_self():
    file = linked(
        """
        class Base:
            def draw(self): ...
        class Callback(Base):
            def end(self):
                self.draw()
                self.model.draw()
                plot()
        def plot(): ...
        """
    )
    own, others, plain = (call for call in file.facts.calls)

    assert file.facts.functions[callee(file, own)[1]].owner == "Base"
    assert callee(file, others) is None
    assert file.facts.functions[callee(file, plain)[1]].name == "plot"


@pytest.mark.parametrize(
    ("body", "position"),
    [
        ("fig = plt.figure()\n  return fig", 0),
        ("fig, ax = plt.subplots()\n  return ax, fig", 1),
        ("fig, ax = plt.subplots()\n  return ax", None),
        ("fig = plt.figure(num=1)\n  return fig", None),
        ("fig = plt.figure()\n  plt.close(fig)\n  return fig", None),
    ],
)
def test_a_function_hands_out_the_figure_that_it_makes_and_leaves_open(body, position):
    facts = linked(f"import matplotlib.pyplot as plt\ndef f():\n  {body}\nf()\n").facts
    assert figure_position(facts, 0, facts.calls[-1]) == position


@pytest.mark.parametrize(
    ("call", "position"),
    [("f()", 0), ("f(None)", 0), ("f(mine)", None), ("f(fig=mine)", None), ("f(title=name)", 0)],
)
def test_a_function_makes_no_figure_when_it_is_given_one(call, position):
    body = "if fig is None:\n    fig = plt.figure()\n  return fig"
    source = f"import matplotlib.pyplot as plt\ndef f(fig=None, title=''):\n  {body}\n{call}\n"
    facts = linked(source).facts
    assert figure_position(facts, 0, facts.calls[-1]) == position


def opened(body, decorator=""):
    file = linked(
        f"import gzip\n{decorator}\ndef make(path):\n  {body}\n"
        "def use(path):\n  made = make(path)\n  made.read()\n"
    )
    return acquired(file, call_of(file, "make"), ("open", "gzip.open"))


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("return open(path)", "open"),
        ("return gzip.open(path)", "gzip.open"),
        ("file = open(path)\n  file.seek(8)\n  return file", "open"),
    ],
)
def test_a_call_gives_what_the_function_that_it_calls_opens_and_returns(body, name):
    assert opened(body) == name


@pytest.mark.parametrize(
    "body",
    [
        "return path",
        "return open(path).read()",
        "file = open(path)\n  files[path] = file\n  return file",
        "global file\n  file = open(path)\n  return file",
        "file = open(path)\n  register(file)\n  return file",
        "shared.file = open(path)\n  return shared.file",
        "yield open(path)",
    ],
)
def test_what_is_kept_elsewhere_or_not_returned_is_not_given(body):
    assert opened(body) == ""


def test_what_a_decorator_may_cache_is_not_given():
    assert opened("return open(path)", "@functools.cache") == ""
