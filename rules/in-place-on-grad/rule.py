"""Arithmetic that updates a tensor requiring grad at every turn."""

from __future__ import annotations

from leakcheck.static.graph_rule import GraphRule
from leakcheck.static.graphs import GraphLeak
from leakcheck.static.module import Module


class InPlaceOnGrad(GraphRule):
    """A tensor that requires grad is updated in every turn, and each update adds to its graph."""

    code = "LK105"
    leak = "in-place"
    summary = (
        "a tensor that requires grad is updated in every turn, and each update adds to its graph"
    )
    help = "update under torch.no_grad(), or update a detached copy"
    severity = "error"

    def message(self, module: Module, leak: GraphLeak) -> str:
        """Name the place that grows."""
        return f"`{leak.growth.target}` requires grad, so every turn adds to its graph"
