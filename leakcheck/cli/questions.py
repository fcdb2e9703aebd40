"""What `leakcheck estimate` is asked, and which of its options count for which question.

An option that the answer does not depend on is refused: what it was given for would be missing.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Final

import click
from click.core import ParameterSource

from leakcheck.errors import UsageError

PROGRAM: Final = "a program"
CLOSED_FORMS: Final = ("--formula", "--zero1", "--zero2", "--zero3")
_RUN: Final = frozenset(
    ("--device", "--policy", "--steps", "--timeout", "--on-cpu", "--json", "--svg", "--html")
)
_SHARDS: Final = frozenset(("--params", "--gpus-per-node", "--nodes", "--buffer-factor", "--json"))
_TRANSFORMER: Final = frozenset(
    ("--params", "--batch-size", "--sequence-length", "--optimizer", "--element-bytes", "--json")
)
# question -> the options that change its answer; of two questions the upper one counts as asked
TAKES: Final[dict[str, frozenset[str]]] = {
    "--devices": frozenset(),
    "--formula": _TRANSFORMER,
    "--zero1": _SHARDS,
    "--zero2": _SHARDS,
    "--zero3": _SHARDS | {"--largest-layer-params"},
    "--largest-batch": _RUN,
    "--measured": _RUN | {"--batch-size"},
    PROGRAM: _RUN | {"--batch-size"},
}


def asked(context: click.Context, target: str | None) -> str:
    """Return the question of a command line. Raises UsageError when it is none, or two."""
    given = _given(context)
    question = next((name for name in TAKES if name in given), PROGRAM)
    _check_target(question, target)
    for option in given:
        if option != question and option not in TAKES[question]:
            raise UsageError(_no_effect(option, question))
    return question


def _given(context: click.Context) -> list[str]:
    """The options on the command line, as the help names them."""
    return [
        param.opts[0]
        for param in context.command.params
        if isinstance(param, click.Option)
        and param.name
        and context.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    ]


def _check_target(question: str, target: str | None) -> None:
    if question in CLOSED_FORMS and target is not None:
        raise UsageError(f"{target}: the closed forms take --params, not a program")
    if question == "--devices" and target is not None:
        raise UsageError(f"{target}: --devices lists what is known and takes no program")
    if question in (*CLOSED_FORMS, "--devices"):
        return
    if target is None:
        raise UsageError(
            "name a script or module:function, or --zero1/2/3 or --formula with --params"
        )
    if target.startswith("-"):
        raise UsageError(f"{target}: name a script or module:function before --")


def _no_effect(option: str, question: str) -> str:
    if option in TAKES:
        return f"{option} has no effect with {question}; ask for one of them"
    places = [name for name, options in TAKES.items() if option in options]
    return f"{option} has no effect with {question}; it goes with {_listed(places)}"


def _listed(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


class Command(click.Command):
    """A command whose options may stand on both sides of the program, whose own follow `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options; an unknown one is told how to reach the program."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise UsageError(self._unknown(error.option_name, given)) from None

    def _unknown(self, name: str, args: Sequence[str]) -> str:
        written = next((each for each in args if each.startswith(name)), name).partition("=")[0]
        known = [opt.strip("-") for param in self.params for opt in param.opts]
        near = difflib.get_close_matches(written.strip("-"), known, n=1)
        hint = f" Did you mean '--{near[0]}'?" if near else ""
        return (
            f"No such option '{written}'.{hint} Options of the program's own go after --: "
            f"leakcheck {self.name} TARGET -- {written}"
        )
