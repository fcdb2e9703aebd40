"""What a function catches from a model that it runs for nothing else, by a hook or a stand-in.

`layers[0].register_forward_hook(catch)`, or `layers[0] = Catcher(layers[0])`, and then `model(x)`
for each batch, whose result is thrown away: it calibrates or looks, and trains nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.facts import passes
from leakcheck.static.flow.attributes import attribute_of
from leakcheck.static.flow.fillers import home

if TYPE_CHECKING:
    from leakcheck.static.facts.model import Call, FileFacts
    from leakcheck.static.flow.records import GrowingPlace
    from leakcheck.static.flow.walk import Flow
    from leakcheck.static.module import Module


def is_caught(flow: Flow, growth: GrowingPlace) -> bool:
    """Whether a list takes in what passes through a model that is run for it, with its graph."""
    scope, module = flow.scope, flow.module
    runner = module.function_of(scope)
    if isinstance(scope, cst.Module) or runner is None or growth.how != "collect":
        return False
    if not _has_graph(flow, growth, scope, runner):
        return False
    name = attribute_of(growth)
    if home(module, scope, name) is not runner:
        return False
    return _only_runs(module, runner, name)


def _has_graph(
    flow: Flow, growth: GrowingPlace, scope: cst.FunctionDef, runner: cst.FunctionDef
) -> bool:
    """Whether a stand-in's input, or what a hook is shown beside keywords, is what is added."""
    if flow.is_forward:
        return flow.owner is not None and flow.owner.is_module and growth.added.carries
    shown = [parameter.name.value for parameter in syntax.parameters(scope)][1:]
    hooks = (call for call in flow.module.calls if flow.module.function_of(call) is runner)
    kind = next((kind for call in hooks if (kind := _hooked(call, scope.name.value))), "")
    seen = {"register_forward_pre_hook": shown[:1], "register_forward_hook": shown[:2]}
    return not growth.added.parameters.isdisjoint(seen.get(kind, ()))


def _hooked(call: cst.Call, function: str) -> str:
    """Return the method that a call registers a function by, "" for other calls."""
    match call:
        case cst.Call(
            func=cst.Attribute(attr=cst.Name(method)), args=[cst.Arg(cst.Name(name)), *_]
        ):
            return method if name == function else ""
    return ""


def _only_runs(module: Module, runner: cst.FunctionDef, name: str) -> bool:
    """Whether a function calls a model in a loop for nothing that it returns, with gradients on."""
    linked, index = module.facts, module.index_of(runner)
    facts = linked.facts
    if index is None or passes.needs_graph(facts, index) or passes.is_careful(facts, index):
        return False
    calls = [call for call in facts.calls_in(index) if call.loops and call.fate == "dropped"]
    runs = (call for call in calls if passes.is_forward(linked, call))
    if all(_is_let_go(facts, name, call) for call in runs):
        return False
    frozen = passes.freezes(linked, facts.functions[index])
    return not frozen and not passes.Passes().is_excused(linked, index)


def _is_let_go(facts: FileFacts, name: str, run: Call) -> bool:
    """Whether the loop that a model is run in gives the list up, or takes something out of it."""
    taken = [(use.function, use.at) for use in facts.local_uses
             if use.name == name and use.role == "take"]  # fmt: skip
    bound = [(each.function, each.at) for each in facts.bindings if each.name == name]
    first, last = run.outermost
    return any(
        function == run.function and first <= at.line <= last for function, at in (*taken, *bound)
    )
