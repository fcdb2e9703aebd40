"""Arithmetic that updates a tensor requiring grad at every turn."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakcheck.static.flow.analysis import analysis_of
from leakcheck.static.flow.graphs import GraphLeak
from leakcheck.static.graph_rule import GraphRule
from leakcheck.static.module import Module
from leakcheck.static.queries import copies, optimizers
from leakcheck.static.rule import Hit
from leakcheck.static.syntax import outline_nodes_of, outline_walk

_IN_PLACE = frozenset({"copy_", "add_"})


class InPlaceOnGrad(GraphRule):
    """A tensor that requires grad is updated in every turn, and each update adds to its graph."""

    code = "LK105"
    leak = "in-place"
    summary = (
        "a tensor that requires grad is updated in every turn, and each update adds to its graph"
    )
    help = "update under torch.no_grad(), or update a detached copy"
    severity = "error"

    def concerns(self, outline: ast.Module) -> bool:
        """Whether a loop updates something in place, be it by copying."""
        loops: list[ast.For | ast.AsyncFor] = outline_nodes_of(outline, ast.For, ast.AsyncFor)
        inside = (node for loop in loops for node in outline_walk(loop))
        return super().concerns(outline) or any(
            isinstance(node, ast.Attribute) and node.attr in _IN_PLACE for node in inside
        )

    def check(self, module: Module) -> Iterator[Hit]:
        """Yield the tensors that grow, and the copies of models that do."""
        yield from super().check(module)
        for update in copies.updates(module):
            what = analysis_of(module).code(update)
            yield self.hit(update, f"`{what}` adds the model's graph to the copy's own past")
        for update in optimizers.updates(module):
            what = analysis_of(module).code(update)
            yield self.hit(update, f"`{what}` gives the optimizer's state the parameter's graph")

    def message(self, module: Module, leak: GraphLeak) -> str:
        """Name the place that grows."""
        return f"`{leak.growth.target}` requires grad, so every turn adds to its graph"
