"""self._seen[key] = value, and nobody ever looks."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.facts.link import Linked, sets_up
from leakcheck.static.facts.model import FileFacts, Use
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule


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
            if grown and _starts_empty(uses) and _never_read(module.facts, name, uses):
                yield self.hit(
                    grown[0].at, f"`self.{name}` is filled and never read", confidence="medium"
                )


def _starts_empty(uses: tuple[Use, ...]) -> bool:
    values = [use.value for use in uses if use.role == "bind"]
    return len(values) == 1 and values[0] is not None and values[0].kind == "empty"


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
