"""response.stream = Stream(response): each holds the other."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.facts.link import Linked, Member
from leakcheck.static.facts.model import Call, FunctionFacts, Use
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule


class BackReference(Rule):
    code = "LK213"
    summary = "x"
    words = ("self",)

    def check(self, module: Module) -> Iterator[Hit]:
        linked = module.facts
        for call in linked.facts.calls:
            holder = call.bound.rpartition(".")[0]
            if holder and _keeps(linked, call, holder):
                yield self.hit(call.at, "self" if holder == "self" else "other")
        for use in linked.facts.uses:
            if use.role == "bind" and use.value and use.value.text == "self":
                if use.holder.startswith("self."):
                    yield self.hit(use.at, "own")
                elif any(o.role in("add","slot") and o.holder=="self" and o.function==use.function and o.value and o.value.text==use.holder for o in linked.facts.uses):
                    yield self.hit(use.at, "item")


def _keeps(linked, call, holder):
    made = linked.class_called(call.qualified or call.spelled)
    if made is None: return False
    for each in made.file.lineage(made):
        index = each.facts.methods.get("__init__")
        if index is None: continue
        init = each.file.facts.functions[index]
        given = call.given(holder, init.parameters[1:])
        return any(u.role=="bind" and u.function==index and u.holder=="self" and u.value and u.value.text==given for u in each.file.facts.uses) if given else False
    return False
