"""A loss summed over all the data and differentiated only once, after the loop."""

from __future__ import annotations

from leakcheck.static.flow.graphs import GraphLeak
from leakcheck.static.graph_rule import GraphRule
from leakcheck.static.module import Module


class EpochLongGraph(GraphRule):
    """One backward after the loop over the data keeps the graph of the whole epoch alive."""

    code = "LK104"
    leak = "epoch-long"
    summary = "one backward after the loop over the data keeps the graph of the whole epoch alive"
    help = "call backward() inside the loop: gradients add up by themselves"
    severity = "error"

    def message(self, module: Module, leak: GraphLeak) -> str:
        """Name the place that grows."""
        return f"`{leak.growth.target}` holds the graph of every batch until the late backward"
