"""A writer, pool or log handler is made inside the training loop."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.module import LoopNode, Module
from leakcheck.static.queries import lifetime
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, walk


class WriterPerStep(Rule):
    """Objects with threads, files or processes of their own, made anew at each step."""

    code = "LK603"
    summary = "a writer, pool or log handler is made at every step and never closed"
    help = "make it once before the loop, or use it in a with block"
    default = False
    words = ("SummaryWriter", "PoolExecutor", "Pool(", "Handler(")
    needs_torch = True

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each construction inside a loop that trains, or in a per-step method."""
        for call in module.calls_of(*shape.api("per-step-objects")):
            loop = shape.step_loop(module, call)
            if loop is None or isinstance(module.parent(call), cst.WithItem):
                continue
            if not _closed(module, loop, lifetime.bound_name(module, call)):
                yield self.hit(call, "each step makes one more, and something global keeps it")


def _closed(module: Module, loop: LoopNode, name: str) -> bool:
    return bool(name) and any(
        isinstance(node, cst.Attribute)
        and dotted(node.value) == name
        and node.attr.value in ("close", "shutdown", "terminate")
        for node in walk(loop.body)
    )
