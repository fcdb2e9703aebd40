"""Is autograd recording here? no_grad blocks, decorators, switches and framework hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.source.words import Pattern
from leakcheck.static import syntax
from leakcheck.static.facts.targets import are_related
from leakcheck.static.torch_api import grad_mode, is_hook_without_grad

if TYPE_CHECKING:
    from leakcheck.static.flow.classes import ClassInfo
    from leakcheck.static.module import Module

MOST_CALLERS = 3  # functions between a call and the one that switches gradients
_SWITCHES_OFF = Pattern(r"(?i)<gradients_off>")


def mode_of(node: cst.BaseExpression, module: Module) -> tuple[bool | None, bool]:
    """Return (the mode a context manager or decorator sets, whether it sets one at all).

    The mode is True or False, or None when it depends on a value we do not know.
    """
    if isinstance(node, cst.IfExp):
        modes = [mode_of(part, module) for part in (node.body, node.orelse)]
        return None, any(sets for _, sets in modes)
    function = node.func if isinstance(node, cst.Call) else node
    mode = grad_mode(module.qualified(function))
    if mode == "set":
        wanted = node.args[0].value if isinstance(node, cst.Call) and node.args else None
        value = syntax.constant(wanted)
        return (value if isinstance(value, bool) else None), True
    if mode == "off" and isinstance(node, cst.Call) and node.args:
        value = syntax.constant(node.args[0].value)  # inference_mode(mode)
        return (not value if isinstance(value, bool) else None), True
    if mode:
        return mode == "on", True
    spelled = syntax.dotted(function)
    if _SWITCHES_OFF.search(spelled.rpartition(".")[2]):
        return (None if isinstance(node, cst.Call) and node.args else False), True
    return True, False


def decorated_mode(
    function: cst.FunctionDef, module: Module, owner: ClassInfo | None
) -> bool | None:
    """Return the gradient mode a function's body starts with."""
    for decorator in function.decorators:
        mode, sets = mode_of(decorator.decorator, module)
        if sets:
            return mode
    if owner is not None:
        if owner.has_lightning_hooks and is_hook_without_grad(function.name.value):
            return False
        if owner.is_detached_metric and function.name.value in ("update", "compute", "forward"):
            return False
    return module_mode(module)


def module_mode(module: Module) -> bool:
    """Return False when the module switches gradients off for good, at its top level."""
    for call in module.calls_of("torch.set_grad_enabled"):
        argument = call.args[0].value if call.args else None
        bare = not isinstance(module.parent(call), cst.WithItem)
        if bare and module.function_of(call) is None and syntax.constant(argument) is False:
            return False
    return True


def switches_inside(module: Module, node: cst.CSTNode) -> bool:
    """Whether gradients are switched off, or by a value, for some of a node."""
    items = (part.item for part in syntax.walk(node) if isinstance(part, cst.WithItem))
    return any(sets and mode is not True for mode, sets in (mode_of(i, module) for i in items))


def freezes(module: Module) -> bool:
    """Whether a function takes parameters out of training, and leaves none in."""
    wanted: dict[cst.CSTNode | None, set[object]] = {}
    for node in (*module.nodes(cst.Assign), *module.calls):
        match node:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name("requires_grad")))],
                value=value,
            ):
                pass
            case cst.Call(
                func=cst.Attribute(attr=cst.Name("requires_grad_")), args=[cst.Arg(value=value), *_]
            ):
                pass
            case _:
                continue
        wanted.setdefault(module.function_of(node), set()).add(syntax.constant(value))
    return any(False in each and True not in each for each in wanted.values())


def called_without_gradient(module: Module, function: cst.FunctionDef, depth: int = 0) -> bool:
    """Whether some caller in the module runs the function under no_grad."""
    name = function.name.value
    for call in module.calls:
        spelled = call.func
        called = spelled.attr.value if isinstance(spelled, cst.Attribute) else None
        called = spelled.value if isinstance(spelled, cst.Name) else called
        if called != name or _is_of_other_class(module, spelled, function):
            continue
        if runs_without_gradient(module, call, depth):
            return True
    return False


def _is_of_other_class(
    module: Module, spelled: cst.BaseExpression, function: cst.FunctionDef
) -> bool:
    """Whether `self.update(x)` is the method of a class that has nothing to do with this one's."""
    if not syntax.dotted(spelled).startswith("self."):
        return False
    here, there = module.member_of(spelled), module.member_of(function)
    return here is not None and there is not None and not are_related(here, there)


def runs_without_gradient(module: Module, node: cst.CSTNode, depth: int = 0) -> bool:
    """Whether a node is under no_grad, by itself or by some caller in the module."""
    for above in module.ancestors(node):
        modes: list[tuple[bool | None, bool]] = []
        if isinstance(above, cst.With):
            modes = [mode_of(item.item, module) for item in above.items]
        if isinstance(above, cst.FunctionDef):
            modes = [mode_of(mark.decorator, module) for mark in above.decorators]
        if any(sets and mode is not True for mode, sets in modes):
            return True
        if isinstance(above, cst.FunctionDef):
            owner = module.parent(module.parent(above) or above)
            hook = isinstance(owner, cst.ClassDef) and bool(owner.bases)
            if hook and is_hook_without_grad(above.name.value):
                return True
            return depth < MOST_CALLERS and called_without_gradient(module, above, depth + 1)
    return False
