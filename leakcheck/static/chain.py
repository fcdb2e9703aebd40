"""The places a graph leak follows from: the call that makes it, the one handed it, who keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.model import Evidence, EvidenceRole

if TYPE_CHECKING:
    from leakcheck.static.graphs import GraphLeak
    from leakcheck.static.module import Module


def chain(module: Module, leak: GraphLeak) -> tuple[Evidence, ...]:
    """Return the places in the order of the flow; none for what one function shows by itself."""
    handed = leak.feed.call if leak.feed is not None else leak.node
    across = handed is not leak.growth.node
    if not across and not leak.growth.per_call:
        return ()
    found = [*_makers(module, leak)]
    if across:
        found.append(_evidence(module, handed, "handed"))
    home = _home(module, leak.growth.node)
    if home is not None:
        place = home.location(leak.growth.node)
        found.append(Evidence(place, "kept", leak.growth.target))
    return tuple(found) if len({each.location for each in found}) > 1 else ()


def _makers(module: Module, leak: GraphLeak) -> Iterator[Evidence]:
    """Yield the first call of this file that the value was computed from."""
    value = leak.feed.argument if leak.feed is not None else leak.growth.added
    origins = value.contents.origins
    for call in module.calls:
        if id(call) in origins:
            yield _evidence(module, call, "graph")
            return


def _evidence(module: Module, node: cst.CSTNode, role: EvidenceRole) -> Evidence:
    called = node.func if isinstance(node, cst.Call) else node
    return Evidence(module.location(node), role, module.analysis.code(called))


def _home(module: Module, node: cst.CSTNode) -> Module | None:
    """Return the parsed module that a node is in."""
    others = module.project.parsed if module.project is not None else ()
    return next((each for each in (module, *others) if each.parent(node) is not None), None)
