"""p.update = g for the parameters p of a module, and nothing ever takes it off."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.facts.model import AttributeEffect
from leakcheck.static.module import Module
from leakcheck.static.queries import growth
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import outline_nodes_of, outline_walk, walk


class TensorHungOnParameter(Rule):
    """Attributes that are set on parameters in a loop and never reset."""

    code = "LK310"
    proof = "static only: one tensor a parameter at most, so growth ends with the last layer"
    summary = "a tensor is hung on each parameter and never taken off"
    words = ("parameters()", "params")
    needs_torch = True
    help = "set the attribute to None once it is used, or keep the tensors in a local list"

    def concerns(self, outline: ast.Module) -> bool:
        """Only a loop that sets an attribute of its first variable can matter."""
        return any(map(_sets_attribute, outline_nodes_of(outline, ast.For)))

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at loops over parameters that set an attribute of the loop variable."""
        for loop in module.nodes(cst.For):
            names = shape.target_names(loop.target)
            function = module.function_of(loop)
            if not names or not _over_parameters(module, loop, function):
                continue
            if _are_detached(module, loop, function):
                continue  # no graph either
            for node in shape.own_nodes(loop.body):
                attribute = _hung(node, names)
                if attribute and shape.gradients_off(module, node):
                    continue  # no graph, and one tensor for each at most
                if attribute and not _taken_off(module, attribute, node):
                    yield self.hit(node, f"`{attribute}` stays on the parameter, with its graph")


def _are_detached(module: Module, loop: cst.For, function: cst.FunctionDef | None) -> bool:
    """Whether a list that the loop goes over is `[g.detach() for g in grads]`."""
    named = [n.value for n in walk(loop.iter) if isinstance(n, cst.Name)]
    for node in shape.own_nodes(function) if function is not None else ():
        match node:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Name(value=name))],
                value=cst.ListComp(elt=cst.Call(func=cst.Attribute(attr=cst.Name(value="detach")))),
            ) if name in named:
                return True
    return False


def _sets_attribute(loop: ast.For) -> bool:
    variables = {n.id for n in outline_walk(loop.target) if isinstance(n, ast.Name)}
    for node in outline_walk(loop):
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=name))]) if name in variables:
                return True
    return False


def _over_parameters(module: Module, loop: cst.For, function: cst.FunctionDef | None) -> bool:
    """`in model.parameters()`, `in zip(params, grads)` with params = list(model.parameters())."""
    if "parameters()" in module.code(loop.iter):
        return True
    if function is None:
        return False
    named = {n.value for n in walk(loop.iter) if isinstance(n, cst.Name)}
    first = next(
        (n.value for n in walk(loop.iter) if isinstance(n, cst.Name) and n.value not in _WRAPPERS),
        "",
    )
    for node in shape.own_nodes(function):
        if shape.binds(node, first) and "parameters()" in module.code(node):
            return True
    return first in ("params", "parameters") and first in named


_WRAPPERS = ("zip", "enumerate", "list", "tqdm", "reversed")


def _hung(node: cst.CSTNode, names: list[str]) -> str:
    """The attribute that gets another loop variable or a tensor expression, not a constant."""
    match node:
        case cst.Assign(
            targets=[
                cst.AssignTarget(target=cst.Attribute(value=cst.Name(value=owner), attr=attr))
            ],
            value=value,
        ) if owner == names[0] and attr.value not in _ORDINARY:
            others = set(names[1:])
            if any(isinstance(n, cst.Name) and n.value in others for n in walk(value)):
                return attr.value
    return ""


_ORDINARY = frozenset(["grad", "data", "requires_grad"])


def _taken_off(module: Module, attribute: str, store: cst.CSTNode) -> bool:
    if growth.named_in_text(module, attribute) and "delattr" in module.source:
        return True
    if any(
        use.role == "drop" or (use.role == "bind" and use.act is not store)
        for use in growth.uses(module, attribute)
    ):
        return True
    elsewhere = (use for facts, use in module.facts.uses(attribute) if facts != module.facts.facts)
    return any(use.role == "take" or _is_none(use) for use in elsewhere)


def _is_none(use: AttributeEffect) -> bool:
    """Whether an attribute of something else than self is given None."""
    given = use.value.text if use.role == "bind" and use.value is not None else ""
    return given == "None" and use.holder != "self"
