"""Gradients made with create_graph=True and put on .grad: a cycle that nothing frees."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule

Scope = cst.FunctionDef | cst.Module


class CreateGraphBackward(Rule):
    """Gradients with a graph are left on .grad: parameter -> .grad -> graph -> parameter."""

    code = "LK111"
    summary = "gradients with a graph stay on .grad and tie parameters into a cycle"
    help = "use torch.autograd.grad(..., create_graph=True), or set each .grad to None afterwards"
    severity = "error"
    words = ("create_graph",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Yield backward(create_graph=True), and such gradients put on .grad by hand."""
        message = "the gradients keep a graph that leads back to themselves"
        for call in module.calls:
            named = isinstance(call.func, cst.Attribute) and call.func.attr.value == "backward"
            asked = syntax.argument(call, "create_graph") if named else None
            if asked is None or syntax.constant(asked.value) is not True:
                continue
            scope = _scope(module, call)
            if not _resets(scope) or _fills_input(scope):
                yield self.hit(call, message)
        for statement in module.nodes(cst.Assign):
            if _puts_graph_on_grad(module, statement) and not _resets(_scope(module, statement)):
                yield self.hit(statement, message)


def _scope(module: Module, node: cst.CSTNode) -> Scope:
    return module.function_of(node) or module.tree


def _resets(scope: Scope) -> bool:
    """Whether gradients are set to None, or zero_grad is called, in the scope."""
    for node in syntax.walk(scope.body if isinstance(scope, cst.FunctionDef) else scope):
        match node:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="zero_grad"))):
                return True
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute() as target)]):
                if target.attr.value == "grad" and syntax.constant(node.value) is None:
                    return True
            case cst.Del(target=cst.Attribute(attr=cst.Name(value="grad"))):
                return True
    return False


def _fills_input(scope: Scope) -> bool:
    """Whether an input requires grad, whose gradient is read and which no optimizer resets."""
    inputs: set[str] = set()
    read: set[str] = set()
    for node in syntax.walk(scope.body if isinstance(scope, cst.FunctionDef) else scope):
        match node:
            case cst.Call(func=cst.Attribute(cst.Name(name), cst.Name("requires_grad_")), args=[]):
                inputs.add(name)
            case cst.Call(
                func=cst.Attribute(cst.Name(name), cst.Name("requires_grad_")), args=[given]
            ) if syntax.constant(given.value) is True:
                inputs.add(name)
            case cst.Assign(
                targets=[cst.AssignTarget(cst.Attribute(cst.Name(name), cst.Name(attribute)))]
            ):
                if attribute == "requires_grad" and syntax.constant(node.value) is True:
                    inputs.add(name)
                elif attribute == "grad":
                    return False
            case cst.Attribute(cst.Name(name), cst.Name("grad")):
                read.add(name)
            case cst.Call(func=cst.Attribute(attr=cst.Name("zero_" | "detach_"))) | cst.Del():
                return False
    return bool(inputs & read)


def _puts_graph_on_grad(module: Module, statement: cst.Assign) -> bool:
    """Whether `p.grad = g` stores a gradient made with create_graph, here or by a caller."""
    match statement:
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name(value="grad")))],
            value=cst.Name(value=stored),
        ):
            names = {stored} | _iterated(module, statement, stored)
            scope = _scope(module, statement)
            return any(_with_graph(module, scope, name) for name in names)
    return False


def _iterated(module: Module, node: cst.CSTNode, name: str) -> set[str]:
    """Name what the loops around the node iterate over to give `name` its values."""
    found: set[str] = set()
    for above in module.ancestors(node):
        if isinstance(above, cst.For) and name in _names(above.target):
            found |= _names(above.iter)
    return found


def _names(node: cst.CSTNode) -> set[str]:
    return {part.value for part in syntax.walk(node) if isinstance(part, cst.Name)}


def _with_graph(module: Module, scope: Scope, name: str) -> bool:
    if name in _made_with_graph(module, scope):
        return True
    if isinstance(scope, cst.Module):
        return False
    parameters = [parameter.name.value for parameter in syntax.parameters(scope)]
    if name not in parameters:
        return False
    for call in module.calls:
        if syntax.dotted(call.func).rpartition(".")[2] == scope.name.value:
            given = syntax.argument(call, name, parameters.index(name))
            known = _made_with_graph(module, _scope(module, call))
            if given is not None and isinstance(given.value, cst.Name):
                return given.value.value in known
    return False


def _made_with_graph(module: Module, scope: Scope) -> set[str]:
    """Name what a scope takes from torch.autograd.grad(..., create_graph=True or a variable)."""
    found: set[str] = set()
    for call in module.calls_of("torch.autograd.grad"):
        asked = syntax.argument(call, "create_graph")
        if asked is None or syntax.constant(asked.value) is False:
            continue
        statement = module.statement_of(call)
        if isinstance(statement, cst.Assign) and _scope(module, call) is scope:
            found |= {name for target in statement.targets for name in _names(target)}
    return found
