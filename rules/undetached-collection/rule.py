"""A list or dict that keeps the autograd graph of everything put into it."""

from __future__ import annotations

import libcst as cst

from leakcheck.model import Fix
from leakcheck.static.flow.graphs import GraphLeak
from leakcheck.static.graph_rule import GraphRule, cut
from leakcheck.static.module import Module


class UndetachedCollection(GraphRule):
    """A collection keeps the autograd graph of every value put into it."""

    code = "LK102"
    leak = "collection"
    summary = "a collection keeps the autograd graph of every value put into it"
    help = "store .detach() of the tensor, or .item() for a number"
    severity = "error"
    words = (*GraphRule.words, "forward", ".detach(", ".data")

    def message(self, module: Module, leak: GraphLeak) -> str:
        """Name the place that grows."""
        return f"`{leak.growth.target}` keeps the autograd graph of every value put into it"

    def fix(self, module: Module, leak: GraphLeak) -> Fix | None:
        """Offer .detach() on the stored copy."""
        if not isinstance(leak.node, cst.Call) or leak.growth.value.kind != "tensor":
            return None
        return cut(module, leak.growth.expression, "detach", "safe")
