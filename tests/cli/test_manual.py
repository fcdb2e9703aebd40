"""The pages of `leakcheck explain TOPIC` name only what there is."""

from __future__ import annotations

import gc
import json
import re
import signal
from collections.abc import Iterator
from importlib import import_module
from importlib.resources import files
from typing import get_args

import click
import msgspec
import pytest

from leakcheck import errors
from leakcheck.cli import COMMANDS
from leakcheck.cli.explain import topic_page, topics
from leakcheck.config import Config
from leakcheck.memory.profiles import profiles
from leakcheck.model import Ended, Kind, NoticeKind, Verdict
from leakcheck.report.charts import is_beside
from leakcheck.report.decisions import CONDITIONS
from leakcheck.report.decisions import DOUBTS as DOUBTS_IN_WORDS
from leakcheck.runtime import accounts
from leakcheck.runtime.clock import ticks
from leakcheck.runtime.doubts import DOUBTS
from leakcheck.runtime.outlook import TABLE
from leakcheck.runtime.readings.watching import Watch
from leakcheck.static.checker import all_rules

STATUSES = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
SIGNALS = {128 + signal.SIGINT, 128 + signal.SIGTERM}
LISTED = """\
leakcheck explain RULE   what a rule finds, why that leaks, what to do
leakcheck explain TOPIC  a topic of the manual; `leakcheck rules` lists the rules

  devices        what is read of a GPU, and what is known without one
  exit-statuses  what each command's exit status says
  fix            how an edit that ends a leak is found and proved
  harm           what a program under leakcheck run can see of being watched
  json           the report for programs
  kinds          what can leak, by which counter it is seen, and what to look for
  rules          how rules are chosen, accepted, fixed and added
  verdicts       growing, steady, unclear, and how long each takes
"""


@pytest.fixture
def explain(leakcheck):
    return lambda *args: leakcheck("explain", *args)


def page(topic: str) -> str:
    return topic_page(topic)


def rows(text: str, header: str) -> Iterator[list[str]]:
    """Yield the rows of the table whose first column is called `header`."""
    table = text[re.search(rf"^\| {header} .*\n\|[-|]+\n", text, re.MULTILINE).end() :]
    for line in table.splitlines():
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def named(text: str, header: str) -> list[str]:
    """Return what the first column names, without its backticks."""
    return [row[0].strip("`") for row in rows(text, header)]


def options_of(name: str) -> set[str]:
    command: click.Command = import_module(f"leakcheck.cli.{name}").command
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return {option for each in (command, *below) for param in each.params for option in param.opts}


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
    known = set().union({"--leakcheck-fix"}, *map(options_of, COMMANDS))  # one is pytest's

    assert set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", page(topic))) <= known


def test_every_command_has_its_row_of_statuses_with_its_own_options():
    lines = [each.split() for each in named(page("exit-statuses"), "command")]

    assert {command for command, *_ in lines} == set(COMMANDS)
    for command, *options in lines:
        assert set(options) <= options_of(command)


def test_only_statuses_that_there_are_are_named():
    text = page("exit-statuses")
    columns = re.search(r"^\| command .*", text, re.MULTILINE).group()

    assert {int(number) for number in re.findall(r"\d+", columns)} == {0, 1, 2}
    assert {int(number) for number in re.findall(r"\b\d+\b", text)} == STATUSES | SIGNALS


def test_every_verdict_kind_and_notice_is_told():
    assert named(page("verdicts"), "verdict") == list(get_args(Verdict))
    assert named(page("kinds"), "kind") == list(get_args(Kind))
    assert named(page("kinds"), "notice") == list(get_args(NoticeKind))


def test_a_kind_is_judged_by_the_counters_that_lead_to_it():
    told = {
        counter: kind.strip("`")
        for kind, counters, _ in rows(page("kinds"), "kind")
        for counter in re.findall(r"`([^`]+)`", counters)
    }

    assert told == {counter: accounts._kind_of(counter) for counter in told}
    assert set(accounts.KINDS) <= set(told)
    assert not any(map(is_beside, told))


def test_every_family_of_rules_and_every_setting_is_told():
    settings = [field.encode_name for field in msgspec.structs.fields(Config)]

    assert named(page("rules"), "family") == sorted({rule.code[:3] for rule in all_rules()})
    assert named(page("rules"), "setting") == settings


def test_every_member_of_the_report_and_of_a_leak_is_told():
    members = json.loads(files("leakcheck.report").joinpath("schema.json").read_text())["$defs"]

    assert named(page("json"), "member") == list(members["report"]["properties"])
    assert named(page("json"), "of `suspects`") == list(members["suspect"]["properties"])


def test_every_device_is_told_with_what_is_known_of_it():
    known = [
        [f"`{each.key}`", each.name, each.memory_source,
         "measured" if each.context_measured else "not measured"]
        for each in profiles().values()
    ]  # fmt: skip

    assert list(rows(page("devices"), "device")) == known


def test_every_command_and_topic_that_a_page_names_is_there():
    for topic in topics():
        commands = re.findall(r"(?:`|    )leakcheck\s+([a-z]+)\b", page(topic))
        pages = re.findall(r"leakcheck explain\s+([a-z][a-z-]*)", page(topic))

        assert set(commands) <= set(COMMANDS), topic
        assert set(pages) <= set(topics()), topic


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


def test_what_decides_is_printed_row_by_row_from_the_table_itself(explain):
    shown = explain("verdicts")[1]

    decided = [row[0] for row in rows(shown, "what is known of it")]
    assert decided == [CONDITIONS[row.code] for row in TABLE]
    longer = [row[0] for row in rows(shown, "what is known of all that grows")]
    assert longer == [DOUBTS_IN_WORDS[row.code] for row in DOUBTS]
    assert "{table}" not in shown
    assert "{doubts}" not in shown
