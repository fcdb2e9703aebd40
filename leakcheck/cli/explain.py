"""`leakcheck explain`: the page of a rule or a topic; of a rule on request the proof."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import getdoc, getsourcefile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

import leakcheck
from leakcheck.cli.choice import Choice, complete_rule
from leakcheck.cli.output import COLORS, emit, wants_color
from leakcheck.cli.rules import known_rules, rule_as_json
from leakcheck.errors import EXIT_CLEAN, EXIT_FOUND, UsageError
from leakcheck.units import format_bytes, format_count

if TYPE_CHECKING:
    from leakcheck.static.rule import Rule

MANUAL = Path(leakcheck.__file__).with_name("manual")
LISTED = """\
leakcheck explain RULE   what a rule finds, why that leaks, what to do
leakcheck explain TOPIC  a topic of the manual; `leakcheck rules` lists the rules

{topics}"""
_TABLE, _DOUBTS = "{table}", "{doubts}"  # in a page: what decides is printed from the table itself
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ .*$", re.MULTILINE)
_CODE = re.compile(r"`[^`\n]+`")
PROOF_SECONDS = 300  # a program that has no verdict by then proves nothing
EXPECTED = {"leaky.py": "growing", "fixed.py": "steady"}


@dataclass(frozen=True, slots=True)
class Proof:
    """What running one of a rule's programs under the sentinel showed."""

    program: str
    verdict: str
    rates: str = ""

    @property
    def holds(self) -> bool:
        """Say whether the program behaved as the rule claims."""
        return self.verdict == EXPECTED[self.program]


def topics() -> dict[str, Path]:
    """Lead from each topic of the manual to its page."""
    return {page.stem: page for page in sorted(MANUAL.glob("*.md"))}


def _topic_lines() -> str:
    """List the topics, each with what its page says; a page begins "# topic: what it says"."""
    titles = [page.read_text(encoding="utf-8").splitlines()[0] for page in topics().values()]
    pairs = [title.removeprefix("# ").split(": ", 1) for title in titles]
    width = max(len(name) for name, _ in pairs)
    return "\n".join(f"  {name:<{width}}  {what.replace('`', '')}" for name, what in pairs)


def _complete(context: object, option: object, incomplete: str) -> list[str]:
    named = [topic for topic in topics() if topic.startswith(incomplete)]
    return [*complete_rule(context, option, incomplete), *named]


@click.command(epilog=f"\b\nTopics:\n{_topic_lines()}")
@click.argument("name", metavar="[RULE|TOPIC]", required=False, shell_complete=_complete)
@click.option("--prove", is_flag=True, help="Run the rule's leaky and its fixed program.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text")
@click.option("--config", multiple=True, help="A settings file, or a setting in TOML.")
@click.option("--isolated", is_flag=True, help="Read no configuration file.")
@click.option("--color", type=click.Choice(COLORS), default="auto", help="Colour the output.")
def command(
    name: str | None,
    prove: bool,
    output_format: str,
    config: tuple[str, ...],
    isolated: bool,
    color: str,
) -> None:
    """Explain RULE (its name or its code): what it finds, why that leaks, what to do. Or TOPIC.

    With --prove, exits with 0 when leaky.py grows and fixed.py is steady, else with 1.
    """
    if name is None or name in topics():
        if prove:
            raise UsageError(
                f"--prove runs the programs of a rule{f', not {name}' if name else ''}"
            )
        _explain_topic(name, output_format, color)
        raise SystemExit(EXIT_CLEAN)
    found = _find(name, known_rules(Choice(config=config, isolated=isolated)))
    proofs = [_prove(program) for program in _programs(found)] if prove else []
    if output_format == "json":
        shown = {"verdicts": {proof.program: proof.verdict for proof in proofs}} if prove else {}
        emit(json.dumps(rule_as_json(found) | {"page": page_of(found)} | shown, indent=2))
    else:
        if not prove:
            _show(page_of(found), wants_color(color))
        for proof in proofs:
            emit(f"{proof.program}: {proof.verdict}{proof.rates}")
    raise SystemExit(EXIT_CLEAN if all(proof.holds for proof in proofs) else EXIT_FOUND)


def _explain_topic(name: str | None, output_format: str, color: str) -> None:
    page = LISTED.format(topics=_topic_lines())
    if name is not None:
        page = topic_page(name)
    if output_format == "json":
        emit(json.dumps({"topic": name, "topics": [*topics()], "page": page}, indent=2))
    elif name is None:
        emit(page)
    else:
        _show(page, wants_color(color))


def topic_page(name: str) -> str:
    """Return the page of a topic, with the table in it if it has one."""
    page = topics()[name].read_text(encoding="utf-8")
    if _TABLE in page:
        page = page.replace(_TABLE, _decisions()).replace(_DOUBTS, _doubts())
    return page


def _decisions() -> str:
    """Return the table that decides what is to come of growth, a row each as the code has it."""
    from leakcheck.report.decisions import table
    from leakcheck.runtime.outlook import TABLE, Case

    outlooks = ((row.code, row.outlook(Case())) for row in TABLE)
    rows = ((code, each.kind, each.wait_steps, each.then) for code, each in outlooks)
    return table(rows)


def _doubts() -> str:
    """Return the table that says for how many more steps growth is looked at."""
    from leakcheck.report.decisions import table_of_doubts
    from leakcheck.runtime.doubts import DOUBTS

    return table_of_doubts((row.code, row.steps) for row in DOUBTS)


def page_of(rule: type[Rule]) -> str:
    """Return the rule's README.md, or what can be said of a rule without one."""
    page = folder_of(rule) / "README.md"
    if page.is_file():
        return page.read_text(encoding="utf-8")
    return f"# {rule.slug} ({rule.code})\n\n{getdoc(rule) or rule.summary}\n"


def folder_of(rule: type[Rule]) -> Path:
    """Return the folder of the rule's detector."""
    return Path(getsourcefile(rule) or "").parent


def _find(name: str, rules: tuple[type[Rule], ...]) -> type[Rule]:
    from leakcheck.static.select import slugs_named

    try:
        slugs = set(slugs_named([name], rules))
    except UsageError:
        near = get_close_matches(name.lower(), topics(), 1)
        if not near:
            raise
        raise UsageError(
            f'no rule or topic is called "{name}"; did you mean "{near[0]}"?'
        ) from None
    matching = [rule for rule in rules if rule.slug in slugs]
    if len(matching) > 1:
        known = ", ".join(rule.slug for rule in matching)
        raise UsageError(f'"{name}" stands for several rules; name one of {known}')
    return matching[0]


def _show(page: str, color: bool) -> None:
    emit(_styled(page.rstrip()) if color else page.rstrip(), color=color)


def _styled(page: str) -> str:
    """Make headings bold and code coloured; the words stay as they are."""
    parts = _FENCE.split(page)
    parts[::2] = (_CODE.sub(_coloured, _HEADING.sub(_bold, text)) for text in parts[::2])
    parts[1::2] = (click.style(code, fg="cyan") for code in parts[1::2])
    return "".join(parts)


def _bold(found: re.Match[str]) -> str:
    return click.style(found[0], bold=True)


def _coloured(found: re.Match[str]) -> str:
    return click.style(found[0], fg="cyan")


def _programs(rule: type[Rule]) -> list[Path]:
    programs = [folder_of(rule) / name for name in EXPECTED]
    missing = [program.name for program in programs if not program.is_file()]
    if missing:
        raise UsageError(f"{rule.slug} has no {missing[0]} to run, so nothing can be proved")
    return programs


def _prove(program: Path) -> Proof:
    """Run a program under the sentinel in another process, which keeps its output to itself."""
    with TemporaryDirectory() as folder:
        written = Path(folder) / "report.json"
        command = [sys.executable, "-m", "leakcheck", "run", "--json", str(written), str(program)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PROOF_SECONDS)
        except subprocess.TimeoutExpired:
            return Proof(program.name, "unclear", f", no verdict within {PROOF_SECONDS} s")
        if not written.is_file() or not written.stat().st_size:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise UsageError(f"{program.name} could not be run: {last}")
        report = json.loads(written.read_text(encoding="utf-8"))
    rates = "; ".join(filter(None, map(_rate, report["suspects"])))
    reason = f": {report['reason']}" if report["verdict"] == "unclear" else ""
    return Proof(program.name, report["verdict"], f", {rates}" if rates else reason)


def _rate(suspect: Mapping[str, Any]) -> str:
    objects, size = suspect["objects_per_step"], suspect["bytes_per_step"]
    noun = "object" if objects == 1 else "objects"
    parts = [f"{format_count(objects)} {noun}"] if objects is not None else []
    parts += [format_bytes(size)] if size is not None else []
    return f"{suspect['kind']}: {' and '.join(parts)} a step" if parts else ""
