"""An evaluation that runs with gradients on and keeps its results."""

from __future__ import annotations

from leakcheck.static.graph_rule import GraphRule
from leakcheck.static.graphs import GraphLeak
from leakcheck.static.module import Module


class EvaluationWithGraph(GraphRule):
    """An evaluation keeps results with their graphs, because gradients are on."""

    code = "LK108"
    leak = "evaluation"
    summary = "an evaluation keeps results with their graphs, because gradients are on"
    help = "put the loop under torch.no_grad() or torch.inference_mode()"
    severity = "error"
    words = ("eval", "valid", "test", "predict", "infer")

    def message(self, module: Module, leak: GraphLeak) -> str:
        """Name the place that grows."""
        return f"`{leak.growth.target}` keeps the graph of every batch: gradients are on"
