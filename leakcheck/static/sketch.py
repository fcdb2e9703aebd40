"""What a module defines and imports, from its outline: enough to follow an import through it.

A package's modules import far more than a check needs; LibCST parses only where a name is defined.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from leakcheck.static import syntax


@dataclass(frozen=True, slots=True)
class Sketch:
    """The names of a module's classes and top-level functions, and what it imports as what."""

    defined: frozenset[str]
    imported: Mapping[str, str]


def sketch(source: str) -> Sketch | None:
    """Sketch a module's source; None when the standard library cannot parse it."""
    outline = syntax.outline(source)
    if outline is None:
        return None
    defined: set[str] = set()
    imported: dict[str, str] = {}
    todo: list[tuple[ast.AST, bool]] = [(outline, True)]
    while todo:
        node, at_top = todo.pop()
        match node:
            case ast.Import(names=aliases):
                imported |= {a.asname: a.name for a in aliases if a.asname}
                heads = (a.name.partition(".")[0] for a in aliases if not a.asname)
                imported |= {head: head for head in heads}
            case ast.ImportFrom():
                imported |= _imported(node)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if at_top:
                defined.add(name)
            case ast.ClassDef(name=name):
                defined.add(name)
        if not isinstance(node, (ast.expr, ast.Import, ast.ImportFrom)):
            within = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            below = [(child, at_top and not within) for child in ast.iter_child_nodes(node)]
            todo += reversed(below)  # the last import of a name counts
    return Sketch(frozenset(defined), imported)


def _imported(node: ast.ImportFrom) -> dict[str, str]:
    module = "." * node.level + (node.module or "")
    joint = "" if module.endswith(".") else "."
    return {a.asname or a.name: f"{module}{joint}{a.name}" for a in node.names if a.name != "*"}
