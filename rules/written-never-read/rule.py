"""self._seen[key] = value, and nobody ever looks."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.facts.link import Linked, sets_up
from leakcheck.static.facts.model import FileFacts, Use
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.torch_api import makes_module


class WrittenNeverRead(Rule):
    """Containers on self that are filled and never read, emptied or handed on."""

    code = "LK312"
    summary = "a container is filled by every call and nothing ever reads it"
    help = "drop it, or read it and empty it"
    words = ("self.",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each attribute that starts as an empty container."""
        facts = module.facts.facts
        for name, uses in facts.uses_by_name.items():
            grown = [use for use in uses if _grows(facts, use)]
            known = grown and _starts_empty(facts, uses) and _is_own(module.facts, grown[0])
            if known and _never_read(module.facts, name, uses):
                yield self.hit(
                    grown[0].at, f"`self.{name}` is filled and never read", confidence="medium"
                )


def _starts_empty(facts: FileFacts, uses: tuple[Use, ...]) -> bool:
    """Whether it is made once with its object: what a call makes anew is what it leaves behind."""
    binds = [use for use in uses if use.role == "bind"]
    if len(binds) != 1 or not sets_up(facts, binds[0].function):
        return False
    made = binds[0].value
    return made is not None and made.kind == "empty"


def _is_own(linked: Linked, use: Use) -> bool:
    """Whether no base out of sight may read it: an fx.Tracer reads what its classes fill."""
    method = linked.facts.method_around(use.function)
    members = (one for one in linked.classes if any(own is method for _, own in one.methods()))
    bases = {base for member in members for base in linked.foreign_bases(member)}
    return all(base == "object" or makes_module(base) for base in bases)


def _grows(facts: FileFacts, use: Use) -> bool:
    """Whether a method that is called again and again puts something in."""
    added = use.role in ("add", "slot") and use.holder == "self"
    return added and not sets_up(facts, use.function)


def _never_read(linked: Linked, name: str, own: tuple[Use, ...]) -> bool:
    if not all(_only_writes(use) for use in own) or linked.spelled_as_string(name):
        return False
    return all(_only_writes(use) for _, use in linked.uses(name))


def _only_writes(use: Use) -> bool:
    return use.role in ("bind", "add", "slot") and use.how != "setdefault"
