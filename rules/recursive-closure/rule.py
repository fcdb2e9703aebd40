"""def walk(x): ... walk(x.child) ... self.seen ...: a function that holds itself, and self."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.facts.link import sets_up
from leakcheck.static.facts.model import FileFacts, FunctionFacts
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
        facts = module.facts.facts
        for function in facts.functions:
            if _holds_itself(function) and _is_in_method(facts, function):
                yield self.hit(
                    function.at,
                    f"each call makes a cycle of `{function.name}`, which holds self",
                    confidence="medium",
                )


def _holds_itself(function: FunctionFacts) -> bool:
    return function.around >= 0 and {function.name, "self"} <= function.reads


def _is_in_method(facts: FileFacts, function: FunctionFacts) -> bool:
    method = facts.method_around(function.around)
    if method is None or method.name.startswith("test") or sets_up(facts, function.around):
        return False
    return method.parameters[:1] == ("self",)
