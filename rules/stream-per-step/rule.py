"""torch.cuda.Stream() in step(): blocks stay tied to the streams of steps gone by."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.source.words import Pattern
from leakcheck.static.facts.model import Call
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule

_STEP = Pattern(r"(_*(<steps>)(_\w+)?|__(call|next)__)$")


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
                yield self.hit(
                    call.at,
                    "each step makes one more stream",
                    confidence="low" if _is_for_one_step(module, call) else "medium",
                )


def _is_for_one_step(module: Module, call: Call) -> bool:
    """Whether a test picks one step out: `if self.step == self.warmup:`, `if graph is None:`."""
    for node in module.calls_of("torch.cuda.Stream"):
        if module.location(node) == module.location(call.at):
            tests = [above.test for above in module.ancestors(node) if isinstance(above, cst.If)]
            return any(_equals(test) for test in tests)
    return False


def _equals(test: cst.BaseExpression) -> bool:
    return isinstance(test, cst.Comparison) and any(
        isinstance(part.operator, (cst.Equal, cst.Is)) for part in test.comparisons
    )
