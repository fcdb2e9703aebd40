"""The pages of `leakcheck explain TOPIC` name only what there is."""

from __future__ import annotations

import gc
import json
import re
import signal
from collections.abc import Iterator
from importlib import import_module
from typing import get_args

import click
import pytest

from leakcheck import errors
from leakcheck.cli import COMMANDS
from leakcheck.cli.explain import topics
from leakcheck.model import Ended
from leakcheck.runtime.clock import ticks
from leakcheck.runtime.readings.watching import Watch

STATUSES = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
SIGNALS = {128 + signal.SIGINT, 128 + signal.SIGTERM}
LISTED = """\
leakcheck explain RULE   what a rule finds, why that leaks, what to do
leakcheck explain TOPIC  a topic of the manual; `leakcheck rules` lists the rules

  exit-statuses  what each command's exit status says
  harm           what a program under leakcheck run can see of being watched
"""


@pytest.fixture
def explain(leakcheck):
    return lambda *args: leakcheck("explain", *args)


def page(topic: str) -> str:
    return topics()[topic].read_text()


def rows(text: str, header: str) -> Iterator[list[str]]:
    """Yield the rows of the table whose first column is called `header`."""
    table = text[re.search(rf"^\| {header} .*\n\|[-|]+\n", text, re.MULTILINE).end() :]
    for line in table.splitlines():
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def options_of(name: str) -> set[str]:
    command: click.Command = import_module(f"leakcheck.cli.{name}").command
    return {option for parameter in command.params for option in parameter.opts}


def test_the_topics_are_listed_without_an_argument_and_in_the_help(explain):
    assert explain() == (0, LISTED, "")
    assert LISTED.partition("\n\n")[2].strip() in re.sub("\n  ", "\n", explain("--help")[1])


@pytest.mark.parametrize("topic", topics())
def test_a_topic_is_explained_as_it_is_written(explain, topic):
    assert explain(topic) == (0, page(topic), "")
    assert page(topic).startswith(f"# {topic}: ")
    answer = json.loads(explain(topic, "--output-format", "json")[1])
    assert answer == {"topic": topic, "topics": [*topics()], "page": page(topic)}


@pytest.mark.parametrize("topic", topics())
def test_a_topic_names_only_options_that_there_are(topic):
    known = set().union(*map(options_of, COMMANDS))

    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", page(topic))) <= known


def test_every_command_has_its_row_of_statuses_with_its_own_options():
    named = [row[0].strip("`").split() for row in rows(page("exit-statuses"), "command")]

    assert {command for command, *_ in named} == set(COMMANDS)
    for command, *options in named:
        assert set(options) <= options_of(command)


def test_only_statuses_that_there_are_are_named():
    text = page("exit-statuses")
    columns = re.search(r"^\| command .*", text, re.MULTILINE).group()

    assert {int(number) for number in re.findall(r"\d+", columns)} == {0, 1, 2}
    assert {int(number) for number in re.findall(r"\b\d+\b", text)} == STATUSES | SIGNALS


def test_every_end_of_a_run_is_told_with_its_code():
    told = [row[0].strip("`") for row in rows(page("exit-statuses"), "`run.ended`")]

    assert told == list(get_args(Ended))


def test_the_names_that_a_program_can_see_are_those_that_we_use():
    names = re.findall(r"__leakcheck_\w+__", page("harm"))

    assert names == [ticks.SWITCHES, ticks.TICK]


def test_one_function_listens_to_the_collector():
    before = len(gc.callbacks)
    watch = Watch()
    watch.boundary(1)
    more = len(gc.callbacks) - before
    watch.close()

    assert more == 1
    assert ["`gc.callbacks`", "One function more"] in [
        [what, how[:17]] for what, how in rows(page("harm"), "what")
    ]
