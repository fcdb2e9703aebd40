"""for sample in pool.imap(...): train: the results queue up as fast as they are made."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.source.words import Pattern
from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, walk


class UnboundedImap(Rule):
    """Training loops that are fed by Pool.imap or imap_unordered."""

    code = "LK502"
    summary = "Pool.imap runs ahead of the training and queues the whole data set"
    help = "use a DataLoader, or a semaphore that limits the samples under way"
    words = ("imap",)
    needs_torch = True

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each imap of a multiprocessing pool."""
        for call in module.calls:
            if not isinstance(call.func, cst.Attribute):
                continue
            if call.func.attr.value not in ("imap", "imap_unordered"):
                continue
            if _is_pool(module, call, call.func.value) and _feeds_training(module, call):
                yield self.hit(call, "nothing slows the pool down to the pace of the training")


def _is_pool(module: Module, call: cst.Call, holder: cst.BaseExpression) -> bool:
    """A pool made inline, bound by `=` or `with ... as`, or kept on self, in this module."""
    if isinstance(holder, cst.Call):
        return module.qualified(holder.func) in shape.api("pools") or _of_context(module, holder)
    name = dotted(holder)
    for node in (*module.nodes(cst.Assign), *module.nodes(cst.WithItem)):
        match node:
            case cst.Assign(value=cst.Call() as made, targets=[cst.AssignTarget(target=target)]):
                bound = dotted(target)
            case cst.WithItem(item=cst.Call() as made, asname=cst.AsName(name=target)):
                bound = dotted(target)
            case _:
                continue
        if bound == name and name and _is_pool(module, call, made):
            return True
    return False


def _of_context(module: Module, made: cst.Call) -> bool:
    """`multiprocessing.get_context("spawn").Pool()`, or of a name bound to that."""
    return (
        isinstance(made.func, cst.Attribute)
        and made.func.attr.value == "Pool"
        and ("get_context" in module.source)
    )


def _feeds_training(module: Module, call: cst.Call) -> bool:
    """Looped over by code that trains, or that hands the items to what does: a generator."""
    loop = module.enclosing(call, cst.For)
    if loop is not None and any(node is call for node in walk(loop.iter)):
        return _trains_or_yields(module, loop)
    above = module.parent(call)
    if not isinstance(above, cst.Assign):
        return False
    names = {name for t in above.targets for name in shape.target_names(t.target)}
    return any(
        _trains_or_yields(module, loop)
        for loop in module.nodes(cst.For)
        if any(isinstance(n, cst.Name) and n.value in names for n in walk(loop.iter))
    )


def _trains_or_yields(module: Module, loop: cst.For) -> bool:
    if shape.trains(loop.body):
        return True
    function = module.function_of(loop)
    loads = function is not None and _FEEDS.search(function.name.value) is not None
    return loads and any(isinstance(node, cst.Yield) for node in shape.own_nodes(loop.body))


_FEEDS = Pattern("(?i)__iter__|<feeds>")
