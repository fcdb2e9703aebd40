"""self.attention = weights in forward, and nobody ever looks."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.facts.link import Linked, Member
from leakcheck.static.facts.model import AttributeEffect
from leakcheck.static.flow.analysis import analysis_of
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.torch_api import makes_module


class OutputNeverRead(Rule):
    """Tensors with a graph that forward leaves on its module, and that nothing reads."""

    code = "LK321"
    summary = "a forward pass leaves a tensor with its graph on the module, and nothing reads it"
    help = "use a local name, or detach what others shall look at"
    severity = "info"
    proof = "static only: one pass's activations until the next, no growth from step to step"
    words = ("def forward",)
    needs_torch = True

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what the forward method of each module binds on self."""
        linked = module.facts
        for member in linked.classes:
            forward = member.facts.methods.get("forward")
            if forward is None or not linked.is_module(member):
                continue
            if not all(map(makes_module, linked.foreign_bases(member))):  # another base may read it
                continue
            for use in linked.facts.uses:
                if use.function != forward or not _is_left(linked, member, use):
                    continue
                if _carries_graph(module, member, use):
                    told = f"`self.{use.name}` keeps the pass's graph until the next, for nobody"
                    yield self.hit(use.at, told, confidence="medium")


def _is_left(linked: Linked, member: Member, use: AttributeEffect) -> bool:
    """Whether forward always binds it, to more than a constant, and the project only writes it."""
    if use.role != "bind" or use.holder != "self" or use.guarded or use.value is None:
        return False
    parameters = linked.facts.functions[use.function].parameters
    named = use.value.kind in ("name", "item")
    given = named and use.value.text in parameters  # the caller has it, or the whole, too
    if given or use.value.kind in ("constant", "empty") or linked.spelled_as_string(use.name):
        return False
    return all(other.role == "bind" for _, other in linked.uses_of(use.name, member))


def _carries_graph(module: Module, member: Member, use: AttributeEffect) -> bool:
    """Whether the attribute holds a graph on a way out of forward."""
    owners = (each for each in module.classes if each.name.value == member.facts.name)
    forward = module.methods(next(owners)).get("forward")
    flow = analysis_of(module).flow(forward) if forward is not None else None
    ends = flow.exits if flow is not None else []
    path = f"self.{use.name}"
    return any(env[path].contents.carries for env in ends if path in env)
