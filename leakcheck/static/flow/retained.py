"""Is retain_graph=True of any use? Only a second pass over the same graph needs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.flow.values import Value

if TYPE_CHECKING:
    from leakcheck.static.flow.walk import Flow
    from leakcheck.static.module import LoopNode


def retained_for_nothing(flow: Flow, call: cst.Call) -> bool:
    """Whether a backward(retain_graph=True) in a loop is the only pass over graphs of one turn."""
    passes = {id(p.node): p for p in (*flow.backwards, *flow.differentiations)}
    own = passes.pop(id(call), None)
    loop = flow.module.loop_of(call)
    if own is None or passes or loop is None or own.value.stale & own.loops:
        return False
    if id(loop) not in own.value.born:  # the next turn may go through the same graph
        return False
    inside = {id(node) for node in syntax.walk(loop.body) if isinstance(node, cst.Call)}
    if own.value.origins and inside.isdisjoint(own.value.origins):
        return False  # a part in each turn of what was made before them: `samples[k].backward()`
    if _goes_round(flow, loop):
        return False
    outside = flow.before.get(id(loop), {})
    return not any(_brings_graph(value) for value in _read_in(flow, loop, outside))


def retains(call: cst.Call) -> bool:
    """Whether a backward call keeps the graph: retain_graph=True."""
    found = syntax.argument(call, "retain_graph")
    return found is not None and syntax.constant(found.value) is True


def _read_in(flow: Flow, loop: LoopNode, outside: Mapping[str, Value]) -> Iterator[Value]:
    for node in syntax.walk(loop.body):
        if isinstance(node, cst.Name) and node.value in outside:
            above = flow.module.parent(node)
            called = isinstance(above, cst.Call) and above.func is node
            if not called and not (isinstance(above, cst.Attribute) and above.value is node):
                yield outside[node.value]


def _goes_round(flow: Flow, loop: LoopNode) -> bool:
    """Whether a state goes into a call and comes back, `out, h = rnn(x, h)`, and is never cut.

    Without retain_graph such a loop fails in its second turn.
    """
    carried: set[str] = set()
    renewed: set[str] = set()
    for node in syntax.walk(loop.body):
        if not isinstance(node, cst.Assign):
            continue
        names = {flow.path(part) for target in node.targets for part in syntax.walk(target)} - {""}
        read = {flow.path(part) for part in syntax.walk(node.value)}
        state_in = isinstance(node.value, cst.Call) and bool(node.value.args)
        if state_in and isinstance(node.targets[0].target, cst.Tuple):
            carried |= names & read
        else:
            renewed |= names
    return bool(carried - renewed)


def _brings_graph(value: Value) -> bool:
    """Whether a value from before the loop may be part of a graph made before it."""
    inner = value.contents
    return inner.carries and not inner.leaf and inner.kind != "module"
