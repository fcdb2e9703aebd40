"""embeddings.cpu() as a statement: the copy is dropped, and the tensor stays where it was."""

from __future__ import annotations

import re
from collections.abc import Iterator

from leakcheck.static.facts.link import Linked
from leakcheck.static.facts.model import Call, Span
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.torch_api import is_learnable_module

_MOVES = frozenset(["cpu", "cuda", "to", "half", "bfloat16"])
_TENSOR = re.compile(
    r"(^|_)(tensors?|input_ids|embeddings?|embeds|hidden|hidden_states|logits|labels|targets?|"
    r"images?|imgs?|preds?|predictions?|feats?|mask|x|y|latents?|scores?|grads?|pixel_values)$"
)


class ResultThrownAway(Rule):
    """Calls that return a changed tensor, and whose result nobody takes."""

    code = "LK407"
    summary = "a tensor's copy elsewhere, or without its graph, is made and thrown away"
    help = "bind the result: x = x.cpu()"
    proof = "static only: what stays is what should have been replaced"
    words = (".detach()", ".cpu()", ".to(", ".cuda()", ".half()")
    needs_torch = True

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each call of a tensor's method that is a statement of its own."""
        linked = module.facts
        for call in linked.facts.calls:
            if call.fate == "dropped" and call.receiver is not None and _is_lost(linked, call):
                what, method = call.receiver.text, call.method
                given = "..." if call.arguments else ""
                yield self.hit(
                    call.at,
                    f"`{what}.{method}` changes nothing: its result is dropped",
                    help=f"bind the result: {what} = {what}.{method}({given})",
                )


def _is_lost(linked: Linked, call: Call) -> bool:
    receiver = call.receiver
    if receiver is None or receiver.kind not in ("name", "item") or not receiver.text:
        return False
    if call.method == "detach":
        own = any(
            f.name == "detach" for facts in linked.everywhere("detach") for f in facts.functions
        )
        return (
            not call.arguments and not own and receiver.kind == "name" and _is_tensor(linked, call)
        )
    return call.method in _MOVES and _is_tensor(linked, call)


def _is_tensor(linked: Linked, call: Call) -> bool:
    """Whether the name says so, or the function gives it what torch makes."""
    name = call.receiver.text if call.receiver is not None else ""
    here = [b for b in linked.facts.bindings if b.function == call.function and b.name == name]
    if any(b.value.text.startswith(_MAKERS) for b in here):
        return True
    if any(b.value.kind == "call" and is_learnable_module(b.value.text) for b in here):
        return False  # of modules, to() changes the very one
    if any(_is_made_of_nothing(linked, b.at) for b in here):
        return False  # a tensor is made of data
    moved = any(method.name == call.method for method in linked.facts.functions)
    plain = name.rpartition(".")[2]
    return (
        not moved
        and call.receiver is not None
        and call.receiver.kind == "name"
        and _TENSOR.search(plain) is not None
    )


def _is_made_of_nothing(linked: Linked, at: Span) -> bool:
    """Whether what is bound there comes from a call without arguments: `net = build()`."""
    calls = (c for c in linked.facts.calls if at.line <= c.at.line <= at.end_line)
    return any(c.fate == "bound" and not c.arguments and c.receiver is None for c in calls)


_MAKERS = (
    "torch.rand", "torch.zeros", "torch.ones", "torch.empty", "torch.full", "torch.tensor",
    "torch.cat", "torch.stack", "torch.arange", "torch.from_numpy", "torch.as_tensor",
)  # fmt: skip
