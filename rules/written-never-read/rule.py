"""self._seen[key] = value, and nobody ever looks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from leakcheck.source.words import Pattern
from leakcheck.static.facts.keys import one_of_many
from leakcheck.static.facts.link import Member, is_test, sets_up
from leakcheck.static.facts.model import AttributeEffect, Expr, FileFacts
from leakcheck.static.facts.nodes import dotted
from leakcheck.static.facts.numbers import is_number
from leakcheck.static.facts.runs import is_made_per_call
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.shape import api
from leakcheck.static.syntax import outline, outline_nodes_of
from leakcheck.static.torch_api import makes_module


class WrittenNeverRead(Rule):
    """Containers on self that are filled and never read, emptied or handed on."""

    code = "LK312"
    summary = "a container is filled by every call and nothing ever reads it"
    help = "drop it, or read it and empty it"
    default = False
    words = ("self.",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each attribute that starts as an empty container."""
        facts = module.facts.facts
        for member in module.facts.classes if not is_test(module.facts.path) else ():
            for name, first in _filled(member).items():
                if not _is_own(member, name) or _is_record(facts, name, first):
                    continue
                if _starts_empty(member, name) and _never_read(member, name):
                    told = f"`self.{name}` is filled and never read"
                    brief = is_made_per_call(member) or _is_arithmetic(module, first)
                    brief = brief or _is_of_a_few(facts, first)
                    brief = brief or _HISTORY.search(name) is not None
                    yield self.hit(first.at, told, confidence="low" if brief else "medium")


def _filled(member: Member) -> dict[str, AttributeEffect]:
    """Map what methods that are called again and again put something into, to where first."""
    facts, found = member.file.facts, dict[str, AttributeEffect]()
    for use in facts.uses:
        added = use.role in ("add", "slot") and use.holder == "self"
        method = facts.method_around(use.function) if added else None
        own = method is not None and method.owner == member.facts.name
        if own and not sets_up(facts, use.function):
            found.setdefault(use.name, use)
    return found


def _starts_empty(member: Member, name: str) -> bool:
    """Whether it is made once with its object: what a call makes anew is what it leaves behind."""
    binds = [use for use in member.binds() if use.name == name]
    if len(binds) != 1 or not sets_up(member.file.facts, binds[0].function):
        return False
    made = binds[0].value
    return made is not None and made.kind == "empty"


def _is_own(member: Member, name: str) -> bool:
    """Whether nobody out of sight reads it: an fx.Tracer reads what its classes fill.

    An abstract class or a data set is a library's interface, whose users may read what is public.
    """
    known = _READS_NOTHING | api("dataset-classes") if name.startswith("_") else {"object"}
    return all(base in known or makes_module(base) for base in member.file.foreign_bases(member))


def _is_record(facts: FileFacts, name: str, first: AttributeEffect) -> bool:
    """Whether these are numbers under a public name: a history, for who uses the object to read."""
    light = is_number(facts, first.value, first.function) or _NUMBERS.search(name) is not None
    return light and not name.startswith("_")


def _is_arithmetic(module: Module, first: AttributeEffect) -> bool:
    """Whether what is put in was calculated in the same function: a number, where all is known."""
    value = first.value
    if value is None or value.kind != "name" or first.function < 0:
        return False
    span = module.facts.facts.functions[first.function].at
    tree = outline(module.source)
    assigned = outline_nodes_of(tree, ast.Assign) if tree is not None else []
    made = [
        each.value
        for each in assigned
        if span.line <= each.lineno <= first.at.line
        if any(dotted(target) == value.text for target in each.targets)
    ]
    return bool(made) and all(map(_calculates, made))


def _is_of_a_few(facts: FileFacts, first: AttributeEffect) -> bool:
    """Whether an entry's key is a plain name that nothing shows to be one of many.

    It is handed in, or of a loop: `self.shapes[name] = tensor.shape`, of which a model has a few.
    """
    key = first.key
    if first.role != "slot" or key is None or key.kind != "name" or "." in key.text:
        return False
    made = any(
        (b.name, b.function) == (key.text, first.function) and b.value != Expr("other")
        for b in facts.bindings  # a loop binds its target to something, of which nothing is known
    )
    return not made and not one_of_many(key)


def _calculates(value: ast.expr) -> bool:
    match value:
        case ast.IfExp(body=body, orelse=orelse):
            return _calculates(body) and _calculates(orelse)
        case ast.Call(func=ast.Name(id=name)):
            return name in ("float", "int", "len", "round")
    return isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Constant))


_NUMBERS = Pattern(r"(^|_)(<rows_of_numbers>)(_(dict|list))?$")


# short rows; under a public name, for who looks at the object
_HISTORY = re.compile(r"^([a-z]\w*_)?(history|histories|recorder|records?|logs?)$|(^|_)metrics$")


_READS_NOTHING = frozenset({"object", "abc.ABC", "typing.Protocol", "threading.Thread"})
_KEEPS_ALIVE = re.compile(r"alive|keep|holder|owned|refs?$|pinned")  # filled so that things stay


def _never_read(member: Member, name: str) -> bool:
    """Whether the whole project only writes it, however other classes use one of that name."""
    if member.file.spelled_as_string(name) or _KEEPS_ALIVE.search(name):
        return False
    uses = [use for _, use in member.file.uses_of(name, member)]
    return all(_only_writes(use) and not _keeps_alive(use) for use in uses)


def _keeps_alive(use: AttributeEffect) -> bool:
    """Whether something stays so that its id stays its own: `self.known[id(f)] = f`."""
    return use.role == "slot" and use.key is not None and use.key == Expr("call", "id")


def _only_writes(use: AttributeEffect) -> bool:
    return use.role in ("bind", "add", "slot") and use.how not in _ANSWERS


# what gives back an entry, or hands to a queue, which is in somebody else's hands as well
_ANSWERS = ("setdefault", "put", "put_nowait")
