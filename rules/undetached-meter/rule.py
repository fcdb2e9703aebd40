"""A meter that sums or collects what it is given, fed a value that carries a graph."""

from __future__ import annotations

from leakcheck.static.flow.analysis import analysis_of
from leakcheck.static.flow.graphs import GraphLeak
from leakcheck.static.graph_rule import GraphRule
from leakcheck.static.module import Module


class UndetachedMeter(GraphRule):
    """A meter keeps the autograd graph of every value it is given."""

    code = "LK103"
    leak = "meter"
    summary = "a meter keeps the autograd graph of every value it is given"
    help = "detach inside the meter, or pass loss.item()"
    severity = "error"
    words = ("backward", "_loss(", "entropy(", "ignite.metrics", "engine.state.output")

    def message(self, module: Module, leak: GraphLeak) -> str:
        """Name the attribute that grows, and the call that feeds it."""
        keeps = f"`{leak.growth.target}` keeps the autograd graph of every value it is given"
        if leak.feed is None:
            return keeps
        if leak.node is leak.feed.call:
            return f"`{leak.feed.owner.name}`: {keeps}, here a value with a graph"
        return f"{keeps}, as by `{analysis_of(module).code(leak.feed.call)}`"
