"""Would the program catch what is to end it? Then it is not stopped: an iteration would be lost.

`except BaseException:` in a robust service catches SystemExit too. The handlers around the lines
that run now are read in their source; one that raises again catches nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from leakcheck.runtime.introspection import frames
from leakcheck.runtime.introspection.texts import file_of, text_of
from leakcheck.source.conditions import names_of_errors
from leakcheck.source.tree import FUNCTIONS, is_around

_CATCH = frozenset(["", "BaseException", "SystemExit"])  # "": a bare `except:`


def would_be_caught() -> bool:
    """Say whether a handler around one of the program's running lines would catch a SystemExit."""
    running = ((each.f_code.co_filename, each.f_lineno or 0) for each in frames.running())
    return any(is_caught_at(path, line) for path, line in running)


def is_caught_at(path: str, line: int) -> bool:
    """Say whether a line of a file is in a `try` whose handler catches a SystemExit for good."""
    if "except" not in text_of(path):
        return False
    tries = (node for node in ast.walk(file_of(path).tree) if isinstance(node, ast.Try))
    return any(_catches(each.handlers) for each in tries if _runs_in(each.body, line))


def _runs_in(body: Iterable[ast.stmt], line: int) -> bool:
    """Say whether a line is in a block itself, and not in a function that is made there."""
    parts = [
        part for statement in body if is_around(statement, line) for part in ast.walk(statement)
    ]
    inner = (each for each in parts if isinstance(each, (*FUNCTIONS, ast.Lambda)))
    return bool(parts) and not any(is_around(each, line) for each in inner)


def _catches(handlers: Iterable[ast.ExceptHandler]) -> bool:
    """Say whether the first of these that is for a SystemExit does not raise again."""
    first = next((each for each in handlers if _is_for_exits(each)), None)
    return first is not None and not any(isinstance(part, ast.Raise) for part in ast.walk(first))


def _is_for_exits(handler: ast.ExceptHandler) -> bool:
    kinds = frozenset([""]) if handler.type is None else names_of_errors(handler.type)
    return not kinds.isdisjoint(_CATCH)
