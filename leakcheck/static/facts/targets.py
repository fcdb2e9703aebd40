"""Which functions of the project a call may mean, and whether a call may be one of a function."""

from __future__ import annotations

import sys

from leakcheck.static.facts.link import Linked, Member
from leakcheck.static.facts.model import Call, FileFacts, FunctionFacts


def top_functions(facts: FileFacts, name: str, near: int = -1) -> list[int]:
    """Return the functions of a name that stand at the top, or in the function of a call."""
    return [
        index
        for index, function in enumerate(facts.functions)
        if function.name == name and not function.owner and function.around in (-1, near)
    ]


def plain_functions(file: Linked, name: str, near: int = -1) -> list[tuple[Linked, int]]:
    """Return the functions that a plain name means, here or in the file it is imported from."""
    own = top_functions(file.facts, name, near)
    if own:
        return [(file, index) for index in own]
    found = file.home(name)
    if found is None:
        return []
    home, last = found
    return [(home, index) for index in top_functions(home.facts, last)]


def callee(file: Linked, call: Call) -> tuple[Linked, int] | None:
    """Return the function of the project that is called by its name, or as a method of self."""
    head, dot, name = call.spelled.rpartition(".")
    if not dot:
        return next(iter(plain_functions(file, name, call.function)), None)
    return file.own_method(call) if head == "self" else None


def is_of_python(call: Call) -> bool:
    """Tell whether a call is of Python's own library: a `re.match` is no `match` of the project."""
    return call.qualified.partition(".")[0] in sys.stdlib_module_names


def may_mean(home: Linked, call: Call, file: Linked, function: FunctionFacts) -> bool:
    """Tell whether a call in a file may be one of another's function, and not of a namesake."""
    head, dot, name = call.spelled.rpartition(".")
    if not function.owner:
        if home.path == file.path:
            return not dot
        imported = home.imported_module(head) if dot else None
        found = home.home(name) if not dot else None
        there = found[0] if found is not None else imported
        named = (head if dot else name) in home.facts.imports
        return named and (there is None or there.path == file.path)
    if head != "self":
        return bool(dot)
    around, own = home.class_around(call), file.facts.class_named(function.owner)
    return around is None or own is None or are_related(around, Member(file, own))


def known_calls(file: Linked, function: FunctionFacts) -> list[tuple[FileFacts, Call]]:
    """Return the project's calls of a function; none if it is handed on, to be called by others."""
    handed = (function.name, f"self.{function.name}")
    found: list[tuple[FileFacts, Call]] = []
    for facts in file.everywhere(function.name):
        given = (argument.value.text for call in facts.calls for argument in call.arguments)
        if any(text in handed for text in given):
            return []
        home = file.of(facts)
        named = facts.calls_by_name.get(function.name, ())
        found += [(facts, call) for call in named if may_mean(home, call, file, function)]
    return found


def are_related(one: Member, other: Member) -> bool:
    """Tell whether two classes are the same, or one is derived from the other."""
    names = [{each.facts.name for each in m.file.lineage(m)} for m in (one, other)]
    return other.facts.name in names[0] or one.facts.name in names[1]
