"""backward(retain_graph=True) where no second backward needs the graph."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.model import Fix
from leakcheck.static.cuts import TITLES
from leakcheck.static.flow import retained
from leakcheck.static.flow.analysis import analysis_of
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule


class NeedlessRetainGraph(Rule):
    """retain_graph=True in a loop that calls backward only once and carries no graph round."""

    code = "LK112"
    summary = "retain_graph=True keeps saved activations alive, and nothing uses them again"
    help = "leave retain_graph out"
    words = ("retain_graph",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Yield each call that is its function's only backward, in a loop of its own graphs."""
        for call in module.calls:
            if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "backward":
                continue
            if not retained.retains(call) or module.loop_of(call) is None:
                continue
            flow = analysis_of(module).flow(module.function_of(call) or module.tree)
            if flow is not None and retained.retained_for_nothing(flow, call):
                message = "no second backward goes through this graph"
                yield self.hit(call, message, fix=Fix(TITLES["graph"]))
