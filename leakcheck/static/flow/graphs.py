"""Where graphs pile up: in a function's own places, in objects it feeds, in names it fills."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.flow import callers
from leakcheck.static.flow.analysis import analysis_of
from leakcheck.static.flow.attributes import (
    attribute_of,
    differentiated,
    reassigned,
    returned_by_methods,
)
from leakcheck.static.flow.fillers import kept_fills
from leakcheck.static.flow.judging import is_differentiated, judge
from leakcheck.static.flow.records import Feed, GraphLeakKind, GrowingPlace
from leakcheck.static.flow.relief import relieved
from leakcheck.static.flow.walk import Flow

if TYPE_CHECKING:
    from leakcheck.static.module import Module


@dataclass(frozen=True, slots=True)
class GraphLeak:
    """A place where graphs pile up for nothing, with what a message needs to say.

    `relieved`: only for some turns, until it starts anew.
    """

    leak: GraphLeakKind
    node: cst.CSTNode
    growth: GrowingPlace
    flow: Flow
    feed: Feed | None = None
    relieved: bool = False


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
        anew = relieved(flow, growth)
        if anew and not _is_seen_whole(growth):
            continue
        leak = judge(flow, growth)
        if leak is not None and (leak == "accumulator" or not anew):
            yield GraphLeak(leak, growth.node, growth, flow, relieved=anew)


def _is_seen_whole(growth: GrowingPlace) -> bool:
    """Whether all that becomes of a place is seen here: then not even a few turns' graphs are used.

    Of an attribute, others may ask before it starts anew.
    """
    return growth.how == "sum" and growth.target.isidentifier()


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
        if is_differentiated(flow, fill.growth):
            continue
        here = fill.definition.analysis.module is flow.module
        added = replace(fill.growth, value=fill.argument, added=fill.argument, expression=None)
        leak: GraphLeakKind = "collection" if fill.growth.how == "collect" else "accumulator"
        yield GraphLeak(leak, fill.growth.node if here else fill.call, added, flow)


def _fed(flow: Flow) -> Iterator[GraphLeak]:
    for feed in flow.feeds:
        if feed.owner.is_module and _updates_itself(flow, feed):
            yield GraphLeak("statistics", _place(flow, feed), feed.growth, flow, feed)
        if feed.owner.is_detached_metric:
            continue
        if feed.owner.is_module and not _is_fed_by_training(flow, feed):
            continue
        if not feed.loops and flow.owner is None and not isinstance(flow.scope, cst.FunctionDef):
            continue
        if differentiated(feed.owner, attribute_of(feed.growth)) or _ends_with_pass(flow, feed):
            continue
        if feed.guessed and _may_be_emptied(feed):
            continue
        yield GraphLeak("meter", _place(flow, feed), feed.growth, flow, feed)


def _is_fed_by_training(flow: Flow, feed: Feed) -> bool:
    """Whether a training loop hands a module graphs for no result: a metric that is a module."""
    trains = any(feed.loops & each.loops for each in flow.backwards)
    for_nothing = isinstance(flow.module.parent(feed.call), cst.Expr)
    return trains and for_nothing and not _may_be_emptied(feed)


def _ends_with_pass(flow: Flow, feed: Feed) -> bool:
    """Whether a pass makes the object for itself: the states of an unrolled sequence.

    It is as a list of forward's own: backward goes through what is made of it, and frees it.
    """
    trained = flow.is_called_to_train or id(flow.scope) in flow.analysis.trained
    if flow.backwards or not (flow.is_forward or trained):
        return False
    match feed.call:
        case cst.Call(func=cst.Attribute(value=cst.Name(value=holder))):
            pairs = [pair for node in syntax.walk(flow.scope) for pair in syntax.bindings(node)]
            given = [value for target, value in pairs if syntax.dotted(target) == holder]
            kept = any(
                syntax.dotted(value) == holder and not isinstance(target, cst.Name)
                for target, value in pairs
            )
            return bool(given) and not kept and all(_makes(feed, value) for value in given)
    return False


def _makes(feed: Feed, value: cst.BaseExpression) -> bool:
    made = syntax.dotted(value.func) if isinstance(value, cst.Call) else ""
    return made.rpartition(".")[2] == feed.owner.name


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
