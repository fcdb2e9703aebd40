"""A module that updates statistics on self from values that carry a graph."""

from __future__ import annotations

from leakcheck.static.flow.graphs import GraphLeak
from leakcheck.static.graph_rule import GraphRule
from leakcheck.static.module import Module


class UndetachedStatistics(GraphRule):
    """Statistics kept on a module are updated with values that carry a graph."""

    code = "LK106"
    leak = "statistics"
    summary = "statistics kept on a module are updated with values that carry a graph"
    help = "update them under torch.no_grad(), or from a detached value"
    severity = "error"
    words = ("forward", "parameters()")

    def message(self, module: Module, leak: GraphLeak) -> str:
        """Name the place that grows."""
        return f"`{leak.growth.target}` keeps the graph of every value it is updated with"
