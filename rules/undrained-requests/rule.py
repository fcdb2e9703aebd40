"""Work is put into a table by its id; the method that ends work leaves it there."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from leakcheck.static.module import Module
from leakcheck.static.queries import growth
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, walk

_STARTS = re.compile(r"_?(add|submit|start|enqueue|register|begin|insert|schedule|create)(_|$)")
_ENDS = re.compile(
    r"_?(finish|abort|complete|cleanup|clean_up|end|done|cancel|free|process_finished)(_|$)"
)
_ID = re.compile(r"(^|_)(id|uid|uuid|handle)$")


class UndrainedRequests(Rule):
    """Tables filled when work starts, and not emptied by what ends it."""

    code = "LK308"
    summary = "a table of requests is filled when work starts and not drained when it ends"
    help = "pop the entry where the work ends, on success, failure and abort alike"
    default = False
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
                yield self.hit(node, f"`self.{table}` is not emptied where the work ends")


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
    for node in walk(end.body):
        match node:
            case cst.Del(target=cst.Subscript() as place) if _keyed_by_id(place):
                return True
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="pop")), args=[first, *_]):
                if isinstance(first.value, cst.Name) and _ID.search(first.value.value):
                    return True
    return False


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
    dropping -= {"__init__", "reset", "clear"}
    own = {end.name.value for end in ends}
    called = {
        node.func.attr.value
        for end in ends
        for node in walk(end.body)
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
    }
    return bool(dropping & (own | called))
