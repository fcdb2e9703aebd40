"""A function's result as its caller sees it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from leakcheck.static.flow.values import NONE, SURE, UNKNOWN, Ids, Value, derive

if TYPE_CHECKING:
    from leakcheck.static.flow.walk import Flow


def substitute(
    value: Value, bound: dict[str, Value], flow: Flow, origin: int, sinks: Ids, depth: int = 0
) -> Value:
    """Return a function's result as its caller sees it: parameters replaced by arguments."""
    given = [bound[name].contents for name in value.parameters if name in bound]
    made = derive(given, flow.born) if given else Value(NONE, born=flow.born)
    stale = derive([bound[n] for n in value.inputs if n in bound], flow.born).stale
    graph, lent = value.graph, False
    if value.parameters and (graph < SURE or value.lent):
        graph, lent = made.graph if given else UNKNOWN, made.lent
    plain = value.kind in ("module", "loss", "class", "function")
    if plain or value.floats or (value.kind == "object" and not value.contents.parameters):
        return value if not value.items else replace(value, born=flow.born)
    again = depth < 3
    return Value(
        graph=graph,
        kind=value.kind,
        origins=made.origins | {origin} if graph != NONE else frozenset(),
        parameters=made.parameters if graph < SURE or lent else frozenset(),
        entries=made.entries,
        born=flow.born,
        stale=made.stale | stale,
        inputs=made.inputs,
        sinks=made.sinks | sinks,
        ref=value.ref,
        leaf=value.leaf,
        lent=lent,
        items=tuple(
            (k, substitute(v, bound, flow, flow.analysis.slot(origin, f"{k!r}"), sinks, depth + 1))
            for k, v in value.items
            if again
        ),
        element=substitute(value.element, bound, flow, origin, sinks, depth + 1)
        if value.element is not None and again
        else None,
    )
