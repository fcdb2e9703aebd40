"""torch.cuda.Stream() in step(): blocks stay tied to the streams of steps gone by."""

from __future__ import annotations

import re
from collections.abc import Iterator

from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule

_STEP = re.compile(
    r"_*(step|forward|backward|__call__|training_step|train_step|train_batch|optimizer_step|"
    r"forward_step|forward_backward|update|__next__|prefetch|preload)(_\w+)?$"
)


class StreamPerStep(Rule):
    """CUDA streams that are made anew at every step."""

    code = "LK607"
    summary = "a CUDA stream is made at every step, and the allocator keeps blocks for each"
    help = "make the stream once, in the constructor"
    proof = "static only: needs a GPU"
    words = ("cuda.Stream(",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each stream that a per-step method binds to a local name."""
        facts = module.facts.facts
        for call in facts.calls_by_name.get("Stream", ()):
            method = facts.method_around(call.function)
            if call.qualified != "torch.cuda.Stream" or method is None:
                continue
            local = call.fate == "bound" and "." not in call.bound
            if local and _STEP.match(method.name) and not method.name.startswith("test"):
                yield self.hit(call.at, "each step makes one more stream", confidence="medium")
