"""self.outputs.append(x) in forward, and nothing ever takes it out."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.facts.link import Linked, sets_up
from leakcheck.static.facts.model import AttributeEffect, Expr, FileFacts
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule


class ForwardKeepsOutputs(Rule):
    """Lists on a module that its forward pass adds to, and nothing empties."""

    code = "LK313"
    summary = "a module's forward pass adds to a list of its own that nothing empties"
    help = "empty the list at the start of forward, or return what it holds"
    severity = "error"
    words = ("forward",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what the forward method of each module adds to."""
        linked = module.facts
        for member in linked.classes:
            if "forward" not in member.facts.methods:
                continue
            if not linked.is_module(member):
                continue
            forward = member.facts.methods["forward"]
            helped = _handed_on(linked, forward)
            for use in linked.facts.uses:
                given = use.value is not None and (use.function, use.value.text) in helped
                kept = (use.function == forward or given) and _keeps(use)
                ends = _ends_in_error(linked.facts, use)
                if kept and not ends and _is_never_emptied(linked, use):
                    yield self.hit(use.at, f"`self.{use.name}` grows at every forward pass")


def _ends_in_error(facts: FileFacts, use: AttributeEffect) -> bool:
    """Whether the pass is cut short once it has what it was to catch: `raise` in the same block."""
    function = facts.functions[use.function]
    level = use.at.column
    return not function.returns and any(
        at.column == level and at > use.at for _, at in function.raises
    )


def _is_asked_to(linked: Linked, facts: FileFacts, use: AttributeEffect) -> bool:
    """Whether a method that is no constructor binds it, and another one calls that: `reset()`."""
    method = facts.method_around(use.function)
    if method is None or method.name == "__init__":
        return False
    calls = linked.calls_of(method.name)
    callers = (other.method_around(call.function) for other, call in calls)
    return any(caller is None or caller.name != "__init__" for caller in callers)


def _handed_on(linked: Linked, forward: int) -> set[tuple[int, str]]:
    """Return the parameters of the class's own methods that forward gives a tensor."""
    found = set[tuple[int, str]]()
    for call in linked.facts.calls_in(forward):
        target = linked.own_method(call) if call.spelled.startswith("self.") else None
        if target is None or target[0].facts is not linked.facts:
            continue
        names = linked.facts.functions[target[1]].parameters
        for place, given in enumerate(call.arguments):
            name = given.keyword or (names[place + 1] if place + 1 < len(names) else "")
            if _may_be_tensor(given.value):
                found.add((target[1], name))
    return found


def _keeps(use: AttributeEffect) -> bool:
    added = use.role == "add" and use.how in ("append", "extend", "insert")
    kept = added and use.holder == "self" and not use.guarded
    return kept and use.value is not None and _may_be_tensor(use.value)


def _may_be_tensor(value: Expr) -> bool:
    number = value.text.endswith((".item", ".tolist", "len", "float", "int"))
    return value.kind in ("name", "call", "other") and not number


def _is_never_emptied(linked: Linked, use: AttributeEffect) -> bool:
    starts_empty = False
    for facts, other in linked.uses(use.name):
        first = sets_up(facts, other.function)
        if other.role in ("take", "measure") or (other.role == "bind" and not first):
            return False
        if other.role == "bind" and _is_asked_to(linked, facts, other):
            return False
        starts_empty |= (
            other.role == "bind" and other.value is not None and (other.value.kind == "empty")
        )
    return starts_empty and not linked.spelled_as_string(use.name)
