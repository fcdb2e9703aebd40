"""A Lightning training step that keeps its outputs with their graphs until the epoch ends."""

from __future__ import annotations

import libcst as cst

from leakcheck.model import Fix
from leakcheck.static.graph_rule import GraphRule, cut
from leakcheck.static.graphs import GraphLeak
from leakcheck.static.module import Module


class UndetachedStepOutput(GraphRule):
    """A Lightning training step keeps its outputs with their graphs."""

    code = "LK109"
    leak = "step-output"
    summary = "a Lightning training step keeps its outputs with their graphs"
    help = "keep a detached copy: self.outputs.append(loss.detach())"
    severity = "error"
    words = ("training_step", "on_train_batch_end")

    def message(self, module: Module, leak: GraphLeak) -> str:
        """Name the place that grows."""
        return f"`{leak.growth.target}` keeps the graph of every training step until it is cleared"

    def fix(self, module: Module, leak: GraphLeak) -> Fix | None:
        """Offer .detach() on the stored copy."""
        if not isinstance(leak.node, cst.Call) or leak.growth.value.kind != "tensor":
            return None
        return cut(module, leak.growth.expression, "detach", "safe")
