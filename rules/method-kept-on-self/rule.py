"""self._run = self._run_fast: the bound method holds its object, and the object the method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from leakcheck.static.facts.link import Member, sets_up
from leakcheck.static.facts.model import AttributeEffect
from leakcheck.static.facts.runs import is_made_again
from leakcheck.static.facts.weight import holds_tensors
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule


class MethodKeptOnSelf(Rule):
    """Bound methods that their own object keeps from some call on."""

    code = "LK212"
    summary = "an object keeps one of its own bound methods, so only the collector frees it"
    help = "choose the method where it is called, or keep its name"
    words = ("= self.", "(\n")
    needs_torch = True

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what the methods of each class bind on self."""
        for member in module.facts.classes:
            methods = _methods(member)
            bound = Counter((use.name, use.function) for use in member.binds())
            for use in member.binds():
                method = member.file.facts.function(use.function)
                again = bound[use.name, use.function] > 1
                if again and method is not None and method.yields:  # put back behind the block
                    continue
                late = not sets_up(member.file.facts, use.function)
                if late and _names_one(use, methods) and holds_tensors(member):
                    yield self.hit(
                        use.at,
                        f"`self.{use.name}` holds self",
                        confidence="medium" if is_made_again(member) else "low",
                    )


def _methods(member: Member) -> set[str]:
    """The methods of a class and its bases; a decorated one may be anything."""
    return {
        f"self.{method.name}"
        for each in member.file.lineage(member)
        for _, method in each.methods()
        if not method.decorators
    }


def _names_one(use: AttributeEffect, methods: set[str]) -> bool:
    return use.value is not None and use.value.kind == "name" and use.value.text in methods
