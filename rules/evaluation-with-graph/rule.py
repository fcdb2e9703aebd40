"""An evaluation that runs with gradients on and keeps its results."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static.flow.graphs import GraphLeak
from leakcheck.static.graph_rule import GraphRule
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit


class EvaluationWithGraph(GraphRule):
    """An evaluation keeps results with their graphs, because gradients are on."""

    code = "LK108"
    leak = "evaluation"
    summary = "an evaluation keeps results with their graphs, because gradients are on"
    help = "put the loop under torch.no_grad() or torch.inference_mode()"
    severity = "error"
    words = ("eval", "valid", "test", "predict", "infer", "def forward", "register_forward")

    def check(self, module: Module) -> Iterator[Hit]:
        """Pass over scopes that freeze parameters: those models may make no graph at all."""
        frozen = {module.function_of(node) for node in _freezing(module)}
        for hit in super().check(module):
            assert isinstance(hit.node, cst.CSTNode)  # graphs are found in the tree
            if not frozen & {module.function_of(hit.node), None}:
                yield hit

    def message(self, module: Module, leak: GraphLeak) -> str:
        """Name the place that grows."""
        return f"`{leak.growth.target}` keeps the graph of every batch: gradients are on"


def _freezing(module: Module) -> Iterator[cst.CSTNode]:
    for assign in module.nodes(cst.Assign):
        match assign:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name("requires_grad")))],
                value=cst.Name("False"),
            ):
                yield assign
    yield from (call for call in module.calls if _switches_off(call))


def _switches_off(call: cst.Call) -> bool:
    match call:
        case cst.Call(
            func=cst.Attribute(attr=cst.Name("requires_grad_")),
            args=[cst.Arg(value=cst.Name("False"))],
        ):
            return True
    return False
