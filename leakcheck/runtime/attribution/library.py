"""The source of the library classes that hold what grows: a replay buffer limits itself there."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from types import FunctionType, ModuleType
from typing import Any

from leakcheck.model import Place, Suspect
from leakcheck.runtime.attribution.assignments import parsed
from leakcheck.runtime.attribution.names import owners_of
from leakcheck.runtime.attribution.uses import is_said_to_take, uses_in
from leakcheck.runtime.introspection import frames
from leakcheck.runtime.introspection.kinds import (
    bases_of,
    globals_of,
    is_of,
    module_of,
    name_of,
    namespace_of,
)

_INSTALLED = re.compile(r".*[\\/](?:site|dist)-packages[\\/]")
_DELETES = re.compile(r"\b(delete\s+from|drop\s+table|replace\s+into)\b", re.IGNORECASE)
A_NUMBER = "Tensor (scalar)"
_NOT_LOOKED_AT = ("torch", "leakcheck")


def library_classes(suspect: Suspect) -> Iterator[tuple[str, ast.ClassDef, str]]:
    """Yield the file, the class and the attribute of installed classes by which it is held.

    Not torch's own: what its modules and optimizers hold, the program gave them.
    """
    held = suspect.holder
    if held.kind != "attribute":
        return
    for kind in _types(held.owner):
        for each in bases_of(kind):
            path = _path_of(each)
            package = module_of(each).partition(".")[0]
            if package in _NOT_LOOKED_AT or not _INSTALLED.match(path) or frames.is_own(path):
                continue
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.ClassDef) and node.name == name_of(each):
                    yield path, node, held.name


def emptied_by_owner(suspect: Suspect) -> Place | None:
    """Return where an object of a library, which holds it, is told to let go: `stack.close()`.

    Of the user's own classes the source is read instead.
    """
    held = suspect.holder
    if held.kind != "attribute" or any(map(frames.is_own, map(_path_of, _types(held.owner)))):
        return None
    for place in suspect.locations:
        tree = parsed(place.path)
        for name, within in owners_of(suspect, tree):
            for use in uses_in(within, name, (ast.Name, ast.Attribute)):
                called = use.above[use.node]
                if use.is_after_loop(place.line):
                    continue
                if isinstance(called, ast.Attribute) and is_said_to_take(called.attr):
                    code = ast.unparse(use.statement).partition("\n")[0]
                    return Place(place.path, use.statement.lineno, code)
    return None


def deleted_by_sql(suspect: Suspect) -> Place | None:
    """Return where rows are deleted, if what grows are those of a data base in memory."""
    for place in suspect.locations:
        for node in ast.walk(parsed(place.path)) if ".execute" in place.code else ():
            match node:
                case ast.Call(
                    func=ast.Attribute(attr=method), args=[ast.Constant(value=str(text)), *_]
                ):
                    if method.startswith("execute") and _DELETES.search(text):
                        return Place(place.path, node.lineno, ast.unparse(node))
    return None


def logs_of_libraries(suspects: Sequence[Suspect], tolerance_bytes: int) -> tuple[Suspect, ...]:
    """Return those that installed classes keep of numbers as tensors without a graph, slowly.

    fastai's Recorder keeps the smoothed loss of each step: the user can do nothing about that.
    """
    return tuple(
        one
        for one in suspects
        if one.kind == "tensor"
        and one.what.startswith(A_NUMBER)
        and (one.bytes_per_step or 0.0) < tolerance_bytes
        and any(library_classes(one))
    )


def shown(path: str) -> str:
    """Return the path of an installed file as it is told: from its package on."""
    return _INSTALLED.sub("", path)


def _path_of(kind: type) -> str:
    """Return the file of a class's methods: its module may be a package that only hands it on."""
    methods = (each for each in namespace_of(kind).values() if type(each) is FunctionType)
    return next((method.__code__.co_filename for method in methods), "")


def _types(name: str) -> list[type]:
    modules = [each for each in tuple(sys.modules.values()) if is_of(each, ModuleType)]
    found: list[Any] = [globals_of(module).get(name) for module in modules]
    kinds = {id(kind): kind for kind in found if is_of(kind, type)}
    return [kind for kind in kinds.values() if name_of(kind) == name]
