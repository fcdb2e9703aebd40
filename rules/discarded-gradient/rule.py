"""D(G(noise)) without a detach, where only D is stepped: the gradients of G are zeroed unused."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.module import Module
from leakcheck.static.queries.discarded import discarded
from leakcheck.static.rule import Hit, Rule


class DiscardedGradient(Rule):
    """Graphs of a model that a backward goes through, though nobody uses the model's gradients."""

    code = "LK115"
    summary = "a backward goes through a model whose gradients are zeroed before any step"
    help = "detach the model's output, or make it under torch.no_grad()"
    proof = "static only: the peak is higher, and nothing grows"
    words = ("zero_grad",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what each backward goes through, and at what happens to the gradients then."""
        for model, at in discarded(module):
            told = f"the gradients of `{model}` that this graph is kept for are zeroed unused"
            yield self.hit(at, told, confidence="medium")
