"""A running total that keeps the autograd graph of everything added to it."""

from __future__ import annotations

import libcst as cst

from leakcheck.model import Fix
from leakcheck.static.flow.graphs import GraphLeak
from leakcheck.static.graph_rule import GraphRule, cut
from leakcheck.static.module import Module


class UndetachedAccumulator(GraphRule):
    """A running total keeps the autograd graph of every value added to it."""

    code = "LK101"
    leak = "accumulator"
    summary = "a running total keeps the autograd graph of every value added to it"
    help = "add the number, not the tensor: .item(), or .detach() to stay on the device"
    severity = "error"
    words = (*GraphRule.words, ".detach(", ".data")

    def message(self, module: Module, leak: GraphLeak) -> str:
        """Name the place that grows."""
        until = " until it starts anew" if leak.relieved else ""
        return f"`{leak.growth.target}` keeps the autograd graph of every value added to it{until}"

    def fix(self, module: Module, leak: GraphLeak) -> Fix | None:
        """Offer .item() on what is added; unsafe, because it waits for the device."""
        if not isinstance(leak.node, cst.AugAssign):
            return None
        return cut(module, leak.growth.expression, "item", "unsafe")
