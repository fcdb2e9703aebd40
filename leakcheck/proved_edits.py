"""Edits that a run has proved, as `leakcheck fix --json` records them, offered with findings.

A record counts for one text of a file, wherever that lies: once the text has changed, the proof is
of another program.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import msgspec

from leakcheck.errors import UsageError
from leakcheck.experiments import text_digest
from leakcheck.model import Edit, Finding, Fix

PROVED_TITLE = "{title} (proved by a run)"


class ProvedEdit(msgspec.Struct, frozen=True):
    """An edit of one file: of which text, what it does, and the lines of the leaks that it ends."""

    sha256: str
    title: str
    lines: tuple[int, ...]
    edits: tuple[Edit, ...]


class _Record(msgspec.Struct, frozen=True):
    proved: tuple[ProvedEdit, ...] = ()


def read_proofs(paths: Iterable[Path]) -> tuple[ProvedEdit, ...]:
    """Read what `fix --json` wrote; UsageError for a file that it did not write."""
    return tuple(edit for path in paths for edit in _read(path).proved)


def _read(path: Path) -> _Record:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Record)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path}: not written by `leakcheck fix --json`: {error}") from None


def offered(
    findings: Iterable[Finding], text: str, proofs: tuple[ProvedEdit, ...]
) -> tuple[Finding, ...]:
    """Give the findings of a text, where a proved edit ends their leak, that edit as the fix."""
    digest = text_digest(text) if proofs else ""
    known = [each for each in proofs if each.sha256 == digest]
    return tuple(_with_edit(each, known) for each in findings)


def _with_edit(finding: Finding, known: list[ProvedEdit]) -> Finding:
    at = finding.location
    for proof in known:
        if any(at.line <= line <= max(at.line, at.end_line) for line in proof.lines):
            fix = Fix(PROVED_TITLE.format(title=proof.title), proof.edits, "safe")
            return replace(finding, fix=fix, proved=True)
    return finding
