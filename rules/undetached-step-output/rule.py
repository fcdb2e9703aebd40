"""A training step whose outputs Lightning or fairseq keeps with their graphs until it logs."""

from __future__ import annotations

import libcst as cst

from leakcheck.model import Fix
from leakcheck.static.flow.graphs import GraphLeak
from leakcheck.static.graph_rule import GraphRule, cut
from leakcheck.static.module import Module


class UndetachedStepOutput(GraphRule):
    """The outputs of a training step are kept with their graphs by Lightning or fairseq."""

    code = "LK109"
    leak = "step-output"
    summary = "a Lightning training step keeps its outputs with their graphs"
    help = "keep a detached copy: self.outputs.append(loss.detach())"
    severity = "error"
    words = ("training_step", "on_train_batch_end", "FairseqCriterion")

    def message(self, module: Module, leak: GraphLeak) -> str:
        """Name the place that grows."""
        return f"`{leak.growth.target}` keeps the graph of every training step until it is cleared"

    def fix(self, module: Module, leak: GraphLeak) -> Fix | None:
        """Offer .detach() on the stored copy."""
        if not isinstance(leak.node, cst.Call) or leak.growth.value.kind != "tensor":
            return None
        return cut(module, leak.growth.expression, "detach", "safe")
