"""model.eval() switches dropout off, not gradients: every batch has a graph for nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from leakcheck.static.facts.link import Linked
from leakcheck.static.facts.model import Call, FileFacts
from leakcheck.static.facts.resources import within
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule

_OFF = re.compile(r"no_grad|inference_mode|grad_enabled|enable_grad")
_NEEDS_GRAPH = re.compile(r"backward|^grad$|requires_grad|attribut|attack|gradient|^step$")


class EvaluationWithoutNoGrad(Rule):
    """Loops over data in evaluation mode whose forward passes record graphs."""

    code = "LK406"
    summary = "an evaluation runs its forward passes with gradients on"
    help = "put the loop under torch.no_grad() or torch.inference_mode()"
    proof = "static only: the peak is higher, and nothing grows"
    words = (".eval()",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each function that puts a model in evaluation mode and calls it in a loop."""
        linked = module.facts
        facts = linked.facts
        if any(_OFF.search(call.method) and call.fate == "dropped" for call in facts.calls):
            return
        for call in facts.calls_by_name.get("eval", ()):
            if call.function < 0 or call.receiver is None or call.arguments:
                continue
            passes = _forward_passes(facts, call)
            if passes and not _needs_graph(facts, call.function) and not _is_off(linked, call):
                yield self.hit(
                    passes[0].at,
                    f"`{call.receiver.text}` records a graph for every batch, and nobody uses it",
                    confidence="medium",
                )


def _forward_passes(facts: FileFacts, switch: Call) -> list[Call]:
    """The calls of the model, in a loop behind the switch, with gradients on."""
    name = switch.receiver.text if switch.receiver is not None else ""
    return [
        call
        for call in facts.calls
        if call.function == switch.function
        and name
        and call.spelled == name
        and call.loops > switch.loops
        and call.at > switch.at
        and not any(_OFF.search(manager) for manager in call.managers)
    ]


def _needs_graph(facts: FileFacts, function: int) -> bool:
    """Whether the function differentiates, trains as well, or freezes what it calls."""
    inside = set(within(facts, function))
    return any(
        call.function in inside and _NEEDS_GRAPH.search(call.method) for call in facts.calls
    ) or any(use.function in inside and "grad" in use.name for use in facts.uses)


def _is_off(linked: Linked, switch: Call, depth: int = 0) -> bool:
    """Whether a decorator, or any caller in the project, switches gradients off."""
    function = linked.facts.functions[switch.function]
    if any(_OFF.search(decorator) for decorator in function.decorators):
        return True
    if any(_OFF.search(manager) for manager in switch.managers):
        return True
    for facts, call in linked.calls_of(function.name):
        if any(_OFF.search(manager) for manager in call.managers):
            return True
        around = facts.function(call.function)
        if around is not None and any(_OFF.search(each) for each in around.decorators):
            return True
    return False
