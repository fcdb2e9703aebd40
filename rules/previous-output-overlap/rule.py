"""The outputs of step i are bound while the forward pass of step i+1 runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, walk


class PreviousOutputOverlap(Rule):
    """What a step makes of its batch, not dropped before the next one makes its own."""

    code = "LK405"
    summary = "a step's outputs are alive until the next forward pass has ended"
    help = "del the outputs and the loss at the end of the step"
    default = False
    severity = "info"
    proof = "static only: a higher peak from the second step on, no growth from step to step"
    words = (".backward(", "loader")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what each loop binds to a model's outputs, or an object keeps of a batch."""
        for loop in module.loops:
            yield from self._kept_on_self(module, loop)
            if not shape.trains(loop.body) or _has_inner_training(module, loop):
                continue
            batch = set(shape.target_names(loop.target)) if isinstance(loop, cst.For) else set()
            for node in shape.own_nodes(loop.body):
                name = _bound_output(node, batch)
                if name and not _dropped(loop, name) and not _backwarded(loop, name):
                    yield self.hit(node, f"`{name}` of this step overlaps the next one's")

    def _kept_on_self(self, module: Module, loop: cst.For | cst.While) -> Iterator[Hit]:
        function = module.function_of(loop)
        if not isinstance(loop, cst.For) or not shape.loader_like(module, loop.iter, function):
            return
        batch = shape.target_names(loop.target)
        for node in shape.own_nodes(loop.body):
            name = _made_of_batch(node, batch)
            if name and not _emptied(loop, name) and not _backwarded(loop, name):
                yield self.hit(node, f"`{name}` of this batch overlaps the next one's")


def _made_of_batch(node: cst.CSTNode, batch: Sequence[str]) -> str:
    """`self.state.output = self._process(batch)`: what another function makes of a batch."""
    match node:
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Attribute() as kept)],
            value=cst.Call(func=func, args=args),
        ) if dotted(kept).startswith("self.") and dotted(func).startswith("self."):
            given = any(shape.mentions(arg.value, name) for arg in args for name in batch)
            return dotted(kept) if given else ""
    return ""


def _emptied(loop: cst.For, name: str) -> bool:
    """Whether the loop binds something else to it, or deletes it."""
    bound = (n for n in walk(loop.body) if isinstance(n, cst.AssignTarget))
    return _dropped(loop, name) or sum(dotted(each.target) == name for each in bound) > 1


def _has_inner_training(module: Module, loop: cst.For | cst.While) -> bool:
    return any(
        isinstance(node, (cst.For, cst.While)) and shape.trains(node.body)
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
    gone = (node.target for node in walk(loop.body) if isinstance(node, cst.Del))
    return any(_has(target, name) for target in gone)


def _backwarded(loop: cst.For | cst.While, name: str) -> bool:
    """`loss = model(x)`: a number, not worth a line."""
    return any(
        isinstance(node, cst.Attribute) and node.attr.value == "backward" and _has(node.value, name)
        for node in walk(loop.body)
    )


def _has(node: cst.BaseExpression, name: str) -> bool:
    """Whether it is the attribute of this name, or has the plain name anywhere in it."""
    return dotted(node) == name or shape.mentions(node, name)
