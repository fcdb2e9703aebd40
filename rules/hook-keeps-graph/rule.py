"""A forward hook that moves outputs aside to be read later, with their graphs."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.model import Fix
from leakcheck.static import hooks, shape
from leakcheck.static.gradient import mode_of
from leakcheck.static.graph_rule import TITLES
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import walk

_CUTS = frozenset({"detach", "data", "item", "numpy", "tolist"})


class HookKeepsGraph(Rule):
    """A forward hook stores a copy of an output that still carries the graph."""

    code = "LK110"
    summary = "a forward hook stores copies of outputs that still carry their graphs"
    help = "store output.detach().cpu()"
    severity = "error"
    words = ("register_forward",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what forward hooks append: a copy for later is meant to be read, not trained."""
        registered = {
            id(hook)
            for call in module.calls
            if isinstance(call.func, cst.Attribute)
            and call.func.attr.value.startswith("register_forward")
            for hook in [_hook(module, call)]
            if hook is not None and not _runs_without_gradient(module, call)
        }
        for function in module.functions:
            if id(function) not in registered or shape.gradients_off(module, function.body):
                continue
            for store in hooks.stores(module, function):
                copied = _copied(store.node) if store.grows else None
                if copied is not None:
                    message = f"`{module.code(copied)}` is a copy with the graph of its forward"
                    yield self.hit(store.node, message, fix=_fix(module, copied))


def _runs_without_gradient(module: Module, call: cst.Call) -> bool:
    """Whether the code that registers the hook also switches gradients off."""
    around = module.class_of(call) or module.function_of(call)
    if around is None:
        return False
    switches = [node.item for node in walk(around) if isinstance(node, cst.WithItem)]
    switches += [node.decorator for node in walk(around) if isinstance(node, cst.Decorator)]
    modes = [mode_of(switch, module) for switch in switches]
    return any(sets and mode is not True for mode, sets in modes)


def _hook(module: Module, call: cst.Call) -> cst.FunctionDef | None:
    if not call.args:
        return None
    match hooks.hook_argument(call):
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return next((f for f in module.functions if f.name.value == name), None)
    return None


def _copied(node: cst.CSTNode) -> cst.Call | None:
    """Find `x.cpu()` or `x.clone()` in a store that nothing detaches."""
    found = None
    for part in walk(node):
        if isinstance(part, cst.Attribute) and part.attr.value in _CUTS:
            return None
        match part:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="cpu" | "clone"))):
                found = found or part
    return found


def _fix(module: Module, copied: cst.Call) -> Fix:
    assert isinstance(copied.func, cst.Attribute)
    edit = module.insert_after(copied.func.value, ".detach()")
    return Fix(TITLES[".detach()"], (edit,), "safe")
