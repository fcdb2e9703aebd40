"""Edits applied to source text, and the proof that they did what they promise.

A fix is kept only if the text it leaves parses, its finding is gone and no other has come; a file
that cannot be fixed that way stays as it was.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from leakcheck.model import Edit, Finding, Fix

# One fix can make room for the next (two on one line); more rounds than this means they undo
# each other.
MOST_ROUNDS = 50

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")

Check = Callable[[str], "tuple[Finding, ...] | None"]


@dataclass(frozen=True, slots=True)
class Fixed:
    """The text after fixing, the findings that fixing removed, and those that are left."""

    text: str
    fixed: tuple[Finding, ...]
    left: tuple[Finding, ...]


def split_lines(text: str) -> list[str]:
    r"""Split at \n, \r\n and \r alone and keep them: form feeds and the like end no Python line."""
    return [line for line in _LINE.findall(text) if line]


def newline_of(text: str) -> str:
    r"""Name the line end the text uses first; \n when it has none."""
    match = re.search(r"\r\n|\r|\n", text)
    return match.group() if match else "\n"


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    r"""Replace every edit's span, last first, so that the earlier ones keep their places.

    A `\n` in the new text is written as the file writes its line ends. Raises ValueError for edits
    that overlap or lie outside the text; an edit given twice counts once.
    """
    lines = [*split_lines(text), ""]
    starts = list(accumulate(map(len, lines), initial=0))
    newline = newline_of(text)
    bound = len(text)
    for edit in sorted(set(edits), reverse=True):
        start = _offset(lines, starts, edit.line, edit.column)
        end = _offset(lines, starts, edit.end_line, edit.end_column)
        if not 0 <= start <= end <= bound:
            raise ValueError(f"edit {edit} overlaps another or lies outside the text")
        text = text[:start] + edit.text.replace("\n", newline) + text[end:]
        bound = start
    return text


def fix_text(
    text: str,
    check: Check,
    *,
    unsafe: bool = False,
    wanted: Callable[[Finding], bool] | None = None,
) -> Fixed:
    """Fix what can be fixed until nothing more can; fixing the result again changes nothing.

    `check` answers the findings of a text, or None when it no longer parses.
    """
    left = check(text)
    if left is None:
        return Fixed(text, (), ())
    fixed: list[Finding] = []
    for _ in range(MOST_ROUNDS):
        todo = [f for f in left if applicable(f.fix, unsafe=unsafe) and (not wanted or wanted(f))]
        step = _fix_most(text, left, _compatible(todo), check)
        if step is None:
            break
        text, fixed, left = step.text, [*fixed, *step.fixed], step.left
    return Fixed(text, tuple(fixed), left)


def applicable(fix: Fix | None, *, unsafe: bool) -> bool:
    """Say whether `--fix` (with `--unsafe-fixes`) would apply this fix."""
    return bool(fix and fix.edits and (fix.safety == "safe" or (unsafe and fix.safety == "unsafe")))


def unified_diff(before: str, after: str, path: str) -> str:
    """Show the change as a patch that `patch -p0` takes."""
    pieces = []
    for line in difflib.unified_diff(split_lines(before), split_lines(after), path, path):
        ended = line.endswith(("\n", "\r"))
        pieces.append(line if ended else f"{line}\n\\ No newline at end of file\n")
    return "".join(pieces)


def _fix_most(
    text: str, before: tuple[Finding, ...], batch: Sequence[Finding], check: Check
) -> Fixed | None:
    """Apply as many of the batch as can be proved, halving it where it cannot."""
    whole = _fix_batch(text, before, batch, check)
    if whole is not None or len(batch) < 2:
        return whole
    half = len(batch) // 2
    first = _fix_most(text, before, batch[:half], check)
    return first or _fix_most(text, before, batch[half:], check)


def _fix_batch(
    text: str, before: tuple[Finding, ...], batch: Sequence[Finding], check: Check
) -> Fixed | None:
    """Apply the batch's fixes; None unless exactly its findings are gone afterwards."""
    if not batch:
        return None
    try:
        changed = apply_edits(text, [e for f in batch if f.fix for e in f.fix.edits])
    except ValueError:
        return None
    after = check(changed) if changed != text else None
    if after is None:
        return None
    expected = Counter(f.rule for f in before) - Counter(f.rule for f in batch)
    if Counter(f.rule for f in after) - expected:
        return None
    return Fixed(changed, tuple(batch), after)


def _compatible(findings: Sequence[Finding]) -> list[Finding]:
    """Take findings in order as long as their edits touch none taken before."""
    taken: list[Edit] = []
    chosen = []
    for finding in findings:
        edits = finding.fix.edits if finding.fix else ()
        if all(_apart(edit, other) for edit in edits for other in taken):
            taken.extend(edits)
            taken.sort()
            chosen.append(finding)
    return chosen


def _apart(edit: Edit, other: Edit) -> bool:
    if edit == other:
        return True
    first, second = sorted((edit, other))
    return (first.end_line, first.end_column) < (second.line, second.column)


def _offset(lines: Sequence[str], starts: Sequence[int], line: int, column: int) -> int:
    if not 1 <= line <= len(lines):
        return -1
    width = len(lines[line - 1].rstrip("\r\n"))
    return starts[line - 1] + column - 1 if 1 <= column <= width + 1 else -1
