"""Is a line behind a switch that nothing turns on? `if self.save_maps:`, which starts as False."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static.facts.link import sets_up
from leakcheck.static.facts.model import Expr
from leakcheck.static.module import Module
from leakcheck.static.syntax import dotted

_OFF = (Expr("constant", "False"), Expr("constant", "None"))


def is_switched_off(module: Module, node: cst.CSTNode) -> bool:
    """Tell whether a node runs only if an attribute is true that the whole project leaves false.

    A setting that a caller gives, or that somebody else sets by its name, is no such switch.
    """
    needed = (test for around in _held_by(module, node) for test in _needed(around.test))
    return any(_is_left_off(module, test) for test in needed)


def _held_by(module: Module, node: cst.CSTNode) -> Iterator[cst.If]:
    """Yield the `if`s whose first branch holds a node."""
    inner = node
    for above in module.ancestors(node):
        if isinstance(above, cst.If) and inner is above.body:
            yield above
        inner = above


def _needed(test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield what must be true for a test to be: both sides of an `and`."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        yield from _needed(test.left)
        yield from _needed(test.right)
    else:
        yield test


def _is_left_off(module: Module, test: cst.BaseExpression) -> bool:
    holder, _, name = dotted(test).rpartition(".")
    if holder != "self":
        return False
    linked = module.facts
    set_to = [(facts, use) for facts, use in linked.uses(name) if use.role == "bind"]
    at_first = any(facts is linked.facts and sets_up(facts, use.function) for facts, use in set_to)
    never = all(use.value in _OFF for _, use in set_to)
    return at_first and never and not linked.spelled_as_string(name)
