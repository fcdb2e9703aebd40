"""Comments that accept a finding, and the report of those that accept nothing.

`# leakcheck: ignore[slug] reason` at the end of a line covers that logical line; on a line of its
own it covers the whole statement below; `# leakcheck: file-ignore[slug]` covers the file. Slugs and
codes both name a rule; there is no form that covers every rule. `# noqa: LK101` covers its line.
"""

from __future__ import annotations

import ast
import re
import tokenize
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from leakcheck.model import Edit, Finding, Fix, Location
from leakcheck.static.fix import apply_edits, split_lines
from leakcheck.static.rule import Hit, Rule

if TYPE_CHECKING:
    from leakcheck.static.module import Module

_WHOLE_FILE = (0, 1 << 60)
_IGNORE = re.compile(
    r"#\s*leakcheck:\s*(?P<file>file-)?ignore\b\s*(?:\[(?P<names>[^\]#]*)\])?(?P<reason>[^#]*)"
)
_MISSPELT = re.compile(
    r"#\s*leakcheck:\s*(?!(?:file-)?ignore\b)[\w-]+\s*(?:\[[^\]#]*\]|\([^)#]*\)|=[^#]*)"
)
_NOQA = re.compile(
    r"#\s*noqa\s*:\s*(?P<names>[a-z]+[0-9]+(?:\s*[,\s]\s*[a-z]+[0-9]+)*)", re.IGNORECASE
)


class UnusedSuppression(Rule):
    """A comment that accepts a finding where there is none.

    It was needed once, names a rule that does not exist, or stands on the wrong line; left in
    place it would hide the next leak there. The fix removes it, or the names in it that are idle.
    Comments for rules that are not selected are left alone.
    """

    slug = "unused-suppression"
    code = "LK001"
    summary = "a suppression comment accepts nothing"
    help = "remove the comment"
    words = ("leakcheck:",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Find nothing: only what the other rules found tells, see `suppress`."""
        yield from ()


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment: the rules it names, the lines it covers, and its own place."""

    names: tuple[str, ...]
    first_line: int
    last_line: int
    line: int
    column: int
    end_column: int
    own_line: bool = False
    noqa: bool = False

    def covers(self, finding: Finding) -> bool:
        """Say whether the finding begins on the lines this comment speaks for."""
        return self.first_line <= finding.location.line <= self.last_line


@dataclass(frozen=True, slots=True)
class _LogicalLine:
    first: int
    last: int
    end_column: int


@dataclass(frozen=True, slots=True)
class _Comment:
    text: str
    line: int
    column: int
    own_line: bool


def suppress(
    path: str,
    text: str,
    findings: Sequence[Finding],
    slugs: Mapping[str, str],
    active: Collection[str],
) -> tuple[Finding, ...]:
    """Drop the findings that a comment accepts, and add one for each comment that is of no use.

    `slugs` leads from every name a rule may be called by to its slug; comments for rules that are
    not `active` here are left alone, since nothing tells whether they are needed.
    """
    suppressions = read_suppressions(text)
    if not suppressions:
        return tuple(findings)
    used: dict[Suppression, set[str]] = {each: set() for each in suppressions}
    left = []
    for finding in findings:
        accepting = [each for each in suppressions if each.covers(finding)]
        accepting = [e for e in accepting if finding.rule in {slugs.get(n) for n in e.names}]
        for each in accepting:
            used[each].add(finding.rule)
        if not accepting:
            left.append(finding)
    if UnusedSuppression.slug in active:
        lines = split_lines(text)
        for each in suppressions:
            left.extend(_judge(path, lines, each, used[each], slugs, active))
    return tuple(sorted(left, key=lambda finding: (finding.location, finding.rule)))


def read_suppressions(text: str) -> tuple[Suppression, ...]:
    """Find every suppression comment; a text without any is not even tokenized."""
    if "leakcheck:" not in text and not re.search("noqa", text, re.IGNORECASE):
        return ()
    logical, comments = _scan(text)
    found = []
    below: dict[int, int] | None = None
    for comment in comments:
        for match in (*_IGNORE.finditer(comment.text), *_NOQA.finditer(comment.text)):
            noqa = match.re is _NOQA
            if comment.own_line and not noqa and not match["file"]:
                below = _statements(text) if below is None else below
                first, last = _below(comment.line, logical, below)
            elif noqa or not match["file"]:
                first, last = _around(comment.line, logical)
            else:
                first, last = _WHOLE_FILE
            found.append(_suppression(comment, match, first, last))
        for match in _MISSPELT.finditer(comment.text):
            start, end = comment.column + match.start(), comment.column + match.end()
            found.append(Suppression((), 0, 0, comment.line, start, end, comment.own_line))
    return tuple(found)


def add_ignores(text: str, findings: Sequence[Finding], reason: str) -> str:
    """Accept findings by a comment at the end of their logical lines, with the reason given."""
    return apply_edits(text, ignore_edits(text, findings, reason))


def ignore_edits(text: str, findings: Sequence[Finding], reason: str) -> tuple[Edit, ...]:
    """Return the edits that accept findings by comments."""
    logical, _ = _scan(text)
    existing = read_suppressions(text)
    wanted: dict[int, list[str]] = {}
    for finding in findings:
        _, last = _around(finding.location.line, logical)
        wanted.setdefault(last, []).append(finding.rule)
    edits = []
    for last, rules in wanted.items():
        names = sorted(set(rules))
        here = [e for e in existing if e.line == last and not (e.noqa or e.own_line) and e.names]
        if here and here[0].first_line:
            old = here[0]
            names = [*old.names, *(name for name in names if name not in old.names)]
            start, end = _brackets(split_lines(text)[last - 1], old)
            edits.append(Edit(last, start, last, end, f"[{', '.join(names)}]"))
        else:
            column = next((line.end_column for line in logical if line.last == last), 1)
            note = f"  # leakcheck: ignore[{', '.join(names)}] {reason}".rstrip()
            edits.append(Edit(last, column, last, column, note))
    return tuple(edits)


def _judge(
    path: str,
    lines: Sequence[str],
    each: Suppression,
    used: set[str],
    slugs: Mapping[str, str],
    active: Collection[str],
) -> Iterator[Finding]:
    if each.noqa or UnusedSuppression.slug in {slugs.get(name, name) for name in each.names}:
        return
    unknown = [name for name in each.names if name not in slugs]
    idle = [n for n in each.names if n in slugs and slugs[n] in active and slugs[n] not in used]
    if each.names and not unknown and not idle:
        return
    if not each.names:
        message = "this comment names no rule, so it accepts nothing"
        help = "write `# leakcheck: ignore[slug] reason`, or file-ignore[slug] for the whole file"
    elif unknown:
        message = f"no rule is called `{unknown[0]}`"
        help = _advice(unknown[0], slugs)
    else:
        message = f"nothing here to ignore: {', '.join(f'`{name}`' for name in idle)} finds no leak"
        help = UnusedSuppression.help
    fix = _removal(lines[each.line - 1], each, idle) if idle and not unknown else None
    location = Location(path, each.line, each.column, each.line, each.end_column)
    context = lines[each.line - 1].rstrip("\r\n")
    yield Finding(
        UnusedSuppression.slug,
        UnusedSuppression.code,
        location,
        message,
        help,
        "warning",
        "high",
        fix,
        context,
    )


def _advice(unknown: str, slugs: Mapping[str, str]) -> str:
    if any(name.startswith(unknown) for name in slugs):
        return "name each rule: a comment does not accept a whole group"
    near = get_close_matches(unknown, slugs, 1)
    return f"did you mean `{near[0]}`?" if near else "`leakcheck rules` lists them all"


def _removal(line: str, each: Suppression, idle: Sequence[str]) -> Fix:
    """Take the idle names out, or the comment with them when no other is left."""
    names = [name for name in each.names if name not in idle]
    if names:
        start, end = _brackets(line, each)
        edit = Edit(each.line, start, each.line, end, f"[{', '.join(names)}]")
        return Fix("remove the names that are of no use", (edit,), "safe")
    before, after = line[: each.column - 1], line[each.end_column - 1 :]
    if not before.strip() and not after.strip():
        return Fix("remove the comment", (Edit(each.line, 1, each.line + 1, 1, ""),), "safe")
    start = each.column if after.strip() else len(before.rstrip()) + 1
    end = each.end_column + (len(after) - len(after.lstrip(" \t")) if after.strip() else 0)
    edit = Edit(each.line, start, each.line, end, "")
    return Fix("remove the comment", (edit,), "safe")


def _brackets(line: str, each: Suppression) -> tuple[int, int]:
    return line.index("[", each.column - 1) + 1, line.index("]", each.column - 1) + 2


def _suppression(comment: _Comment, match: re.Match[str], first: int, last: int) -> Suppression:
    noqa = match.re is _NOQA
    names = tuple(re.split(r"[,\s]+", match["names"].strip())) if match["names"] else ()
    names = tuple(name.upper() if noqa else name for name in names if name)
    start = comment.column + match.start()
    end = start + len(match.group().rstrip())
    return Suppression(
        names, first, last, comment.line, start, end, own_line=comment.own_line, noqa=noqa
    )


def _scan(text: str) -> tuple[list[_LogicalLine], list[_Comment]]:
    """Return the logical lines and the comments of a text that parses."""
    logical: list[_LogicalLine] = []
    comments: list[_Comment] = []
    first, end = 0, (0, 0)
    lines = iter([line.rstrip("\r\n") + "\n" for line in split_lines(text)])
    try:
        for token in tokenize.generate_tokens(lambda: next(lines, "")):
            if token.type == tokenize.COMMENT:
                line, column = token.start
                comments.append(_Comment(token.string, line, column + 1, own_line=not first))
                end = token.end
            elif token.type == tokenize.NEWLINE and first:
                logical.append(_LogicalLine(first, end[0], end[1] + 1))
                first = 0
            elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
                first, end = first or token.start[0], token.end
    except (tokenize.TokenError, SyntaxError):
        pass  # what was read before still counts; the parser reports the rest
    return logical, comments


def _around(line: int, logical: Sequence[_LogicalLine]) -> tuple[int, int]:
    return next(
        ((at.first, at.last) for at in logical if at.first <= line <= at.last), (line, line)
    )


def _below(
    line: int, logical: Sequence[_LogicalLine], statements: Mapping[int, int]
) -> tuple[int, int]:
    following = next((each for each in logical if each.first > line), None)
    if following is None:
        return line, line
    return following.first, max(following.last, statements.get(following.first, 0))


def _statements(text: str) -> dict[int, int]:
    """Lead from the line a statement (or its first decorator) begins on to its last line."""
    ends: dict[int, int] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse("\n".join(line.rstrip("\r\n") for line in split_lines(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ends  # the comment then covers one logical line
    for node in ast.walk(tree):
        if isinstance(node, (ast.stmt, ast.ExceptHandler)):
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
            ends[first] = max(ends.get(first, 0), node.end_lineno or first)
    return ends
