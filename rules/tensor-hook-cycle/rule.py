"""self.x.register_hook(<something that holds self>): a cycle through the graph's C++ nodes."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.facts.runs import is_made_again
from leakcheck.static.module import Module
from leakcheck.static.queries import growth, hooks, switches
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
            if _is_made_with_object(module, call) or switches.is_switched_off(module, call):
                continue
            leaf = _is_parameter(module, call.func.value) or _is_made_leaf(module, call)
            if call.func.attr.value == "register_hook" and leaf:
                continue
            if _reached_from_self(module, call, call.func.value):
                owner = module.member_of(call)
                again = owner is not None and is_made_again(owner)
                yield self.hit(
                    call,
                    "the hook holds the object, and the object the hooked tensor: not freed",
                    confidence="high" if again else "low",
                )


def _is_made_with_object(module: Module, call: cst.Call) -> bool:
    """Whether a constructor hooks one after the other: an optimizer does so, for its whole life."""
    function = module.function_of(call)
    constructed = function is not None and function.name.value == "__init__"
    return constructed and module.loop_of(call) is not None


def _is_parameter(module: Module, tensor: cst.BaseExpression) -> bool:
    """Whether the tensor is a leaf, whose hooks Python keeps and its collector sees."""
    loop = module.enclosing(tensor, cst.For)
    if loop is not None and dotted(tensor) in shape.target_names(loop.target):
        return "parameters()" in module.code(loop.iter)
    spelled = dotted(tensor)
    made = (
        use.value
        for _, use in module.facts.uses(spelled.removeprefix("self."))
        if use.role == "bind" and use.value is not None
    )
    return spelled.startswith("self.") and any(
        value.kind == "call" and value.text.endswith("Parameter") for value in made
    )


def _is_made_leaf(module: Module, call: cst.Call) -> bool:
    """Whether the function has told the tensor to require grad, as leaves alone are told."""
    assert isinstance(call.func, cst.Attribute)
    told = f"{dotted(call.func.value)}.requires_grad_"
    function = module.function_of(call)
    return any(
        dotted(each.func) == told and module.function_of(each) is function for each in module.calls
    )


def _reached_from_self(module: Module, call: cst.Call, tensor: cst.BaseExpression) -> bool:
    function = module.function_of(call)
    if function is None:
        return shape.origin(module, tensor, None).startswith("self.")
    if isinstance(tensor, cst.Name) and _is_kept(module, function, tensor.value):
        return True
    if _cached(module, function, shape.root(tensor)):
        return True
    if not shape.origin(module, tensor, function).startswith("self."):
        return False
    return not isinstance(shape.root(tensor), cst.Name) or _walks_parameters(module, call)


def _is_kept(module: Module, function: cst.FunctionDef, name: str) -> bool:
    return bool(_kept_as(module, function, name)) or _kept_by_sibling(module, function, name)


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


def _kept_as(module: Module, function: cst.FunctionDef, name: str, *, handed: bool = True) -> str:
    """Name the attribute that keeps a local tensor, through a method of the class too; else "".

    `self.x = name`, `self.xs.append(name)`, `self.keep(name)`.
    """
    for node in shape.own_nodes(function):
        match node:
            case cst.Assign(value=cst.Name() as value) if _is(module, value, function, name):
                kept = (dotted(target.target) for target in node.targets)
                if place := next((each for each in kept if each.startswith("self.")), ""):
                    return place
            case cst.Call(
                func=cst.Attribute(value=holder, attr=cst.Name(value="append")),
                args=[cst.Arg(value=cst.Name() as value)],
            ) if dotted(holder).startswith("self.") and _is(module, value, function, name):
                return dotted(holder)
            case cst.Call(func=cst.Attribute(value=cst.Name("self"))) if handed:
                if place := _kept_by_method(module, node, name):
                    return place
    return ""


def _is(module: Module, value: cst.Name, function: cst.FunctionDef, name: str) -> bool:
    return value.value == name or shape.origin(module, value, function) == name


def _kept_by_method(module: Module, call: cst.Call, name: str) -> str:
    """`self.keep(name)`, where `def keep(self, x): self.x = x`."""
    owner = module.class_of(call)
    method = module.methods(owner).get(shape.last_name(call)) if owner is not None else None
    if method is None:
        return ""
    for arg, parameter in zip(call.args, shape.parameter_names(method), strict=False):
        plain = isinstance(arg.value, cst.Name) and not (arg.keyword or arg.star)
        if plain and dotted(arg.value) == name:
            return _kept_as(module, method, parameter, handed=False)
    return ""


def _kept_by_sibling(module: Module, function: cst.FunctionDef, name: str) -> bool:
    """Whether another hook on the same layer, which gets the same output, keeps it for good."""
    if name not in shape.parameter_names(function):
        return False
    at = shape.parameter_names(function).index(name)
    registered = [
        (module.code(call.func), method)
        for call in hooks.registrations(module)
        for method in hooks.functions_behind(module, call)
        if module.class_of(method) is module.class_of(function)
    ]
    layers = {layer for layer, method in registered if method is function}
    for layer, method in registered:
        names = shape.parameter_names(method)
        if layer in layers and isinstance(method, cst.FunctionDef) and at < len(names):
            place = _kept_as(module, method, names[at])
            uses = growth.uses(module, place.rpartition(".")[2]) if place else []
            if place and not any(use.role == "drop" for use in uses):
                return True
    return False
