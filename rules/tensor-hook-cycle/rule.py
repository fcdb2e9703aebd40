"""self.x.register_hook(<something that holds self>): a cycle through the graph's C++ nodes."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.queries import hooks
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted


class TensorHookCycle(Rule):
    """Gradient hooks over `self` on tensors that `self` holds."""

    code = "LK203"
    summary = "a tensor's gradient hook holds the object that holds the tensor"
    help = "hook a local tensor, or let the hook hold a weakref to the object"
    words = ("register_hook", "register_post_accumulate_grad_hook")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each registration on a tensor or graph node."""
        for call in hooks.registrations(module, "tensor-hooks"):
            assert isinstance(call.func, cst.Attribute)
            if not hooks.handle_dropped(module, call) and any(hooks.removals(module)):
                continue
            if not hooks.holds_self(module, hooks.hook_argument(call), call):
                continue
            if _reached_from_self(module, call, call.func.value):
                yield self.hit(
                    call, "the hook holds the object, and the object the hooked tensor: not freed"
                )


def _reached_from_self(module: Module, call: cst.Call, tensor: cst.BaseExpression) -> bool:
    function = module.function_of(call)
    if isinstance(tensor, cst.Name) and _stored(module, function, tensor.value):
        return True
    if function is not None and _cached(module, function, shape.root(tensor)):
        return True
    if not shape.origin(module, tensor, function).startswith("self."):
        return False
    return not isinstance(shape.root(tensor), cst.Name) or _walks_parameters(module, call)


def _cached(module: Module, function: cst.FunctionDef, tensor: cst.BaseExpression) -> bool:
    """Whether the method returns the tensor to a decorator that keeps it on the object."""
    keeps = any("cached" in module.code(mark.decorator) for mark in function.decorators)
    return keeps and any(
        isinstance(node, cst.Return) and node.value is not None and tensor.deep_equals(node.value)
        for node in shape.own_nodes(function)
    )


def _walks_parameters(module: Module, call: cst.Call) -> bool:
    """`for p in self.parameters()`: the loop variable is held by self."""
    loop = module.enclosing(call, cst.For)
    return loop is not None and shape.mentions(loop.iter, "self")


def _stored(module: Module, function: cst.FunctionDef | None, name: str) -> bool:
    """The local tensor is also kept: `self.x = name` or `self.xs.append(name)`."""
    for node in shape.own_nodes(function) if function is not None else ():
        match node:
            case cst.Assign(value=cst.Name(value=value)) if value == name:
                if any(dotted(t.target).startswith("self.") for t in node.targets):
                    return True
            case cst.Call(
                func=cst.Attribute(value=holder, attr=cst.Name(value="append")),
                args=[cst.Arg(value=cst.Name(value=value))],
            ) if value == name and dotted(holder).startswith("self."):
                return True
    return False
