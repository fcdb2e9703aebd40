"""return grad(energy, positions), energy: the gradient is taken, the graph goes along."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakcheck.static.facts.model import Call, Expr, FileFacts, FunctionFacts, Span
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import outline, outline_nodes_of, outline_walk
from leakcheck.static.torch_api import words


class DifferentiatedValueKept(Rule):
    """Values whose gradient was taken, and that a function still gives away with their graphs."""

    code = "LK114"
    summary = "a value is returned with the graph that its gradient was already taken from"
    help = "return value.detach(): its graph has served"
    proof = "static only: what grows depends on who keeps the result"
    words = ("grad(",)
    needs_torch = True

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what each function that calls autograd.grad returns or stores."""
        facts = module.facts.facts
        for call in facts.calls_by_name.get("grad", ()):
            name = "" if _is_closure(facts, call.function) else _differentiated(facts, call)
            for each in (name, *_sums_of(facts, call, name)) if name else ():
                for at in _given_away(module, call, each):
                    message = f"`{each}` leaves with its graph, after its gradient"
                    handed = _is_handed_on(facts, call.function)
                    yield self.hit(at, message, confidence="low" if handed else "medium")


def _is_closure(facts: FileFacts, function: int) -> bool:
    """Whether an optimizer's `step` is given the function: it asks for the loss, and drops it."""
    own = facts.function(function)
    if own is None or own.around < 0:
        return False
    steps = (call for call in facts.calls_in(own.around) if call.method == "step")
    given = (argument.value for call in steps for argument in call.arguments)
    return Expr("name", own.name) in given


def _is_handed_on(facts: FileFacts, function: int) -> bool:
    """Whether a nested function is only given to others, which may trace it and drop its result."""
    own = facts.function(function)
    if own is None or own.around < 0:
        return False
    given = (argument.value for call in facts.calls for argument in call.arguments)
    return Expr("name", own.name) in given and own.name not in facts.calls_by_name


def _differentiated(facts: FileFacts, call: Call) -> str:
    """Name what is differentiated for good: without create_graph and retain_graph."""
    if call.qualified not in ("torch.autograd.grad",) or call.function < 0:
        return ""
    for keyword in ("create_graph", "retain_graph"):
        if call.argument(keyword) not in (None, Expr("constant", "False")):
            return ""
    if any(given.keyword in ("*", "**") for given in call.arguments):
        return ""
    outputs = call.argument("outputs", 0)
    again = [other for other in facts.calls_in(call.function) if other.method in _USES]
    if outputs is None or len(again) > 1:
        return ""
    if outputs.kind == "name":
        return outputs.text
    if outputs.kind == "call" and outputs.text.endswith((".sum", ".mean")):
        return outputs.text.rpartition(".")[0]
    return outputs.names[0] if outputs.kind == "other" and len(outputs.names) == 1 else ""


_USES = ("grad", "backward")


def _sums_of(facts: FileFacts, call: Call, name: str) -> Iterator[str]:
    """Name what the value was added to in place: `energy.index_add_(0, index, energies)`."""
    for other in facts.calls_in(call.function):
        place = other.receiver if other.method in words("methods", "in_place_sums") else None
        if place is not None and place.kind == "name" and other.at < call.at:
            given = [argument.value for argument in other.arguments]
            if any(value.text == name or name in value.names for value in given):
                yield place.text


def _given_away(module: Module, call: Call, name: str) -> Iterator[Span]:
    """Yield where the value itself is returned, or put under a key of what may be."""
    facts = module.facts.facts
    function = facts.functions[call.function]
    here = [bound for bound in facts.bindings if bound.function == call.function]
    if any(bound.name == name and bound.at > call.at for bound in here):
        return
    for value, at in zip(function.returns, function.return_places, strict=True):
        if (value.kind == "name" and value.text == name) or (
            value.kind == "other" and name in value.plain and at > call.at
        ):
            yield at
    for use in facts.local_uses:
        stored = use.role == "slot" and use.value == Expr("name", name)
        if not stored or use.function != call.function or not use.key:
            continue
        if use.key.kind == "constant" and not _is_cut_on_return(module, function, use.name):
            yield use.at


def _is_cut_on_return(module: Module, function: FunctionFacts, holder: str) -> bool:
    """Whether all that was put under keys leaves cut: `return {k: v.detach() for k, v in ...}`."""
    tree = outline(module.source)
    found = outline_nodes_of(tree, ast.FunctionDef) if tree is not None else []
    inside = (node for own in found if own.lineno == function.at.line for node in outline_walk(own))
    returned = (node.value for node in inside if isinstance(node, ast.Return) and node.value)
    leaving = [value for value in returned if _mentions(value, holder)]
    return bool(leaving) and all(map(_cuts_each, leaving))


def _mentions(value: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in outline_walk(value))


def _cuts_each(value: ast.expr) -> bool:
    match value:
        case (
            ast.DictComp(value=ast.Call(func=ast.Attribute(attr=method)))
            | ast.ListComp(elt=ast.Call(func=ast.Attribute(attr=method)))
        ):
            return method in words("methods", "cut")
    return False
