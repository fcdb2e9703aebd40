"""backward(create_graph=True): gradients that carry a graph to the parameters they belong to."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule


class CreateGraphBackward(Rule):
    """backward(create_graph=True) leaves gradients that nothing resets: a reference cycle."""

    code = "LK111"
    summary = "backward(create_graph=True) ties parameters and gradients into a cycle"
    help = "use torch.autograd.grad(..., create_graph=True), or set each .grad to None afterwards"
    severity = "error"
    words = ("create_graph",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Yield each such call whose gradients are not reset in the same function or loop."""
        for call in module.calls:
            if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "backward":
                continue
            asked = syntax.argument(call, "create_graph")
            if asked is None or syntax.constant(asked.value) is not True:
                continue
            if not _resets(module, call):
                yield self.hit(call, "the gradients keep a graph that leads back to themselves")


def _resets(module: Module, call: cst.Call) -> bool:
    """Whether gradients are set to None, or zero_grad is called, around the call."""
    around = module.function_of(call) or module.tree
    for node in syntax.walk(around.body if isinstance(around, cst.FunctionDef) else around):
        match node:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="zero_grad"))):
                return True
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute() as target)]):
                if target.attr.value == "grad" and syntax.constant(node.value) is None:
                    return True
            case cst.Del(target=cst.Attribute(attr=cst.Name(value="grad"))):
                return True
    return False
