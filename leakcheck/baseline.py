"""Findings a project accepted when it began to use leakcheck, kept in a file in its repository.

An entry is a fingerprint (rule, path and the flagged line's text, not its number) with how often it
occurs; paths are relative to the baseline's folder. What the file does not name is new.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec

from leakcheck.errors import RecordingError
from leakcheck.model import Finding
from leakcheck.writing import replace_file

FORMAT = 1


class AcceptedFinding(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """One accepted finding, so many times."""

    path: Annotated[str, msgspec.Meta(min_length=1)]
    rule: Annotated[str, msgspec.Meta(min_length=1)]
    fingerprint: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{12}$")]
    count: Annotated[int, msgspec.Meta(ge=1)] = 1


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    findings: tuple[AcceptedFinding, ...]


@dataclass(frozen=True, slots=True)
class BaselineDifference:
    """The findings a baseline does not know, and the entries of it that nothing matches."""

    new: tuple[Finding, ...]
    stale: tuple[AcceptedFinding, ...]


def make_baseline(findings: Sequence[Finding], folder: Path) -> tuple[AcceptedFinding, ...]:
    """Make the entries that accept these findings, sorted; paths become relative to `folder`."""
    counts = Counter(_identity(finding, folder) for finding in findings)
    return tuple(sorted(AcceptedFinding(*identity, count) for identity, count in counts.items()))


def read_baseline(path: Path) -> tuple[AcceptedFinding, ...]:
    """Read a baseline file; RecordingError when it is none."""
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {(error.strerror or '').lower()}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path}: is not a baseline: {error}") from None
    if file.format != FORMAT:
        raise RecordingError(f"{path}: is of format {file.format}; this leakcheck reads {FORMAT}")
    seen = Counter((each.path, each.rule, each.fingerprint) for each in file.findings)
    for (named, rule, _), times in seen.items():
        if times > 1:  # a merge gone wrong: which of the counts is meant?
            raise RecordingError(f"{path}: has the same entry twice, {rule} in {named}")
    return file.findings


def write_baseline(path: Path, entries: Sequence[AcceptedFinding]) -> None:
    """Write a baseline file, an entry a line, so that a repository merges it well.

    Raises WriteError when it cannot be written; an old one is then as it was.
    """
    lines = ",\n".join(f"    {json.dumps(msgspec.to_builtins(entry))}" for entry in entries)
    text = f'{{\n  "format": {FORMAT},\n  "findings": [\n{lines}\n  ]\n}}\n'
    replace_file(path, text)


def compare(
    findings: Sequence[Finding],
    entries: Sequence[AcceptedFinding],
    folder: Path,
    judged: Collection[str],
) -> BaselineDifference:
    """Take away the accepted findings; the paths in `judged`, and absent files, can be stale."""
    left = Counter({(each.path, each.rule, each.fingerprint): each.count for each in entries})
    new = []
    for finding in findings:
        identity = _identity(finding, folder)
        if left[identity] > 0:
            left[identity] -= 1
        else:
            new.append(finding)
    stale = [
        AcceptedFinding(*identity, count)
        for identity, count in sorted(left.items())
        if count > 0 and (identity[0] in judged or not (folder / identity[0]).exists())
    ]
    return BaselineDifference(tuple(new), tuple(stale))


def relative_path(path: Path | str, folder: Path) -> str:
    """Write a path as a baseline in `folder` does."""
    return os.path.relpath(path, folder).replace(os.sep, "/")


def _identity(finding: Finding, folder: Path) -> tuple[str, str, str]:
    path = relative_path(finding.location.path, folder)
    moved = replace(finding, location=replace(finding.location, path=path))
    return path, finding.rule, moved.fingerprint
