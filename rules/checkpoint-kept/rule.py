"""checkpoint = torch.load(...), and the name is still bound when training starts."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.queries import lifetime
from leakcheck.static.rule import Hit, Rule


class CheckpointKept(Rule):
    """Loaded checkpoints that stay bound through the training loop of the same scope."""

    code = "LK404"
    summary = "a loaded checkpoint stays bound through the whole training"
    help = "del it once the model and the optimizer have loaded it"
    severity = "info"
    proof = "static only: one constant copy, no growth from step to step"
    words = ("torch.load",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each torch.load in a scope that trains afterwards."""
        for call in module.calls_of("torch.load"):
            name = lifetime.bound_name(module, call)
            scope = module.function_of(call) or module.tree
            if (
                name
                and _trains_after(module, scope, call)
                and not _dropped(module, scope, name, call)
            ):
                yield self.hit(call, f"`{name}` holds a copy of the model while it trains")


def _trains_after(module: Module, scope: cst.CSTNode, call: cst.Call) -> bool:
    seen = False
    for node in shape.own_nodes(scope):
        seen = seen or node is call
        if seen and isinstance(node, (cst.For, cst.While)) and shape.trains(node.body):
            return True
    return False


def _dropped(module: Module, scope: cst.CSTNode, name: str, call: cst.Call) -> bool:
    """`del checkpoint`, or a rebinding, between the load and the training loop."""
    loaded = False
    for node in shape.own_nodes(scope):
        if loaded and isinstance(node, (cst.For, cst.While)) and shape.trains(node.body):
            return False
        if isinstance(node, cst.Del) and shape.mentions(node.target, name):
            return True
        if loaded and node is not call and shape.binds(node, name):
            return True
        loaded = loaded or node is call
    return False
