"""Work is put into a table by its id; the method that ends work leaves it there."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from leakcheck.model import Evidence
from leakcheck.source.words import Pattern
from leakcheck.static.facts.keys import one_of_many
from leakcheck.static.facts.model import Expr
from leakcheck.static.module import Module
from leakcheck.static.queries import growth
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, walk

_STARTS = Pattern(r"_?(<begins_work>)(_|$)")
_ENDS = Pattern(r"_?(<ends_work>)(_|$)")
_ID = re.compile(r"(^|_)(id|uid|uuid|handle)$")
_ALL_AT_ONCE = frozenset({"__init__", "reset", "clear", "close", "stop", "shutdown"})
ENOUGH_TABLES = 2  # others that the same id is dropped from: ending the work is what drops it


class UndrainedRequests(Rule):
    """Tables filled when work starts, and not emptied by what ends it."""

    code = "LK308"
    summary = "a table of requests is filled when work starts and not drained when it ends"
    help = "pop the entry where the work ends, on success, failure and abort alike"
    words = ("_id", "uid", "handle")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at the stores of each class that starts and ends work."""
        for owner in module.classes:
            methods = module.methods(owner)
            ends = [m for name, m in methods.items() if _ENDS.match(name) and _drops_an_id(m)]
            if not ends:
                continue
            for name, method in methods.items():
                if _STARTS.match(name):
                    yield from self._stores(module, owner, method, ends)

    def _stores(
        self,
        module: Module,
        owner: cst.ClassDef,
        method: cst.FunctionDef,
        ends: list[cst.FunctionDef],
    ) -> Iterator[Hit]:
        for node in walk(method.body):
            table = _table(node)
            known = table and table in growth.class_containers(module, owner)
            if known and not _drained(module, table, ends):
                others = _dropped_beside(node, table, ends)
                shown = len(others) >= ENOUGH_TABLES and not _is_taken(module, owner, table)
                yield self.hit(
                    node,
                    f"`self.{table}` is not emptied where the work ends",
                    confidence="high" if shown else "low",
                    evidence=_places(module, node, table, others[0]) if shown else (),
                )


def _table(node: cst.CSTNode) -> str:
    """`self.requests[request_id] = ...` names "requests"."""
    if not isinstance(node, cst.Assign) or len(node.targets) != 1:
        return ""
    place = node.targets[0].target
    if isinstance(place, cst.Subscript) and _keyed_by_id(place):
        return dotted(place.value)[5:]
    return ""


def _drops_an_id(end: cst.FunctionDef) -> bool:
    """It takes an entry with such an id out of some table: `del self.running[request_id]`."""
    return any(_drops(end))


def _drops(end: cst.FunctionDef) -> Iterator[tuple[str, cst.CSTNode]]:
    for node in walk(end.body):
        match node:
            case cst.Del(target=cst.Subscript() as place) if _keyed_by_id(place):
                yield dotted(place.value), node
            case cst.Call(
                func=cst.Attribute(value=holder, attr=cst.Name(value="pop")), args=[first, *_]
            ):
                if isinstance(first.value, cst.Name) and _ID.search(first.value.value):
                    yield dotted(holder), node


def _dropped_beside(
    node: cst.CSTNode, table: str, ends: list[cst.FunctionDef]
) -> list[cst.CSTNode]:
    """Return where the ends of one of many works first drop it from each other table."""
    match node:
        case cst.Assign(
            targets=[
                cst.AssignTarget(
                    target=cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=key))])
                )
            ]
        ) if one_of_many(Expr("name", dotted(key))):
            found = {name: place for end in reversed(ends) for name, place in _drops(end)}
            return [place for name, place in found.items() if name != f"self.{table}"]
    return []  # of a few workers or devices it does not matter


def _is_taken(module: Module, owner: cst.ClassDef, table: str) -> bool:
    """Whether other classes take entries out, or anybody calls a method that does."""
    own, linked = module.methods(owner), module.facts
    takes = [(facts, use) for facts, use in linked.uses(table) if use.role == "take"]
    around = [(use, facts.method_around(use.function)) for facts, use in takes]
    methods = {method.name for use, method in around if method and use.holder == "self"}
    if any(use.holder != "self" for use, _ in around) or not methods <= own.keys():
        return True
    return any(any(linked.calls_of(name)) for name in methods - _ALL_AT_ONCE)


def _places(
    module: Module, node: cst.CSTNode, table: str, dropped: cst.CSTNode
) -> tuple[Evidence, ...]:
    """Return where the table is filled, and the method that drops the same id from another."""
    end = module.function_of(dropped)
    assert end is not None
    kept = Evidence(module.location(node), "kept", f"self.{table}")
    return (kept, Evidence(module.location(end), "closing", end.name.value))


def _keyed_by_id(place: cst.Subscript) -> bool:
    match place.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.Name(value=key)))]:
            return bool(_ID.search(key)) and dotted(place.value).startswith("self.")
    return False


def _drained(module: Module, table: str, ends: list[cst.FunctionDef]) -> bool:
    """One of the methods that end work drops entries of the table, itself or by a call."""
    dropping = {
        function.name.value
        for use in growth.uses(module, table)
        if use.role in ("drop", "bind") and (function := module.function_of(use.node)) is not None
    }
    dropping -= _ALL_AT_ONCE
    own = {end.name.value for end in ends}
    called = {
        node.func.attr.value
        for end in ends
        for node in walk(end.body)
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
    }
    return bool(dropping & (own | called))
