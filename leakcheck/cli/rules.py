"""`leakcheck rules`: list the rules; `rules new`: begin one; `rules index`: tabulate them."""

from __future__ import annotations

import json
from difflib import get_close_matches
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leakcheck.cli.choice import Choice, locate, settings
from leakcheck.cli.output import COLORS, emit, wants_color
from leakcheck.errors import UsageError
from leakcheck.writing import replace_file

if TYPE_CHECKING:
    from leakcheck.static.rule import Rule

BEGIN, END = "<!-- begin: leakcheck rules index -->", "<!-- end -->"
FAMILIES = {
    "LK0": "Comments",
    "LK1": "Autograd graphs",
    "LK2": "Hooks and reference cycles",
    "LK3": "Containers and caches",
    "LK4": "Device memory",
    "LK5": "Data loading",
    "LK6": "Other resources",
}


class RulesGroup(click.Group):
    """The sub-commands of `leakcheck rules`; a rule's name among them is a question about it."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the sub-command; for an unknown name, say which one or which rule is near."""
        name = args[0]
        if name not in self.commands and not name.startswith("-"):
            ctx.fail(f'no sub-command is called "{name}"; {self._hint(name)}')
        return super().resolve_command(ctx, args)

    def _hint(self, name: str) -> str:
        if near := get_close_matches(name, self.commands, 1):
            return f'did you mean "leakcheck rules {near[0]}"?'
        rules = known_rules(Choice(isolated=True))
        words = {word.lower(): word for rule in rules for word in (rule.slug, rule.code)}
        if near := get_close_matches(name.lower(), words, 1, cutoff=0.8):
            return f'did you mean "leakcheck explain {words[near[0]]}"?'
        return f"there are {', '.join(self.commands)}; `leakcheck explain RULE` explains a rule"


@click.group(cls=RulesGroup, invoke_without_command=True)
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text")
@click.option("--config", multiple=True, help="A settings file, or a setting in TOML.")
@click.option("--isolated", is_flag=True, help="Read no configuration file.")
@click.option("--color", type=click.Choice(COLORS), default="auto", help="Colour the output.")
@click.pass_context
def command(
    ctx: click.Context,
    output_format: str,
    config: tuple[str, ...],
    isolated: bool,
    color: str,
) -> None:
    """List the rules; those that run by default are marked with `*`."""
    if ctx.invoked_subcommand is not None:
        return
    rules = known_rules(Choice(config=config, isolated=isolated))
    if output_format == "json":
        emit(json.dumps([rule_as_json(rule) for rule in rules], indent=2, ensure_ascii=False))
    else:
        emit(_table(rules, wants_color(color)), color=wants_color(color))


@command.command()
@click.argument("slug")
@click.option("--to", type=click.Path(path_type=Path), default=Path("rules"), help="The rule set.")
@click.option("--code", default=None, help="The short name; default: the next free LK9xx.")
def new(slug: str, to: Path, code: str | None) -> None:
    """Begin a rule: a folder with a detector, a page and two programs that pass every claim."""
    from leakcheck.static.scaffold import scaffold

    folder = scaffold(slug, to, code)
    click.echo(f"{folder}: edit rule.py, README.md, leaky.py and fixed.py")


@command.command()
@click.option("--to", type=click.Path(path_type=Path), default=Path("rules"), help="The rule set.")
def index(to: Path) -> None:
    """Bring the tables in a rule set's README.md up to date."""
    file = to / "README.md"
    try:
        text = file.read_text(encoding="utf-8")
        if BEGIN not in text or END not in text:
            raise UsageError(f"{file}: has no lines {BEGIN} and {END}")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise UsageError(f"{file}: {(reason or '').lower()}") from None
    replace_file(file, with_index(text, to))


def with_index(text: str, rule_set: Path) -> str:
    """Return the text of a rule set's README.md with the present rules between its two marks."""
    from leakcheck.static.registry import builtin_rule_set, load_rules
    from leakcheck.static.suppress import UnusedSuppression

    rules: tuple[type[Rule], ...] = load_rules([rule_set])
    if rule_set.resolve() == builtin_rule_set():
        rules = (UnusedSuppression, *rules)
    before, rest = text.split(BEGIN, 1)
    return f"{before}{BEGIN}\n{_tables(rules, rule_set)}\n\n{END}{rest.split(END, 1)[1]}"


def known_rules(choice: Choice) -> tuple[type[Rule], ...]:
    """Load the built-in rules and those of the rule sets the settings name."""
    from leakcheck.static.checker import all_rules

    return all_rules(settings(locate(Path(), choice), choice).rule_sets)


def rule_as_json(rule: type[Rule]) -> dict[str, object]:
    """Return what there is to say about a rule, but for its page."""
    return {
        "rule": rule.slug,
        "code": rule.code,
        "summary": rule.summary,
        "help": rule.help,
        "default": rule.default,
        "severity": rule.severity,
    }


def _table(rules: tuple[type[Rule], ...], color: bool) -> str:
    width = max(len(rule.slug) for rule in rules)
    lines = []
    for rule in rules:
        slug = click.style(f"{rule.slug:<{width}}", bold=True) if color else f"{rule.slug:<{width}}"
        lines.append(f"{rule.code} {'*' if rule.default else ' '} {slug}  {rule.summary}")
    return "\n".join(lines)


def _tables(rules: tuple[type[Rule], ...], rule_set: Path) -> str:
    lines: list[str] = []
    for family, members in groupby(rules, key=lambda rule: rule.code[:-2]):
        lines += ["", f"## {family}xx {FAMILIES.get(family, 'Others')}", ""]
        lines += ["| code | rule | default | finds |", "|---|---|---|---|"]
        lines += [_row(rule, rule_set) for rule in members]
    return "\n".join(lines)


def _row(rule: type[Rule], rule_set: Path) -> str:
    page = rule_set / rule.slug / "README.md"
    name = f"[{rule.slug}]({rule.slug}/README.md)" if page.is_file() else rule.slug
    summary = rule.summary.replace("|", "\\|")
    return f"| {rule.code} | {name} | {'yes' if rule.default else ''} | {summary} |"
