"""reset() empties one container after the other, and forgets this one."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.model import Evidence
from leakcheck.source.words import Pattern
from leakcheck.static.facts.keys import one_of_many
from leakcheck.static.facts.link import Member, sets_up
from leakcheck.static.facts.model import AttributeEffect, Call, Expr, FileFacts
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule

_ENDS_A_ROUND = Pattern(r"(^|_)(<ends_round>)(_|$)")


class StateLeftAtReset(Rule):
    """Containers that grow like their siblings, and that the method which empties those forgets."""

    code = "LK320"
    summary = "a method empties an object's containers, and leaves one that only grows"
    help = "empty it together with the others"
    words = ("self.",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at the containers that each class begins with."""
        for member in module.facts.classes:
            begun = _begun(member)
            emptied = _emptied(member, begun)
            for use, sibling in _grown(member, begun, emptied):
                if _only_grows(member, use.name):
                    method = member.file.facts.functions[emptied[sibling]]
                    place = module.location(method.at)
                    yield self.hit(
                        use.at,
                        f"`{method.name}` empties `self.{sibling}`, and leaves `self.{use.name}`",
                        confidence="low" if use.guarded else "medium",  # perhaps the first time
                        evidence=(Evidence(place, "closing", method.name),),
                    )
            for use in _refilled(member, begun):
                told = (
                    f"every `reset` adds to `self.{use.name}`, and only the constructor empties it"
                )
                yield self.hit(use.at, told, confidence="medium")


def _refilled(member: Member, begun: set[str]) -> Iterator[AttributeEffect]:
    """Yield where a reset before each episode fills what it never empties, and is no record."""
    facts, methods = member.file.facts, member.facts.methods
    reset = methods.get("reset") if "step" in methods else None
    if reset is None:
        return
    own = (methods.get(call.method) for call in facts.calls_in(reset) if _on_self(call))
    filling = {reset, *own}
    seen: set[str] = set()
    for use in facts.uses:
        if use.function in filling and use.name in begun - seen and _adds(use):
            seen.add(use.name)
            looked_at = any(u.how == "used" for _, u in member.file.uses_of(use.name, member))
            if not looked_at and not _asked_before(facts, use) and _only_grows(member, use.name):
                yield use


def _on_self(call: Call) -> bool:
    return call.spelled == f"self.{call.method}"


def _begun(member: Member) -> set[str]:
    """Name the containers that a constructor makes, with nothing in them."""
    first = member.facts.methods.get("__init__")
    return {use.name for use in member.binds() if use.function == first and _is_empty(use.value)}


def _is_empty(value: Expr | None) -> bool:
    return value is not None and value.kind == "empty"


def _emptied(member: Member, begun: set[str]) -> dict[str, int]:
    """Map those of them that the end of a round empties to the method that ends it."""
    found: dict[str, int] = {}
    for index, method in member.methods():
        for use in member.file.facts.uses if _ENDS_A_ROUND.search(method.name) else ():
            own = use.function == index and use.holder == "self" and use.name in begun
            if own and (use.how == "clear" or (use.role == "bind" and _is_empty(use.value))):
                found.setdefault(use.name, index)
    return found


def _grown(
    member: Member, begun: set[str], emptied: dict[str, int]
) -> Iterator[tuple[AttributeEffect, str]]:
    """Yield where a container grows that nobody empties, with a sibling that grows beside it."""
    facts = member.file.facts
    adds = [use for use in facts.uses if _adds(use) and use.name in begun]
    seen: set[str] = set()
    for use in adds:
        beside = (a.name for a in adds if a.function == use.function and a.name in emptied)
        sibling = next((name for name in beside if not _is_seen_in(facts, use, emptied[name])), "")
        method = facts.method_around(use.function)
        if not sibling or use.name in emptied or use.name in seen or method is None:
            continue
        if method.owner == member.facts.name and not sets_up(facts, use.function):
            seen.add(use.name)
            if not _asked_before(facts, use):
                yield use, sibling


def _is_seen_in(facts: FileFacts, put: AttributeEffect, index: int) -> bool:
    """Whether the method that empties the sibling does something with it: empties its entries."""
    return any(use.function == index for use in facts.uses_by_name[put.name])


def _asked_before(facts: FileFacts, put: AttributeEffect) -> bool:
    """`if kind not in self.kinds: self.kinds.append(kind)`."""
    return any(
        use.role == "read" and use.function == put.function and use.at < put.at
        for use in facts.uses_by_name[put.name]
    )


def _adds(use: AttributeEffect) -> bool:
    """Whether it takes in one more thing each time: a key of few, `self.maps[layer]`, does not.

    Nor does a list of queues, `self.queues[k].put(batch)`: whoever reads from them empties them.
    """
    if use.holder != "self" or use.how in ("+=", "put", "put_nowait"):
        return False
    return use.role == "add" or (
        use.role == "slot" and use.key is not None and one_of_many(use.key)
    )


def _only_grows(member: Member, name: str) -> bool:
    """Whether nothing in the project takes from it, measures it, or gives it another value."""
    uses = [use for _, use in member.file.uses_of(name, member)]
    binds = [use for use in uses if use.role == "bind"]
    made = len(binds) == 1 and binds[0].value is not None and binds[0].value.kind == "empty"
    kept = all(
        use.role not in ("take", "measure") and (use.role != "escape" or use.how == "bound")
        for use in uses
    )
    return made and kept and not member.file.spelled_as_string(name)
