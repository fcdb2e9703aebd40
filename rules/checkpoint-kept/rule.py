"""checkpoint = torch.load(...), and the name is still bound when training starts."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.source.words import Pattern
from leakcheck.static import shape
from leakcheck.static.facts.link import Linked, Member
from leakcheck.static.facts.model import AttributeEffect, Call
from leakcheck.static.facts.runs import making_methods, trains_in
from leakcheck.static.module import LoopNode, Module
from leakcheck.static.queries import lifetime
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import walk


class CheckpointKept(Rule):
    """Loaded checkpoints that stay bound through a training loop, or as long as their object."""

    code = "LK404"
    summary = "a loaded checkpoint stays bound through the whole training"
    help = "del it once the model and the optimizer have loaded it"
    severity = "info"
    proof = "static only: one constant copy, no growth from step to step"
    words = ("torch.load",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each torch.load in a scope that trains afterwards."""
        for call in module.calls_of("torch.load"):
            name = lifetime.bound_name(module, call)
            scope = module.function_of(call) or module.tree
            if not name or not _is_of_state(scope, name):
                continue
            training = _training_after(module, scope, call)
            if training is not None and not _dropped(scope, name, call, training):
                yield self.hit(call, f"`{name}` holds a copy of the model while it trains")
        for member in module.facts.classes:
            for loaded in _left_on_self(module.facts, member):
                told = f"`{loaded.bound}` stays with its object, and only its constructor reads it"
                yield self.hit(loaded.at, told, confidence="medium")


def _left_on_self(linked: Linked, member: Member) -> Iterator[Call]:
    """Yield what a constructor loads into an attribute that is read until it is done, and kept."""
    facts, making = linked.facts, making_methods(member)
    for call in facts.calls_by_name.get("load", ()):
        own = call.qualified == "torch.load" and call.bound.startswith("self.")
        if not own or call.function not in making:
            continue
        name = call.bound.removeprefix("self.")
        uses = list(linked.uses_of(name, member))
        reads = [(other, use) for other, use in uses if use.role != "bind"]
        inside = all(other is facts and use.function in making for other, use in reads)
        escapes = any(use.role == "escape" for _, use in reads)
        kept = all(map(_loads, (use for _, use in uses if use.role == "bind")))
        if reads and inside and kept and not (escapes or linked.spelled_as_string(name)):
            yield call


def _loads(use: AttributeEffect) -> bool:
    """Whether an attribute is given a checkpoint: where it gets another value, it is let go of."""
    return use.value is not None and use.value.text == "torch.load"


def _is_of_state(scope: cst.CSTNode, name: str) -> bool:
    """Whether a state is restored of it, or an entry is asked for: it is no list of paths."""
    for node in shape.own_nodes(scope):
        match node:
            case cst.Call() if _RESTORES.match(shape.last_name(node)):
                if any(shape.mentions(arg.value, name) for arg in node.args):
                    return True
            case cst.Subscript(value=inner) | cst.Attribute(value=inner):
                if shape.mentions(inner, name):
                    return True
    return False


_RESTORES = Pattern(r"_*(<renews>)(_|$)")


def _training_after(module: Module, scope: cst.CSTNode, call: cst.Call) -> LoopNode | None:
    seen = False
    for node in shape.own_nodes(scope):
        seen = seen or node is call
        if seen and isinstance(node, (cst.For, cst.While)) and _trains(module, node):
            return node
    return None


def _trains(module: Module, loop: LoopNode) -> bool:
    """Whether a loop trains, itself or by a function that it calls."""
    called = (node.func for node in walk(loop.body) if isinstance(node, cst.Call))
    names = (each.value for each in called if isinstance(each, cst.Name))
    return shape.trains(loop.body) or any(trains_in(module.facts, name) for name in names)


def _dropped(scope: cst.CSTNode, name: str, call: cst.Call, training: LoopNode) -> bool:
    """`del checkpoint`, or a rebinding, between the load and the training loop."""
    loaded = False
    for node in shape.own_nodes(scope):
        if node is training:
            return False
        if isinstance(node, cst.Del) and shape.mentions(node.target, name):
            return True
        if loaded and node is not call and shape.binds(node, name):
            return True
        loaded = loaded or node is call
    return False
