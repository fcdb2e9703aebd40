"""self._run = self._run_fast: a bound method holds its object, and the object the method."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.facts.link import Member, sets_up
from leakcheck.static.facts.model import Use
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule


class MethodKeptOnSelf(Rule):
    """Bound methods that their own object keeps."""

    code = "LK212"
    summary = "an object keeps one of its own bound methods, so only the collector frees it"
    help = "keep the method's name, or choose the method where it is called"
    proof = "static only: the collector frees the cycle in the end, so a run sees garbage"
    words = ("= self.",)
    needs_torch = True

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what each class binds on self."""
        for member in module.facts.classes:
            methods = _methods(member)
            for use in member.binds():
                if use.value and use.value.kind == "name" and use.value.text.startswith("self.") and use.value.text[5:] in methods:
                    where = 'init' if sets_up(module.facts.facts, use.function) else 'call'
                    yield self.hit(use.at, where)


def _methods(member: Member) -> set[str]:
    return {
        method.name
        for each in member.file.lineage(member)
        for _, method in each.methods()
        if not method.decorators
    }
