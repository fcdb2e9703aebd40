"""A forward hook that moves outputs aside to be read later, with their graphs."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.model import Fix
from leakcheck.static import shape
from leakcheck.static.cuts import TITLES
from leakcheck.static.flow.fillers import empties, empty_container, home
from leakcheck.static.flow.gradient import mode_of
from leakcheck.static.module import Module
from leakcheck.static.queries import hooks
from leakcheck.static.queries.hooks import Hook, Store
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
        for hook in _forward_hooks(module):
            if shape.gradients_off(module, hook.body):
                continue
            for store in hooks.stores(module, hook):
                if not store.grows:
                    continue
                if (copied := _copied(store.node)) is not None:
                    message = f"`{module.code(copied)}` is a copy with the graph of its forward"
                    yield self.hit(store.node, message, fix=_fix(module, copied))
                elif name := _piled_up(module, hook, store):
                    message = f"`{name}` keeps the graph of every forward of the training loop"
                    yield self.hit(store.node, message)


def _forward_hooks(module: Module) -> list[Hook]:
    """List the functions registered as forward hooks by code that leaves gradients on."""
    found: dict[int, Hook] = {}
    for call in hooks.registrations(module):
        assert isinstance(call.func, cst.Attribute)
        forward = call.func.attr.value.startswith("register_forward")
        if forward and not _runs_without_gradient(module, call):
            found |= {id(each): each for each in hooks.functions_behind(module, call)}
    return list(found.values())


def _piled_up(module: Module, hook: Hook, store: Store) -> str:
    """Name the list of a training function that a hook inside of it fills, and nothing empties."""
    name = _root(store.target)
    function = home(module, hook, name)
    cut = any(isinstance(n, cst.Attribute) and n.attr.value in _CUTS for n in walk(store.node))
    if isinstance(function, cst.Module) or cut or not _starts_empty(function, name):
        return ""
    passes = (call for call in module.calls if shape.last_name(call) == "backward")
    trains = any(module.function_of(c) is function and module.loop_of(c) for c in passes)
    if empties(function, name) or not trains:
        return ""
    return name if not _unhooked_in_loop(module, function) else ""


def _starts_empty(function: cst.FunctionDef, name: str) -> bool:
    starts = (shape.given(node, name) for node in shape.own_nodes(function))
    return any(value is not None and empty_container(value) for value in starts)


def _unhooked_in_loop(module: Module, function: cst.FunctionDef) -> bool:
    removals = (call for call in hooks.removals(module) if module.function_of(call) is function)
    return any(module.loop_of(call) is not None for call in removals)


def _root(target: cst.BaseExpression) -> str:
    """Name the container of `seen`, `seen[name]` and `seen.setdefault(name, [])`."""
    match target:
        case cst.Name(value=name):
            return name
        case cst.Subscript(value=holder):
            return _root(holder)
        case cst.Call(func=cst.Attribute(value=holder, attr=cst.Name(value="setdefault"))):
            return _root(holder)
    return ""


def _runs_without_gradient(module: Module, call: cst.Call) -> bool:
    """Whether the code that registers the hook also switches gradients off."""
    around = module.class_of(call) or module.function_of(call)
    if around is None:
        return False
    switches = [node.item for node in walk(around) if isinstance(node, cst.WithItem)]
    switches += [node.decorator for node in walk(around) if isinstance(node, cst.Decorator)]
    modes = [mode_of(switch, module) for switch in switches]
    return any(sets and mode is not True for mode, sets in modes)


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
    return Fix(TITLES["detach"], (edit,), "safe")
