"""Work is put into a table by its id; the method that ends work leaves it there."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from leakcheck.static import growth
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, walk

_STARTS = re.compile(r"^_?(add|submit|start|enqueue|register|begin|insert|schedule|create)")
_ENDS = re.compile(r"^_?(finish|abort|complete|cleanup|clean_up|end|done|cancel|free|process_fin)")
_ID = re.compile(r"(^|_)(id|uid|uuid|handle|key)$")


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
            ends = [m for name, m in methods.items() if _ENDS.match(name)]
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
    match node.targets[0].target:
        case cst.Subscript(
            value=holder,
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(value=key)))],
        ) if _ID.search(key) and dotted(holder).startswith("self."):
            return dotted(holder)[5:]
    return ""


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
