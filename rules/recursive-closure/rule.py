"""def walk(x): ... walk(x.child) ... self.seen ...: a function that holds itself, and self."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.facts.link import Linked, Member, sets_up
from leakcheck.static.facts.model import FunctionFacts
from leakcheck.static.facts.runs import is_made_again, runs_in_set_up
from leakcheck.static.facts.weight import holds_tensors
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule


class RecursiveClosure(Rule):
    """Functions nested in a method that call themselves and read `self`."""

    code = "LK211"
    summary = "a nested function that calls itself keeps self until the garbage collector runs"
    help = "make it a method or a function of the module, or give it to itself as an argument"
    proof = (
        "static only: the collector frees the cycle in the end, so a run sees garbage, not growth"
    )
    words = ("torch",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each function in a method."""
        linked, facts = module.facts, module.facts.facts
        if any(f"{home}.".startswith("torch.fx.") for home in facts.imports.values()):
            return  # a program is rewritten once, and its nodes hold each other anyway
        for function in facts.functions:
            owner = _owner(linked, function) if _holds_itself(function) else None
            if owner is not None:
                yield self.hit(
                    function.at,
                    f"each call makes a cycle of `{function.name}`, which holds self",
                    confidence="medium" if is_made_again(owner) else "low",
                )


def _holds_itself(function: FunctionFacts) -> bool:
    return function.around >= 0 and {function.name, "self"} <= function.reads


def _owner(linked: Linked, function: FunctionFacts) -> Member | None:
    """Return the class that holds tensors and in whose method, run again and again, it is."""
    facts = linked.facts
    method = facts.method_around(function.around)
    if method is None or method.name.startswith("test") or sets_up(facts, function.around):
        return None
    owner = facts.class_named(method.owner)
    if owner is None or method.parameters[:1] != ("self",):
        return None
    heavy = holds_tensors(Member(linked, owner))
    again = heavy and not runs_in_set_up(linked, facts.functions.index(method))
    return Member(linked, owner) if again else None
