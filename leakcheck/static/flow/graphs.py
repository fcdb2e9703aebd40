"""From growing places to leaks: is what piles up needed, freed in time, or simply kept?

An accumulator that is itself backwarded inside the loop, or handed to the caller of a function that
does not train, is how losses are built; what is left is kept for a number nobody differentiates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import libcst as cst

from leakcheck.source.words import says
from leakcheck.static import syntax
from leakcheck.static.flow import callers
from leakcheck.static.flow.analysis import analysis_of
from leakcheck.static.flow.attributes import (
    attribute_of,
    differentiated,
    is_buffer,
    reassigned,
    returned_by_methods,
    sets_up,
)
from leakcheck.static.flow.fillers import kept_fills
from leakcheck.static.flow.gradient import called_without_gradient
from leakcheck.static.flow.late_detach import detached_late
from leakcheck.static.flow.prospects import DATA
from leakcheck.static.flow.records import Backward, Feed, GrowingPlace
from leakcheck.static.flow.relief import relieved
from leakcheck.static.flow.retained import retains
from leakcheck.static.flow.values import LIKELY, SURE, UNKNOWN, Ids
from leakcheck.static.flow.walk import Flow
from leakcheck.static.torch_api import framework

if TYPE_CHECKING:
    from leakcheck.static.module import LoopNode, Module

GraphLeakKind = Literal[
    "accumulator", "collection", "meter", "epoch-long", "in-place", "statistics", "carried",
    "evaluation", "step-output",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class GraphLeak:
    """A place where graphs pile up for nothing, with what a message needs to say."""

    leak: GraphLeakKind
    node: cst.CSTNode
    growth: GrowingPlace
    flow: Flow
    feed: Feed | None = None


def graph_leaks(module: Module) -> list[GraphLeak]:
    """List a module's graph leaks, each place once; the LK1xx rules each take their kind."""
    return module.once(_find)


def _find(module: Module) -> list[GraphLeak]:
    found: dict[tuple[int, str], GraphLeak] = {}
    _flows(module)
    callers.learn(analysis_of(module))
    for flow in _flows(module):
        for leak in (*_own(flow), *_fed(flow), *_filled(flow)):
            found.setdefault((id(leak.node), leak.growth.target), leak)
    return list(found.values())


def _flows(module: Module) -> list[Flow]:
    analysis = analysis_of(module)
    return [flow for flow in map(analysis.flow, analysis.scopes()) if flow is not None]


def _own(flow: Flow) -> Iterator[GraphLeak]:
    for growth in flow.growths.values():
        if relieved(flow, growth):
            continue
        leak = _judge_call(flow, growth) if growth.per_call else None
        if leak is None and growth.loops:
            leak = _judge_loop(flow, growth)
        if leak is not None:
            yield GraphLeak(leak, growth.node, growth, flow)


# ---- inside loops


def _judge_loop(flow: Flow, growth: GrowingPlace) -> GraphLeakKind | None:
    if not growth.value.carries:
        return None
    if growth.how == "carry":
        return _judge_carried(flow, growth)
    freed = _freed(flow, growth)
    if freed is not None:
        return freed or None
    trains = any(growth.loops & backward.loops for backward in flow.backwards)
    late = not trains and _wanted_without_graph(flow, growth)
    if growth.how == "collect":
        if growth.keyed and not _keyed_by_turn(flow, growth):
            return None
        if trains or late:
            return "collection"
        return "evaluation" if _evaluates(flow, growth) else None
    if growth.value.graph == SURE and _grows_by_itself(growth):
        return "in-place" if not flow.uses.get(id(growth.node)) else None
    if trains or late:
        return "accumulator"
    if _evaluates(flow, growth):
        return "evaluation"
    kept = _runs_on(flow, growth) and not flow.uses.get(id(growth.node))
    return "accumulator" if kept and growth.value.graph == SURE else None


def _wanted_without_graph(flow: Flow, growth: GrowingPlace) -> bool:
    """Whether graphs are kept through a loop only to be thrown away after it."""
    if not detached_late(flow, growth):
        return False
    return isinstance(flow.scope, cst.Module) or not called_without_gradient(
        flow.module, flow.scope
    )


def _runs_on(flow: Flow, growth: GrowingPlace) -> bool:
    """Whether the loop is long by its looks: endless, over data, or the program's own."""
    if flow.owner is not None and flow.owner.is_module:
        return False
    for loop in _loops(flow, growth.loops):
        endless = isinstance(loop, cst.While) or isinstance(flow.scope, cst.Module)
        if flow.module.loop_of(loop) is None and (endless or is_data_loop(flow, loop)):
            return True
    return False


def _freed(flow: Flow, growth: GrowingPlace) -> GraphLeakKind | Literal[""] | None:
    """Say what backward on the place means: "" is harmless, None is no backward at all."""
    sink = id(growth.node)
    passes = [
        b
        for b in (*flow.backwards, *flow.differentiations)
        if sink in b.value.sinks and not _is_of_one_entry(growth, b)
    ]
    if not passes:
        return None
    if growth.how != "sum" or any(growth.loops & backward.loops for backward in passes):
        return ""
    loops = _loops(flow, growth.loops)
    return "epoch-long" if any(is_data_loop(flow, loop) for loop in loops) else ""


def _is_of_one_entry(growth: GrowingPlace, backward: Backward) -> bool:
    """`losses[-1].backward()` where they are collected: the others keep their graphs."""
    match backward.node:
        case cst.Call(func=cst.Attribute(value=cst.Subscript(value=holder))):
            collects = growth.how == "collect" and bool(growth.loops & backward.loops)
            return collects and syntax.dotted(holder) == growth.target.partition("[")[0]
    return False


def _grows_by_itself(growth: GrowingPlace) -> bool:
    """Whether no loss or model output is added: the place itself requires a gradient."""
    return growth.added.leaf or not growth.added.carries


def _judge_carried(flow: Flow, growth: GrowingPlace) -> GraphLeakKind | None:
    if growth.value.graph < SURE:
        return None
    inside = [b for b in flow.backwards if growth.loops & b.loops]
    retaining = [b for b in inside if growth.loops & b.value.stale and retains(b.node)]
    if retaining:
        return "carried"
    return "carried" if not inside and _evaluates(flow, growth) else None


def _keyed_by_turn(flow: Flow, growth: GrowingPlace) -> bool:
    """Whether the slot's key is new at each turn of the loop that grows."""
    if not isinstance(growth.node, cst.Assign):
        return False
    target = growth.node.targets[0].target
    first = target.elements[0].value if isinstance(target, cst.Tuple) else target
    if not isinstance(first, cst.Subscript):
        return False
    names = {n.value for n in syntax.walk(first) if isinstance(n, cst.Name)}
    return any(names & _turning(loop) for loop in _loops(flow, growth.loops))


def _turning(loop: LoopNode) -> set[str]:
    """Name what is another at each turn: the targets of a `for`, the counters of a `while`."""
    if isinstance(loop, cst.For):
        return {n.value for n in syntax.walk(loop.target) if isinstance(n, cst.Name)}
    counts = (n for n in syntax.walk(loop.body) if isinstance(n, cst.AugAssign))
    return {n.target.value for n in counts if isinstance(n.target, cst.Name)}


def _evaluates(flow: Flow, growth: GrowingPlace) -> bool:
    """Whether an evaluation over data runs here with gradients on."""
    scope = flow.scope
    over_data = any(is_data_loop(flow, loop) for loop in _loops(flow, growth.loops))
    if isinstance(growth.node, cst.ListComp):
        over_data = bool(DATA.search(flow.code(growth.node.for_in.iter)))
    if flow.backwards or not over_data:
        return False
    if isinstance(scope, cst.Module):
        return growth.value.graph == SURE
    named = says(scope.name.value, "evaluates") or _calls_eval(flow, scope)
    return bool(named) and not called_without_gradient(flow.module, scope)


def _calls_eval(flow: Flow, scope: cst.FunctionDef) -> bool:
    return any(
        isinstance(call.func, cst.Attribute) and call.func.attr.value == "eval" and not call.args
        for call in flow.module.calls
        if flow.module.function_of(call) is scope
    )


def is_data_loop(flow: Flow, loop: LoopNode) -> bool:
    """Whether the loop goes over a data loader or data set."""
    return isinstance(loop, cst.For) and bool(DATA.search(flow.code(loop.iter)))


def _loops(flow: Flow, ids: Ids) -> list[LoopNode]:
    return flow.module.loops_with(ids)


# ---- across calls


def _judge_call(flow: Flow, growth: GrowingPlace) -> GraphLeakKind | None:
    owner, scope = flow.owner, flow.scope
    if growth.target.startswith("outputs[") and owner and owner.keeps_step_outputs(scope):
        return "step-output"
    if not growth.target.startswith("self."):
        return _judge_outer(flow, growth)
    if owner is None or isinstance(scope, cst.Module) or sets_up(scope):
        return None
    place = attribute_of(growth)
    if _meters_outputs(flow, growth):
        return "meter"
    if not growth.value.carries or not flow.keeps_graph(f"self.{place}"):
        return None
    if differentiated(owner, place) or _freed(flow, growth) is not None:
        return None
    if called_without_gradient(flow.module, scope):
        return None
    trains = bool(flow.backwards) or flow.is_called_to_train or _trained(flow, place)
    if owner.is_lightning and scope.name.value in framework("lightning", "per_step"):
        return "step-output"
    if growth.how == "carry":
        carried = growth.value.graph == SURE and not reassigned(flow, place, growth.node)
        return "carried" if carried else None
    if growth.how == "collect":
        if reassigned(flow, place, growth.node):
            return None
        stored = owner.is_module and growth.value.graph == SURE and not growth.keyed
        never_read = stored and not returned_by_methods(owner, place)
        return "collection" if trains or never_read else None
    if owner.is_module and scope.name.value == "forward":
        read = not is_buffer(owner, place) and returned_by_methods(owner, place)
        used = read or reassigned(flow, place, growth.node, statistics=True)
        return None if used else "statistics"
    if growth.value.graph == SURE and growth.added.carries:
        if trains:
            return "accumulator"
        kept = not returned_by_methods(owner, place) and not reassigned(flow, place, growth.node)
        return "statistics" if kept and growth.value.parameters <= {"self"} else None
    if growth.added.parameters and growth.value.graph >= LIKELY:
        return "meter"
    return None


def _meters_outputs(flow: Flow, growth: GrowingPlace) -> bool:
    """Whether a framework's metric keeps what it is given, detached neither here nor on the way."""
    owner, scope, given = flow.owner, flow.scope, growth.added.parameters
    if owner is None or not isinstance(scope, cst.FunctionDef):
        return False
    if called_without_gradient(flow.module, scope) or growth.added.graph < UNKNOWN:
        return False
    if given & framework("metrics", "outputs_given"):
        return growth.how == "collect" and not growth.keyed
    if not owner.is_given_graphs or scope.name.value not in ("update", "_update"):
        return False
    update = owner.method("update")
    cut = update is not None and any(
        isinstance(node, cst.Attribute) and node.attr.value in ("detach", "detach_")
        for node in syntax.walk(update.function.body)
    )
    return bool(given - {"self"}) and not cut


def _trained(flow: Flow, place: str) -> bool:
    """Whether callers call backward on what the method returns, and on nothing of the place."""
    if id(flow.scope) not in flow.analysis.trained:
        return False
    module = flow.module
    readers = (n for n in module.nodes(cst.Attribute) if n.attr.value == place)
    scopes = {module.function_of(n) or module.tree for n in readers} - {flow.scope}
    return not any(flow.analysis.calls_backward(scope) for scope in scopes)


def _judge_outer(flow: Flow, growth: GrowingPlace) -> GraphLeakKind | None:
    """Judge what a function adds to a name of an enclosing scope."""
    if growth.value.graph < SURE or not flow.backwards or _freed(flow, growth) is not None:
        return None
    name = attribute_of(growth)
    if not flow.keeps_graph(name) or any(_clears(call, name) for call in flow.module.calls):
        return None
    return "collection" if growth.how == "collect" else "accumulator"


def _clears(call: cst.Call, name: str) -> bool:
    match call.func:
        case cst.Attribute(value=cst.Name(value=holder), attr=cst.Name(value="clear" | "pop")):
            return holder == name
    return False


def _updates_itself(flow: Flow, feed: Feed) -> bool:
    """Whether a module's forward hands a graph to a method of its own that keeps statistics."""
    scope = flow.scope
    if isinstance(scope, cst.Module) or scope.name.value != "forward" or flow.owner is None:
        return False
    place = attribute_of(feed.growth)
    inner = feed.owner.analysis.flow(feed.owner.methods.get(feed.method, scope))
    if feed.growth.how != "sum" or flow.owner is not feed.owner or inner is None:
        return False
    used = returned_by_methods(feed.owner, place) or not inner.keeps_graph(f"self.{place}")
    return not used and not reassigned(inner, place, feed.growth.node, statistics=True)


def _filled(flow: Flow) -> Iterator[GraphLeak]:
    for fill in kept_fills(flow):
        if _freed(flow, fill.growth) is not None:
            continue
        here = fill.definition.analysis.module is flow.module
        added = replace(fill.growth, value=fill.argument, added=fill.argument, expression=None)
        leak: GraphLeakKind = "collection" if fill.growth.how == "collect" else "accumulator"
        yield GraphLeak(leak, fill.growth.node if here else fill.call, added, flow)


def _fed(flow: Flow) -> Iterator[GraphLeak]:
    for feed in flow.feeds:
        if feed.owner.is_module and _updates_itself(flow, feed):
            yield GraphLeak("statistics", _place(flow, feed), feed.growth, flow, feed)
        if feed.owner.is_module or feed.owner.is_detached_metric:
            continue
        if not feed.loops and flow.owner is None and not isinstance(flow.scope, cst.FunctionDef):
            continue
        if differentiated(feed.owner, attribute_of(feed.growth)):
            continue
        if feed.guessed and _may_be_emptied(feed):
            continue
        yield GraphLeak("meter", _place(flow, feed), feed.growth, flow, feed)


def _may_be_emptied(feed: Feed) -> bool:
    """Whether the class overwrites what it keeps, or lets go of it somewhere: a logger's values."""
    method = feed.owner.method(feed.method)
    inner = method.flow if method is not None else None
    place, node = attribute_of(feed.growth), feed.growth.node
    return feed.growth.keyed or inner is None or reassigned(inner, place, node)


def _place(flow: Flow, feed: Feed) -> cst.CSTNode:
    """Where the value is kept, if this file says it, else the call: a base may be elsewhere."""
    here = flow.module.parent(feed.growth.node) is not None
    return feed.growth.node if here else feed.call
