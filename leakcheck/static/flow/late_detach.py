"""Is what piles up detached only after the loop? Then its graphs were kept for nothing.

A sum or list of graph-carrying values whose every use ends in `.detach()` or `.data`: whoever wrote
that knew of the graph, and wanted the numbers. `.item()` and `.numpy()` say nothing of the kind:
the first works without a graph as well, the second works only without.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.source.words import words
from leakcheck.static import syntax
from leakcheck.static.flow.prospects import DATA
from leakcheck.static.flow.values import SURE, Value

if TYPE_CHECKING:
    from leakcheck.static.flow.records import GrowingPlace
    from leakcheck.static.flow.walk import Flow

SHORT_RANGE = 10  # turns; graphs of fewer are a matter of course
_FREEZES = re.compile(r"requires_grad(_\(| = )False")


def note_cut(flow: Flow, value: Value) -> None:
    """Take note that what a growing place holds is read without its graph, and where."""
    for sink in value.contents.sinks:
        flow.cuts.setdefault(sink, set()).add(flow.born)


def detached_late(flow: Flow, growth: GrowingPlace) -> bool:
    """Whether a long loop keeps graphs in a place that is only ever read without them."""
    sink = id(growth.node)
    if growth.value.graph < SURE or flow.uses.get(sink, set()) & {"return", "handed", "stored"}:
        return False
    if not any(growth.loops.isdisjoint(born) for born in flow.cuts.get(sink, ())):
        return False
    if flow.is_forward and flow.owner is not None and flow.owner.is_module:
        return False
    if _FREEZES.search(flow.module.source):
        return False  # a frozen model's outputs have no graph, unless its inputs do
    return any(_is_long(flow, loop) for loop in flow.module.loops_with(growth.loops))


def _is_long(flow: Flow, loop: cst.CSTNode) -> bool:
    """Whether a loop goes over data, a progress bar, a long range, or until something holds."""
    if not isinstance(loop, cst.For):
        return isinstance(loop, cst.While)
    if DATA.search(flow.code(loop.iter)):
        return True
    for node in syntax.walk(loop.iter):
        if not isinstance(node, cst.Call):
            continue
        name = syntax.dotted(node.func).rpartition(".")[2]
        if name in words("said", "progress"):
            return True
        if name == "range":
            limits = [syntax.constant(arg.value) for arg in node.args[:2]]
            return not all(isinstance(n, int) and n < SHORT_RANGE for n in limits)
    return False
