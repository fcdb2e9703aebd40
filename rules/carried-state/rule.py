"""State that goes round a loop, or from call to call, with the graph of every turn behind it."""

from __future__ import annotations

from leakcheck.static.flow.graphs import GraphLeak
from leakcheck.static.graph_rule import GraphRule
from leakcheck.static.module import Module


class CarriedState(GraphRule):
    """State carried from step to step keeps the graph of every earlier step."""

    code = "LK107"
    leak = "carried"
    summary = "state carried from step to step keeps the graph of every earlier step"
    help = "detach the state before the next step: state = state.detach()"
    severity = "error"
    words = ("backward", ".eval(", "forward", "DiffusionPipeline")

    def message(self, module: Module, leak: GraphLeak) -> str:
        """Name the place that grows."""
        return f"`{leak.growth.target}` goes into the next step with the graph of every earlier one"
