"""Blocks of statements in a tree: what is in one, and the text with other statements in it."""

from __future__ import annotations

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
