"""An evaluation, a prediction, a generation: every batch has a graph for nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from leakcheck.static.facts.link import Linked
from leakcheck.static.facts.model import Call, FileFacts, FunctionFacts
from leakcheck.static.facts.resources import within
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.torch_api import makes_module

_OFF = re.compile(
    r"no_?grad|inference_mode|eval_mode|grad_enabled|enable_grad$|stop_gradient", re.IGNORECASE
)
_NEEDS_GRAPH = re.compile(
    r"backward|^grads?$|requires_grad|attribut|attack|gradient|^zero_grad$|jacobian|"
    r"hessian|adversar|^[vj][jv]p$|saliency|forces|detach|repackage"
)
_INFERENCE = re.compile(
    r"_*((run|do|log)_)?(eval|evaluate|evaluation|validate|validation|predict|infer|inference|"
    r"generate|test_epoch|val_epoch|quantize|translate|synthesize|transcribe)(_\w+)?$"
)
_FORWARD = re.compile(
    r"^(self\.)?(?!_?(resolve|get|make|build|load|create|init|prepare|unwrap|wrap|set|export|save)_)"
    r"(\w*_)?(model|net|network|encoder|decoder|backbone|classifier|unet|"
    r"transformer|vae|teacher|student|layer|lm)(_model)?(\.module)?(\.forward\w*)?$|"
    r"^self(\.forward\w*)?$"
)
_PREDICT = re.compile(r"^(self\.)?(\w*_)?(model|net|network)\.predict\w*$")


class EvaluationWithoutNoGrad(Rule):
    """Loops over data that only look at a model's outputs, whose forward passes record graphs."""

    code = "LK406"
    summary = "an evaluation runs its forward passes with gradients on"
    help = "put the loop under torch.no_grad() or torch.inference_mode()"
    proof = "static only: the peak is higher, and nothing grows"
    words = (".eval()", "def ")
    needs_torch = True

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each function that evaluates, by its name or by a switch of the model's mode."""
        linked = module.facts
        facts = linked.facts
        if any(_OFF.search(call.method) and call.fate == "dropped" for call in facts.calls):
            return
        for index, function in enumerate(facts.functions):
            passes = _forward_passes(linked, index, function)
            if (
                passes
                and not _needs_graph(facts, index, passes[0])
                and not _is_off(linked, index, passes[0])
            ):
                yield self.hit(
                    passes[0].at,
                    f"`{passes[0].spelled}` records a graph for every batch, and nobody uses it",
                    confidence="medium",
                )


def _forward_passes(linked: Linked, index: int, function: FunctionFacts) -> list[Call]:
    """The calls of a model, in a loop, with gradients on."""
    named = _INFERENCE.match(function.name) is not None
    if "Pipeline" in function.owner and function.name == "__call__":
        named = True
    calls = linked.facts.calls_in(index)
    switched = {
        call.receiver.text: call
        for call in calls
        if call.method == "eval" and call.receiver is not None and not call.arguments
    }
    found = []
    for call in calls:
        switch = switched.get(call.spelled)
        behind = switch is not None and call.loops > switch.loops and call.at > switch.at
        forward = _FORWARD.match(call.spelled) or (
            _PREDICT.match(call.spelled) and _records(linked, call.method)
        )
        passes = call.loops and forward
        encodes = call.method == "encode_prompt" and not call.spelled.startswith("self.")
        if not behind and not (named and (passes or encodes)):
            continue
        if call.fate != "dropped" and not any(_OFF.search(each) for each in call.managers):
            found.append(call)
    return found


def _records(linked: Linked, method: str) -> bool:
    """Whether most that define the method are torch's modules, and none switches gradients off."""
    found = list(linked.definers(method))
    modules = [member for member in found if any(map(makes_module, linked.foreign_bases(member)))]
    return 2 * len(modules) > len(found) and not any(
        _switches_off(member.file.facts, member.facts.methods[method]) for member in found
    )


def _switches_off(facts: FileFacts, index: int) -> bool:
    words = list(facts.functions[index].decorators)
    for call in facts.calls_in(index):
        words += [call.method, *call.managers]
    return any(_OFF.search(word) for word in words)


def _needs_graph(facts: FileFacts, function: int, forward: Call) -> bool:
    """Whether the function differentiates, trains, or freezes: but for what later loops do."""
    inside = set(within(facts, function))
    end = forward.outermost[1] or forward.at.line
    for call in (call for each in inside for call in facts.calls_in(each)):
        needs = _NEEDS_GRAPH.search(call.method) or (
            call.method == "step" and "opt" in call.spelled
        )
        later = call.function == function and call.loops and call.at.line > end
        if needs and not later:
            return True
    uses = (use for use in facts.uses if use.function in inside and "grad" in use.name)
    return any(not use.loops or use.at.line <= end for use in uses)


def _is_off(linked: Linked, index: int, forward: Call) -> bool:
    """Whether a decorator, or any caller in the project, switches gradients off."""
    function = linked.facts.functions[index]
    if any(_OFF.search(decorator) for decorator in function.decorators):
        return True
    near = (c for c in linked.facts.calls_in(index) if c.outermost == forward.outermost)
    if any(_OFF.search(manager) for call in near for manager in call.managers):
        return True
    for facts, call in linked.calls_of(function.name):
        if any(_OFF.search(manager) for manager in call.managers):
            return True
        around = facts.function(call.function)
        if around is not None and any(_OFF.search(each) for each in around.decorators):
            return True
    return False
