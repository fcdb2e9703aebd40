"""A Jupyter notebook as one module, and back: code cells only, magics blanked, lines kept.

The cells are joined with a marker comment before each, so that a text stays mappable to its cells
however many lines an edit adds or removes.
"""

from __future__ import annotations

import ast
import codecs
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from leakcheck.errors import SourceError
from leakcheck.model import Edit, Finding, Fix, Location
from leakcheck.static.fix import split_lines

MARKER = "# leakcheck: here begins cell "
# Cell magics whose body is Python that runs in the notebook's own namespace
PYTHON_MAGICS = frozenset({"capture", "prun", "python", "python3", "time", "timeit", "memit"})

_ASSIGNED_MAGIC = re.compile(r"(?P<target>\s*[\w.,\s\[\]]+=\s*)[!%]")
_MAGIC = re.compile(r"\s*(?:[%!?]|\S.*\?\s*$)")


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook's JSON and its code cells joined to one text; cells count from 1, all kinds."""

    document: dict[str, Any]
    text: str
    indent: int | str | None
    final_newline: bool
    ascii: bool = False
    newline: str = "\n"
    bom: bool = False

    def encode(self, text: str) -> bytes:
        """Write the notebook with other code; nothing but the sources changes."""
        cells = list(self.document["cells"])
        for number, source in _cells_of(text):
            old = cells[number - 1]["source"]
            if source != "".join(old):
                new = source if isinstance(old, str) else split_lines(source)
                cells[number - 1] = {**cells[number - 1], "source": new}
        document = {**self.document, "cells": cells}
        separators = (",", ": ") if self.indent is not None else None
        written = json.dumps(
            document, indent=self.indent, ensure_ascii=self.ascii, separators=separators
        )
        lines = (written + "\n" * self.final_newline).replace("\n", self.newline)
        return lines.encode("utf-8-sig" if self.bom else "utf-8")


def read_notebook(raw: bytes) -> Notebook:
    """Read a notebook of format 4; one in another language has no code.

    Raises SourceError when it is no such notebook.
    """
    try:
        written = raw.decode("utf-8-sig")
        document = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"is not a notebook: {error}") from None
    cells = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(cells, list) or not all(map(_is_cell, cells)):
        raise SourceError("is not a notebook of format 4")
    indent = re.match(r"\{\r?\n([ \t]*)\S", written)
    return Notebook(
        document,
        "".join(_joined(cells)) if _language(document) == "python" else "",
        indent.group(1) if indent else None,
        written.endswith("\n"),
        written.isascii() and "\\u" in written,
        "\r\n" if "\r\n" in written else "\n",
        raw.startswith(codecs.BOM_UTF8),
    )


def python_of(text: str) -> str:
    """Blank out what only IPython understands; every line stays on its number.

    Raises SourceError naming the cell that is not Python.
    """
    return "".join(
        f"{MARKER}{number}\n{_without_magics(source, number)}\n"
        for number, source in _cells_of(text)
    )


def in_cells(text: str, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Give findings the cell and the line within it, in place of the line of the joined text."""
    starts: list[tuple[int, int]] = []
    for number, line in enumerate(split_lines(text), start=1):
        if line.startswith(MARKER):
            starts.append((number, int(line[len(MARKER) :])))
    return tuple(_in_cell(finding, starts) for finding in findings)


def _in_cell(finding: Finding, starts: list[tuple[int, int]]) -> Finding:
    marker, location = _cell_of(finding.location, starts)
    fix = finding.fix
    if fix is not None:
        fix = Fix(fix.title, tuple(_moved(edit, marker) for edit in fix.edits), fix.safety)
        following = [line - marker for line, _ in starts if line > marker]
        if any(
            edit.line < 1 or edit.end_line >= min(following, default=1 << 60) for edit in fix.edits
        ):
            fix = None  # it reaches into another cell, which one place cannot say
    evidence = tuple(
        replace(each, location=_cell_of(each.location, starts)[1])
        if each.location.path == location.path
        else each
        for each in finding.evidence
    )
    return replace(finding, location=location, fix=fix, evidence=evidence)


def _cell_of(at: Location, starts: list[tuple[int, int]]) -> tuple[int, Location]:
    """Return the line of the marker above a place, and the place within its cell."""
    marker, cell = max((start for start in starts if start[0] < at.line), default=(0, 1))
    inside = Location(
        at.path, at.line - marker, at.column, at.end_line - marker, at.end_column, cell
    )
    return marker, inside


def _moved(edit: Edit, by: int) -> Edit:
    return replace(edit, line=edit.line - by, end_line=edit.end_line - by)


def _is_cell(cell: object) -> bool:
    if not isinstance(cell, dict) or not isinstance(cell.get("cell_type"), str):
        return False
    source = cell.get("source")
    if isinstance(source, list):
        return all(isinstance(line, str) for line in source)
    return isinstance(source, str)


def _language(document: dict[str, Any]) -> str:
    metadata = document.get("metadata")
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        part = metadata.get(key) if isinstance(metadata, dict) else None
        if isinstance(part, dict) and isinstance(part.get(name), str):
            return str(part[name]).lower()
    return "python"


def _joined(cells: list[dict[str, Any]]) -> Iterator[str]:
    for number, cell in enumerate(cells, start=1):
        if cell["cell_type"] == "code":
            yield f"{MARKER}{number}\n{''.join(cell['source'])}\n"


def _cells_of(text: str) -> Iterator[tuple[int, str]]:
    for part in re.split(f"^{re.escape(MARKER)}", text, flags=re.MULTILINE)[1:]:
        number, source = part.split("\n", 1)
        yield int(number), source.removesuffix("\n")


def _without_magics(source: str, cell: int) -> str:
    """Blank the line the parser stumbles over as long as it looks like a magic."""
    lines = split_lines(source)
    magic = re.match(r"\s*%%\s*(\w+)", source)
    if magic and magic.group(1) not in PYTHON_MAGICS:
        return "".join(_end_of(line) for line in lines)
    if magic:
        first = next(number for number, line in enumerate(lines) if line.strip())
        _blank(lines, first)
    while True:
        error = _syntax_error("".join(lines))
        if error is None:
            return "".join(lines)
        number = (error.lineno or 0) - 1
        if not 0 <= number < len(lines) or not _is_magic(lines[number]):
            raise SourceError(f"cell {cell}, line {number + 1}: {error.msg}")
        _blank(lines, number)


def _is_magic(line: str) -> bool:
    return bool(_MAGIC.match(line) or _ASSIGNED_MAGIC.match(line))


def _blank(lines: list[str], first: int) -> None:
    for number in count(first):
        line = lines[number]
        assigned = _ASSIGNED_MAGIC.match(line)
        indent = line[: len(line) - len(line.lstrip())]
        blank = (
            "" if number > first else f"{assigned['target']}None" if assigned else f"{indent}pass"
        )
        lines[number] = blank + _end_of(line)
        if not line.rstrip("\r\n").endswith("\\") or number + 1 == len(lines):
            return


def _end_of(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _syntax_error(code: str) -> SyntaxError | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError):
        return SyntaxError("is nested too deeply")
    return None
