"""The outputs of step i are bound while the forward pass of step i+1 runs."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.source.words import says
from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import constant, dotted, walk


class PreviousOutputOverlap(Rule):
    """Model outputs of a training loop that are not dropped before the next forward pass."""

    code = "LK405"
    summary = "a step's outputs are alive until the next forward pass has ended"
    help = "del the outputs and the loss at the end of the step"
    default = False
    severity = "info"
    proof = "static only: a higher peak from the second step on, no growth from step to step"
    words = (".backward(", "output = ", "outputs = ", "embeddings = ", "features = ")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what each training loop binds to a model's outputs."""
        yield from self._renewed(module)
        for loop in module.loops:
            yield from self._kept_outside(module, loop)
            if not shape.trains(module, loop.body) or _has_inner_training(module, loop):
                continue
            batch = set(shape.target_names(loop.target)) if isinstance(loop, cst.For) else set()
            for node in shape.own_nodes(loop.body):
                name = _bound_output(node, batch)
                if name and not _dropped(loop, name) and not _backwarded(loop, name):
                    yield self.hit(node, f"`{name}` of this step overlaps the next one's")

    def _kept_outside(self, module: Module, loop: cst.For | cst.While) -> Iterator[Hit]:
        """`self.state.output = step(batch)`: the old one is there until the new one is."""
        if not isinstance(loop, cst.For) or not shape.loader_like(module, loop.iter, None):
            return
        batch = set(shape.target_names(loop.target))
        for node in shape.own_nodes(loop.body):
            name = _attribute_given_output(node, batch)
            if name and not _dropped(loop, name) and not _emptied(loop, name):
                yield self.hit(node, f"`{name}` of this step overlaps the next one's")

    def _renewed(self, module: Module) -> Iterator[Hit]:
        """`self.embeddings = self.embed(texts)` in an `update_...`: both are there for a while."""
        for method in module.functions:
            if not (shape.is_method(method) and says(method.name.value, "renews")):
                continue
            for node in shape.own_nodes(method):
                name = _attribute_renewed(node)
                if name and not _emptied(method, name):
                    yield self.hit(node, f"the old `{name}` is kept until the new one is made")


def _attribute_renewed(node: cst.CSTNode) -> str:
    """Name the attribute, of embeddings or features, that a method of the object makes anew."""
    match node:
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Attribute() as target)],
            value=cst.Call(func=cst.Attribute(value=cst.Name("self")), args=args),
        ) if dotted(target).startswith("self.") and says(dotted(target), "learned"):
            reads = any(shape.mentions(arg, dotted(target)) for arg in args)
            return "" if reads else dotted(target)
    return ""


def _attribute_given_output(node: cst.CSTNode, batch: set[str]) -> str:
    """Name the attribute, called an output, that is given what a call makes of the batch."""
    match node:
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name(word)) as target)],
            value=cst.Call(args=args),
        ) if word in ("output", "outputs"):
            given = {arg.value.value for arg in args if isinstance(arg.value, cst.Name)}
            return dotted(target) if given & batch else ""
    return ""


def _emptied(around: cst.For | cst.FunctionDef, name: str) -> bool:
    return any(
        isinstance(node, cst.Assign)
        and constant(node.value) is None
        and any(dotted(target.target) == name for target in node.targets)
        for node in walk(around.body)
    )


def _has_inner_training(module: Module, loop: cst.For | cst.While) -> bool:
    return any(
        isinstance(node, (cst.For, cst.While)) and shape.trains(module, node.body)
        for node in shape.own_nodes(loop.body)
    )


def _bound_output(node: cst.CSTNode, batch: set[str]) -> str:
    """`logits = model(x)`: the one name that the whole output of a model is bound to."""
    match node:
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Name(value=name))], value=cst.Call() as call
        ) if dotted(call.func) in ("model", "net", "self.model", "self.net", "network"):
            return name
    return ""


def _dropped(loop: cst.For | cst.While, name: str) -> bool:
    for node in walk(loop.body):
        if isinstance(node, cst.Del) and shape.mentions(node.target, name):
            return True
    return False


def _backwarded(loop: cst.For | cst.While, name: str) -> bool:
    """`loss = model(x)`: a number, not worth a line."""
    return any(
        isinstance(node, cst.Attribute)
        and node.attr.value == "backward"
        and shape.mentions(node.value, name)
        for node in walk(loop.body)
    )
