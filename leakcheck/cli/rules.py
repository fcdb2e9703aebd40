"""`leakcheck rules`: list the rules; `leakcheck rules new SLUG`: begin one."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leakcheck.cli.choice import Choice, locate, settings
from leakcheck.cli.output import COLORS, emit, wants_color

if TYPE_CHECKING:
    from leakcheck.static.rule import Rule

FAMILIES = {
    "0": "Comments",
    "1": "Autograd graphs",
    "2": "Hooks and reference cycles",
    "3": "Containers and caches",
    "4": "Device memory",
    "5": "Data loading",
    "6": "Other resources",
}


@click.group(invoke_without_command=True)
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text")
@click.option("--markdown", is_flag=True, help="Write the tables of rules/README.md.")
@click.option("--config", multiple=True, help="A settings file, or a setting in TOML.")
@click.option("--isolated", is_flag=True, help="Read no configuration file.")
@click.option("--color", type=click.Choice(COLORS), default="auto", help="Colour the output.")
@click.pass_context
def command(
    ctx: click.Context,
    output_format: str,
    markdown: bool,
    config: tuple[str, ...],
    isolated: bool,
    color: str,
) -> None:
    """List the rules; those that run by default are marked with `*`."""
    if ctx.invoked_subcommand is not None:
        return
    rules = known_rules(Choice(config=config, isolated=isolated or markdown))
    if markdown:
        emit(_markdown(rules))
    elif output_format == "json":
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


def _markdown(rules: tuple[type[Rule], ...]) -> str:
    lines: list[str] = []
    for family, members in groupby(rules, key=lambda rule: rule.code[2]):
        lines += ["", f"### LK{family}xx {FAMILIES.get(family, 'Others')}", ""]
        lines += ["| code | rule | default | finds |", "|---|---|---|---|"]
        lines += [_row(rule) for rule in members]
    return "\n".join(lines[1:])


def _row(rule: type[Rule]) -> str:
    from leakcheck.static.registry import builtin_rule_set

    page = builtin_rule_set() / rule.slug / "README.md"
    name = f"[{rule.slug}]({rule.slug}/README.md)" if page.is_file() else rule.slug
    summary = rule.summary.replace("|", "\\|")
    return f"| {rule.code} | {name} | {'yes' if rule.default else ''} | {summary} |"
