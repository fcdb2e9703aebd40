"""An autograd.Function that hangs a tensor on ctx, where backward does not free it."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.facts.link import Linked, Member
from leakcheck.static.facts.model import AttributeEffect, Expr, FileFacts
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.shape import api
from leakcheck.static.torch_api import torch_function, words

_LOOKS = ("is_", "get_", "set_")  # functions that tell or set something, and make no tensor


class TensorOnCtx(Rule):
    """Forward makes a tensor for its backward and keeps it on ctx instead of saving it."""

    code = "LK116"
    proof = "static only: the tensor goes with the graph, so a run sees a higher level, not growth"
    summary = "an autograd.Function keeps a tensor on ctx, where backward does not free it"
    help = "use ctx.save_for_backward(...): backward frees what is saved"
    words = ("autograd",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what the forward of each autograd.Function binds on its context."""
        linked = module.facts
        for member in linked.classes:
            index = member.facts.methods.get("forward")
            if index is None or not _is_function(linked, member):
                continue
            for use in _kept(linked.facts, member, index):
                kept = f"{use.holder}.{use.name}"
                yield self.hit(use.at, f"`{kept}` stays after backward, as long as the output")


def _is_function(linked: Linked, member: Member) -> bool:
    bases = {base for kin in linked.lineage(member) for base in kin.facts.bases}
    return not bases.isdisjoint(api("autograd-functions"))


def _kept(facts: FileFacts, member: Member, forward: int) -> Iterator[AttributeEffect]:
    """Yield where forward binds a tensor that it made, hands it to nobody, and nothing drops it."""
    function = facts.functions[forward]
    context = next(iter(function.parameters), "")
    returned = {name for each in function.returns for name in (each.text, *each.plain)}
    for use in facts.uses:
        bound = use.role == "bind" and use.holder == context and use.function == forward
        if not bound or use.value is None or use.value.text in returned:
            continue
        if _is_tensor(facts, use.value, forward) and not _is_dropped(facts, member, use):
            yield use


def _is_tensor(facts: FileFacts, value: Expr, function: int) -> bool:
    """Whether every value that a place is given here is a new tensor by what makes it.

    What the function was given may have taken its place only now and then: `w = w.contiguous()`.
    """
    if value.kind != "name":
        return _makes_tensor(facts, value, function)
    given = value.text in facts.functions[function].parameters
    made = _bound(facts, value.text, function)
    return bool(made) and not given and all(_makes_tensor(facts, each, function) for each in made)


def _makes_tensor(facts: FileFacts, value: Expr, function: int) -> bool:
    if value.kind != "call":
        return False
    name = torch_function(value.text)
    if name:
        plain = name[:1].isupper() or name in words("functions", "no_tensor")
        return not plain and not name.startswith(_LOOKS)
    receiver, _, method = value.text.rpartition(".")
    if method in words("methods", "of_tensors"):
        return True
    same = method == "detach" or (method.endswith("_") and not method.startswith("_"))
    return same and (not receiver or bool(_bound(facts, receiver, function)))


def _bound(facts: FileFacts, name: str, function: int) -> list[Expr]:
    return [b.value for b in facts.bindings if (b.name, b.function) == (name, function)]


def _is_dropped(facts: FileFacts, member: Member, use: AttributeEffect) -> bool:
    """Whether a method of the class takes the tensor off its context again."""
    methods = set(member.facts.methods.values())
    return any(
        other.role == "take" or (other.role == "bind" and other.function != use.function)
        for other in facts.uses_by_name.get(use.name, ())
        if other.function in methods
    )
