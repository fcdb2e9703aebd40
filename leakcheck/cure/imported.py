"""A text that imports a module which an edit needs."""

from __future__ import annotations

import ast


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
    before = plain[0].lineno - 1 if plain else _first_statement(tree)
    lines = text.splitlines(keepends=True)
    end = "\r\n" if "\r\n" in text else "\n"
    return "".join([*lines[:before], f"import {module}{end}", *lines[before:]])


def _first_statement(tree: ast.Module) -> int:
    docstring = ast.get_docstring(tree, clean=False) is not None
    return (tree.body[0].end_lineno or 0) if docstring else 0
