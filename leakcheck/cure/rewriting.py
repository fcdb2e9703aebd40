"""A text rewritten: a loop with another body, statements in place of one, one more import."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.cure.sites import SourceTree

if TYPE_CHECKING:
    from leakcheck.static.module import LoopNode


def body_of(block: cst.CSTNode) -> list[cst.BaseStatement]:
    """Return the statements of a block or a module, none of anything else."""
    return [*block.body] if isinstance(block, (cst.IndentedBlock, cst.Module)) else []


def with_body(source: SourceTree, loop: LoopNode, body: Sequence[cst.BaseStatement]) -> str:
    """Return the text with another body for a loop."""
    changed = loop.with_changes(body=loop.body.with_changes(body=body))
    return source.replaced(loop, changed)


def beside(source: SourceTree, line: cst.BaseStatement, new: Sequence[cst.BaseStatement]) -> str:
    """Return the text with statements in the place of one."""
    parent = source.parents[line]
    body = [*chain.from_iterable(new if each is line else [each] for each in body_of(parent))]
    return source.replaced(parent, parent.with_changes(body=body))


def with_import(text: str, module: str) -> str:
    """Import a module after those that the text imports first, unless it does already."""
    tree = ast.parse(text)
    imports = [each for each in tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    names = [alias for each in imports if isinstance(each, ast.Import) for alias in each.names]
    if any(alias.name == module and alias.asname is None for alias in names):
        return text
    plain = [
        each
        for each in imports
        if not (isinstance(each, ast.ImportFrom) and each.module == "__future__")
    ]
    before = plain[0].lineno - 1 if plain else _last_before(tree, imports)
    lines = text.splitlines(keepends=True)
    end = "\r\n" if "\r\n" in text else "\n"
    return "".join([*lines[:before], f"import {module}{end}", *lines[before:]])


def _last_before(tree: ast.Module, futures: Sequence[ast.stmt]) -> int:
    """Return the line after which a file's first import of a module may stand."""
    docstring = tree.body[:1] if ast.get_docstring(tree, clean=False) is not None else []
    return max((each.end_lineno or 0 for each in (*docstring, *futures)), default=0)
