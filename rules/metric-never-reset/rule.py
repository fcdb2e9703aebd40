"""self.correlation(outputs, targets) at every step: a metric that keeps a list is never reset."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static.facts.link import Linked, Member, sets_up
from leakcheck.static.facts.model import Call
from leakcheck.static.facts.runs import calls_backward
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.shape import api


class MetricNeverReset(Rule):
    """A metric that keeps all it is given is fed in every call, and nobody resets it."""

    code = "LK322"
    summary = "a metric that keeps every batch it is given is never reset"
    help = "reset it when its value has been read, or use the function of the same name"
    words = ("torchmetrics",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each metric that a class or a training makes, and where it is first fed."""
        linked = module.facts
        for made in filter(_keeps_list, linked.facts.calls):
            fed = _fed_by_training(module, made)
            if fed is not None:
                told = f"`{made.bound}` keeps the batches of all epochs: nobody resets it"
                yield self.hit(fed.at, told)
        for member in linked.classes:
            methods = {index for index, _ in member.methods()}
            for made in linked.facts.calls:
                name = made.bound.removeprefix("self.")
                if made.function not in methods or name == made.bound or not _keeps_list(made):
                    continue
                fed = _first_fed(linked, methods, name)
                if fed is None or _may_be_reset(linked, member, name):
                    continue
                wanted = fed.method not in api("metric-methods")  # for the value of this batch
                yield self.hit(
                    fed.at,
                    f"`self.{name}` keeps all that it was ever given: nobody resets it",
                    confidence="high" if wanted or linked.is_module(member) else "low",
                )


def _keeps_list(made: Call) -> bool:
    """Whether a call makes a metric of torchmetrics whose state is a list of what it was given."""
    if not made.qualified.startswith("torchmetrics."):
        return False
    name = made.method
    if any(name.endswith(each) for each in api("curve-metrics")):
        limit = made.argument("thresholds")
        return limit is None or limit.text == "None"
    return name in api("list-metrics") or name.startswith(tuple(api("list-metric-beginnings")))


def _first_fed(linked: Linked, methods: set[int], name: str) -> Call | None:
    """Return the first call that feeds the metric, outside of what sets the object up."""
    ways = (f"self.{name}", f"self.{name}.update", f"self.{name}.forward")
    fed = (
        call
        for call in linked.facts.calls
        if call.spelled in ways and call.arguments and call.function in methods
        if not sets_up(linked.facts, call.function)
    )
    return next(fed, None)


def _fed_by_training(module: Module, made: Call) -> Call | None:
    """Return where a training feeds a local metric in each epoch, if it asks for no more than that.

    Of one loop the metric is of that loop; of an evaluation it may be of all that is evaluated.
    """
    function, name = made.function, made.bound
    if function < 0 or made.loops or not name.isidentifier():
        return None
    inside = [one for one in module.facts.facts.calls if one.function == function and one.loops > 1]
    ways = (name, f"{name}.update", f"{name}.forward")
    fed = next((one for one in inside if one.spelled in ways and one.arguments), None)
    return (
        fed if fed and calls_backward(inside) and _is_only_asked(module, function, name) else None
    )


def _is_only_asked(module: Module, function: int, name: str) -> bool:
    """Whether a name is given one value, and nothing but asked for what resets no metric."""
    stored = 0
    for node in (one for one in module.nodes(cst.Name) if one.value == name):
        around = module.function_of(node)
        above = module.parent(node)
        if around is None or module.index_of(around) != function:
            return False  # another function may share it
        if isinstance(above, cst.Attribute) and above.value is node:
            if above.attr.value not in api("metric-methods"):
                return False
        elif isinstance(above, cst.AssignTarget):
            stored += 1
        elif not (isinstance(above, cst.Call) and above.func is node):
            return False
    return stored == 1


def _may_be_reset(linked: Linked, member: Member, name: str) -> bool:
    """Whether the metric is handed on, made anew, or reset by its name or as one of many."""
    if linked.spelled_as_string(name):
        return True
    for facts, use in linked.uses_of(name, member):
        renewed = use.role == "bind" and not sets_up(facts, use.function)
        asked = use.role == "read" and use.how not in api("metric-methods")
        if renewed or asked or use.role == "escape":
            return True
    for facts, call in linked.calls_of("reset"):
        one_of_many = call.receiver is not None and "." not in call.receiver.text
        owner = facts.class_around(call.function)
        kin = any(owner is each.facts for each in linked.lineage(member))
        layers = any(each.method in api("layers") for each in facts.calls_in(call.function))
        if one_of_many and (kin or layers):
            return True
    return False
