"""Which lines hand something to an object that keeps it: a hook, a value, an entry of a queue?"""

from __future__ import annotations

import ast
from collections.abc import Container

from leakcheck.model import Place
from leakcheck.source.places import Held
from leakcheck.source.tree import ProgramTexts, Visits, name_of, pairs_of
from leakcheck.source.words import words


def registering(
    program: ProgramTexts, hook: str, classes: Container[str], visits: Visits
) -> tuple[Place, ...]:
    """Return the lines that ran, or are in methods of these classes, and register a hook.

    The name of the hook is in their function: what is registered may be made of it first.
    """
    found: dict[tuple[str, int], str] = {}
    for method in words("methods", "registers_on_nodes"):
        for file in program.files(method):
            for call in file.calls(method):
                function, statement = file.function(call), file.statement(call)
                owner = file.owner(function)
                ran = visits.get((file.path, statement.lineno))
                theirs = owner is not None and owner.name in classes
                about = any(name_of(part) == hook for part in ast.walk(function or call))
                if about and (ran or theirs):
                    found[file.path, statement.lineno] = ast.unparse(statement)
    return tuple(Place(*at, code) for at, code in found.items())


def setting(program: ProgramTexts, variable: str, visits: Visits) -> tuple[Place, ...]:
    """Return the lines that ran and set a context variable of this name."""
    makes, sets = "ContextVar", "set"
    names = {
        name_of(target)
        for file in program.files(makes)
        for call in file.calls(makes)
        if any(getattr(part, "value", None) == variable for part in call.args[:1])
        for target, _ in pairs_of(file.statement(call))
    }
    found = [
        (file.path, file.statement(call).lineno, ast.unparse(file.statement(call)))
        for file in program.files(sets)
        for call in file.calls(sets)
        if isinstance(call.func, ast.Attribute) and name_of(call.func.value) in names
    ]
    return tuple(Place(*one) for one in dict.fromkeys(found) if visits.get(one[:2]))


def asking(program: ProgramTexts, held: Held) -> list[tuple[str, int]]:
    """Return the lines of one function that ask the object around what grows to add to it.

    `self.results.put(x)` adds to the `queue` of what `results` is.
    """
    owner = held.owners[-1][0].removeprefix(".") if held.owners else ""
    asking = [
        (file, call)
        for file in (program.files(owner) if owner else ())
        for method in words("methods", "add")
        for call in file.calls(method)
        if isinstance(call.func, ast.Attribute) and name_of(call.func.value) == owner
    ]
    functions = {(file.path, file.function(call)) for file, call in asking}
    return [(file.path, call.lineno) for file, call in asking] if len(functions) == 1 else []
