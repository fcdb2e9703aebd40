"""A rule with a safe fix: `keep(loss)` becomes `keep(loss.detach())`."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.model import Fix
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted


class KeepsLoss(Rule):
    """`keep` is given a loss."""

    code = "TOY101"
    summary = "keep() is given a loss with its graph"
    help = "give it loss.detach()"
    words = ("keep",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Flag every `keep(loss)`."""
        for call in module.calls:
            if dotted(call.func) == "keep" and [dotted(arg.value) for arg in call.args] == ["loss"]:
                edit = module.insert_after(call.args[0].value, ".detach()")
                yield self.hit(
                    call, "`loss` is kept with its graph", fix=Fix("detach it", (edit,), "safe")
                )
