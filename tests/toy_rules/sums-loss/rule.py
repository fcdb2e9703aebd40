"""A rule with an unsafe fix: `total += loss` becomes `total += loss.item()`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.model import Fix
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted


class SumsLoss(Rule):
    """A loss is summed."""

    code = "TOY102"
    summary = "a loss is summed with its graph"
    help = "use loss.item()"
    severity = "error"
    words = ("loss",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Flag every `... += loss`."""
        for statement in module.nodes(cst.AugAssign):
            if dotted(statement.value) == "loss":
                fix = Fix(
                    "add a number", (module.insert_after(statement.value, ".item()"),), "unsafe"
                )
                yield self.hit(statement, "the sum keeps the graph of every loss", fix=fix)
