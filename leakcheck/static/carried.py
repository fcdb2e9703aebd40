"""State that goes round a loop: what a turn computes from what the turn before left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.records import Frame, GrowingPlace

if TYPE_CHECKING:
    from leakcheck.static.flow import Flow


def note_turn(flow: Flow, frame: Frame) -> None:
    """Record what was carried from the turn before into a new value of the same name."""
    loop = id(frame.node)
    carried: list[GrowingPlace] = []
    seen = {key[0] for key in flow.growths}
    for path, value in flow.env.items():
        node = flow.changed.get(path)
        if node is None or id(node) in seen:
            continue
        if loop in value.stale and loop in value.born and value.carries:
            carried.append(GrowingPlace("carry", node, path, value, value, frozenset({loop})))
    # a loss that is computed anew in every turn only shows what the state carries
    states = [g for g in carried if _read_before_set(flow, frame, g)]
    for growth in states or [g for g in carried if _in_every_turn(flow, frame, g)]:
        flow.grow(growth)


def _in_every_turn(flow: Flow, frame: Frame, growth: GrowingPlace) -> bool:
    """Whether the place is set whatever happens; else the old value is merely still there."""
    for above in flow.module.ancestors(growth.node):
        if above is frame.node:
            return True
        if isinstance(above, (cst.If, cst.Try, cst.TryStar, cst.Match)):
            return False
    return False


def _read_before_set(flow: Flow, frame: Frame, growth: GrowingPlace) -> bool:
    """Whether a turn of the loop reads the place before it sets it."""
    for node in syntax.walk(frame.node):
        if node is growth.node:
            inner = syntax.walk(getattr(node, "value", node))
            return any(flow.path(part) == growth.target for part in inner)
        if isinstance(node, (cst.Name, cst.Attribute)) and flow.path(node) == growth.target:
            above = flow.module.parent(node)
            if not isinstance(above, cst.AssignTarget):
                return True
    return False
