"""An evaluation, a prediction, a generation: every batch has a graph for nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from leakcheck.model import Evidence
from leakcheck.source.words import Pattern
from leakcheck.static.facts import passes, trials
from leakcheck.static.facts.link import Linked, Member, holds_tests, sets_up
from leakcheck.static.facts.model import MODULE, Call, ClassFacts, FileFacts, FunctionFacts
from leakcheck.static.facts.targets import callee
from leakcheck.static.module import Module
from leakcheck.static.queries import eval_mode, looked
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.torch_api import words

_INFERENCE = Pattern(
    r"_*((run|do|log)_)?(?!(test|valid|val|infer)(_|$))(<evaluations>|<predicts>|<transcribes>|<generates>)"
    r"(_\w+)?$|_*infer(_(all|batch|batches|dataset|loader|one|step))?$"
)
_TESTS = re.compile(r"_*(test|val|valid)(_(one_)?(epoch|model|loop|net|network))?$")
_PREDICTS = Pattern(r"_*(<predicts>|<transcribes>)(_\w+)?$")
# a method of an object that only asks its model, which is called again and again
_ANSWERS = Pattern(r"_*(act|<predicts>|<transcribes>|(get|select|choose)_action)(_\w+)?$")
# a copy that follows the model that is trained
_FOLLOWS = re.compile(r"(^|[._])(target|tgt)_|_(target|tgt|old)(\.|$)")
# what is done to a model by somebody who is not known
_LEARNS = re.compile(
    r"(?<!env)(?<!envs)(?<!scheduler)\.(step|update_model)$|(optimi|train|fit|learn|minimi)\w*$"
)
_UNUSED = "nobody uses it"
_STEP = Pattern(r"_*(<evaluations>)_(step|batch)$")


class EvaluationWithoutNoGrad(Rule):
    """Loops over data that only look at a model's outputs, whose forward passes record graphs."""

    code = "LK406"
    summary = "an evaluation runs its forward passes with gradients on"
    help = "put the loop under torch.no_grad() or torch.inference_mode()"
    proof = "static only: the peak is higher, and nothing grows"
    words = (".eval()", ".train(False)", "def ", "load_state_dict")
    needs_torch = True

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each function that evaluates, by its name or by a switch of the model's mode."""
        linked, known = module.facts, passes.Passes()
        evaluated = eval_mode.stretches(module.source)
        if holds_tests(linked.path, linked.facts) or passes.switched(linked.facts.calls):
            return
        if (asked := _asked_by_script(linked.facts)) is not None:
            yield self._hit(module, asked, passes.Pass(linked, asked))
        else:
            found = _in_eval_mode(module, known, evaluated, MODULE)
            told = found is not None and not trials.is_trial(linked.facts, found[0])
            yield from [self._hit(module, *found)] if found is not None and told else []
        for index, function in enumerate(linked.facts.functions):
            if (early := _before_mode(module, index)) is not None:
                why = "the gradient mode that it needs is chosen behind it"
                yield self._hit(module, early, passes.Pass(linked, early), why)
                continue
            if passes.is_called_by_framework(function) or passes.switches(linked.facts, index):
                continue
            found = _forward_pass(known, linked, index, function)
            found = found or _looked_at(module, known, index)
            found = found or _in_eval_mode(module, known, evaluated, index)
            why = _UNUSED
            if found is None:
                found = _in_override(known, linked, index, function)
                why = f"the `{function.name}` that this one overrides has gradients off"
            if found is None or passes.freezes(linked, function):
                continue
            if passes.is_differentiated(function) and not _is_read_out(module, found[0]):
                continue
            if found[0].handled == "except" or _asks_for_gradients(known, linked, index, found[1]):
                continue
            if trials.is_trial(linked.facts, found[0]):
                continue
            if looked.is_without_graph(module, found[0].at):
                continue
            if known.is_excused(linked, index):
                continue
            yield self._hit(module, *found, why)

    def _hit(self, module: Module, call: Call, inner: passes.Pass, why: str = _UNUSED) -> Hit:
        return self.hit(
            call.at,
            f"`{call.spelled}` records a graph for every batch, and {why}",
            confidence="medium" if _is_shown(module, call, inner, why) else "low",
            evidence=_evidence(module, call, inner),
        )


def _is_shown(module: Module, call: Call, inner: passes.Pass, why: str) -> bool:
    """Whether it is known that a model with parameters is asked, about data, for its values.

    What is called is treated as a module here or where it is called, or nothing but values of
    its result are used; and it is a step of an evaluation, in a loop, or its values are used.
    That gradients are off in the method overridden, or a little later, says so as well.
    """
    linked, facts = module.facts, module.facts.facts
    if why != _UNUSED:
        return True
    if inner.call is call and looked.is_thrown_away(module, call.at):
        return False
    if passes.may_take_care(inner.file, inner.call) or _is_made_here(inner):
        return False
    if passes.asks_frozen(inner):
        return False
    if passes.may_be_off_around(linked, call):
        return False
    if trials.is_asked_about_made_up(facts, call):
        return False
    if _is_asked_by_nobody(linked, call) or _may_differentiate(linked, inner):
        return False
    if inner.call.spelled.partition(".")[0] == "self":
        owner = inner.file.class_around(inner.call)
        if owner is not None and inner.file.is_module(owner) and not passes.has_parts(owner):
            return False
    if call.function != MODULE and looked.is_only_looked_at(module, call.at, as_data=True):
        return _is_repeated(linked, call, inner)
    looped = call.loops > 0 or inner.looped or call.outermost != (0, 0)
    stepped = _STEP.match(call.method) is not None or inner.call is not call
    return (looped or stepped) and _is_model(linked, call, inner)


def _is_read_out(module: Module, call: Call) -> bool:
    """Whether a model in evaluation mode is asked for numbers only, whatever names say."""
    switched = _switches(module.facts.facts, call.function)
    only_values = looked.is_only_looked_at(module, call.at, as_data=True)
    return only_values and any(_behind(call, switch) for switch in switched)


def _is_repeated(linked: Linked, call: Call, inner: passes.Pass) -> bool:
    """Whether passes follow each other: the graph of one alone is gone when its values are.

    In a loop of this function, of what it calls or of those who call it; or it is kept on self.
    """
    if call.loops or inner.looped or call.outermost != (0, 0) or call.bound.startswith("self."):
        return True
    function = linked.facts.function(call.function)
    if function is None:
        return False
    wanted = linked.calls_of(function.name)
    return bool(_STEP.match(function.name)) or any(c.loops for _, c in wanted)


def _is_asked_by_nobody(linked: Linked, call: Call) -> bool:
    """Whether a pass is what a method returns, so that its graph goes, and nobody calls that."""
    function = linked.facts.function(call.function)
    if function is None or not function.owner or call.loops or function.name.startswith("__"):
        return False
    if not any(place.line <= call.at.line <= place.end_line for place in function.return_places):
        return False
    return next(linked.calls_of(function.name), None) is None


def _may_differentiate(linked: Linked, inner: passes.Pass) -> bool:
    """Whether a model of the project's gives a derivative as well, and this may be that one.

    `energy, forces = self.model(x)`, and some module's forward calls `torch.autograd.grad`.
    """
    if not inner.call.unpacked or "_" in inner.call.unpacked:
        return False
    forwards = ((m.file.facts, m.facts.methods["forward"]) for m in linked.definers("forward"))
    return any(
        call.qualified == "torch.autograd.grad"
        for facts, index in forwards
        for call in facts.calls_in(index)
    )


def _is_made_here(inner: passes.Pass) -> bool:
    """Whether what is called was made by a function or class of the project, and is no module.

    `model = get_model(shape); model(x)`, and nothing treats it as one; or a module whose own
    forward chooses its gradient mode.
    """
    file, called = inner.file, inner.call
    treated = passes.is_treated_as_module(file.facts, called)
    for made in file.facts.calls_in(called.function) if "." not in called.spelled else ():
        if made.bound == called.spelled:
            owner = file.class_called(made.qualified or made.spelled)
            if owner is not None and file.is_module(owner):
                return passes.switches_in_forward(owner)
            return not treated and (owner is not None or callee(file, made) is not None)
    return False


def _is_model(linked: Linked, call: Call, inner: passes.Pass) -> bool:
    """Whether a class, a switch of the mode or a question for parameters says it is a module."""
    owner = inner.file.class_around(inner.call)
    own = inner.call.spelled.startswith("self") and owner is not None
    if own and owner is not None and inner.file.is_module(owner):
        return True
    switched = _switches(linked.facts, call.function)
    models = _models(switched)
    asked = [call.spelled]
    if inner.file.facts is linked.facts and inner.call.spelled.startswith("self."):
        asked.append(inner.call.spelled)
    heads = [each.removesuffix(".forward") for each in asked]
    if any(head in models or head.rpartition(".")[0] in models for head in heads):
        return True
    return passes.is_treated_as_module(linked.facts, call) or passes.is_treated_as_module(
        inner.file.facts, inner.call
    )


def _asks_for_gradients(
    known: passes.Passes, linked: Linked, index: int, inner: passes.Pass
) -> bool:
    """Whether what the function calls differentiates, or what that function does which asks."""
    here = known.asks_for_gradients(linked, index)
    behind = inner.file is not linked or inner.call.function != index
    return here or (behind and known.asks_for_gradients(inner.file, inner.call.function))


def _asked_by_script(facts: FileFacts) -> Call | None:
    """The first call, in a loop of a script that trains nothing, of a model it restored."""
    calls = facts.calls_in(MODULE)
    switched = _switches(facts, MODULE)
    for call in calls if switched else ():
        own = call.spelled.removesuffix(".forward") in _models(switched)
        if own and call.fate != "dropped" and any(_behind(call, each) for each in switched):
            off = passes.is_off(call) or _is_off_beside(facts, MODULE, call)
            return call if not off and passes.only_evaluates(facts) else None
    return None


def _evidence(module: Module, call: Call, inner: passes.Pass) -> tuple[Evidence, ...]:
    """Return where the model is called, if not here."""
    place = module.location_in(inner.file.facts, inner.call.at)
    if inner.call is call or place is None:
        return ()
    return (Evidence(place, "graph", inner.call.spelled),)


def _forward_pass(
    known: passes.Passes, linked: Linked, index: int, function: FunctionFacts
) -> tuple[Call, passes.Pass] | None:
    """The first call in an evaluation that runs a model, and the model's own call behind it."""
    facts = linked.facts
    models = _models(_switches(facts, index))
    only_asked = _only_asked(linked, function)
    models |= only_asked
    for call in _looped(facts, index, function, only_asked):
        own = call.spelled.removesuffix(".forward") in models or call.method == "encode_prompt"
        own |= _is_step_of(call, models) and callee(linked, call) is None
        own = own and not passes.is_off(call)
        found = passes.Pass(linked, call) if own else known.passed(linked, call)
        if found is None or found.call.fate == "dropped" or _is_told_itself(found, call):
            continue
        until = call.outermost[1] or call.at.line
        trains = not _STEP.match(call.method) and passes.needs_graph(facts, index, until)
        if trains or _is_off_beside(facts, index, call):
            return None
        return call, found
    return None


def _looked_at(module: Module, known: passes.Passes, index: int) -> tuple[Call, passes.Pass] | None:
    """The first call of a model whose result, without its graph, is all that is used."""
    linked, facts = module.facts, module.facts.facts
    function = facts.functions[index]
    only_asked = _only_asked(linked, function)
    not_here = sets_up(facts, index) or _STEP.match(function.name) is not None
    not_here |= function.name == "__call__"  # nobody knows its callers by name
    not_here |= "volatile" in module.source  # of before torch 0.4, when no_grad came
    for call in facts.calls_in(index):
        follows = _FOLLOWS.search(call.spelled) is not None
        asked = call.spelled in only_asked
        once = not (call.loops or follows or asked)
        if once and not_here:
            continue
        own = asked or passes.is_forward(linked, call)
        inner = passes.Pass(linked, call) if own else None
        if inner is None and _INFERENCE.match(function.name):  # a step that training has as well
            inner = known.passed(linked, call)
        if follows and inner is None:  # a method of a copy that is never trained
            inner = known.of_module(linked, call)
        if inner is None or passes.is_off(call):
            continue
        trains = passes.needs_graph(facts, index)
        if (trains and not follows) or _is_off_beside(facts, index, call):
            continue
        if looked.is_only_looked_at(module, call.at, as_data=once):
            return call, inner
    return None


def _before_mode(module: Module, index: int) -> Call | None:
    """The first pass whose result is used only in blocks of a gradient mode chosen behind it.

    `out = model(x); mode = enable_grad() if tuned else no_grad()`, and the rest `with mode:`.
    """
    linked, calls = module.facts, module.facts.facts.calls_in(index)
    chosen = [c.at for c in calls if passes.is_switch(c.method) and c.fate in ("bound", "used")]
    for call in calls if chosen and index != MODULE else ():
        early = call.at < min(chosen) and not passes.is_off(call)
        is_pass = early and passes.is_forward(linked, call)
        if is_pass and looked.is_only_looked_at(module, call.at, as_data=True):
            return call
    return None


def _in_eval_mode(
    module: Module, known: passes.Passes, evaluated: Sequence[eval_mode.Stretch], index: int
) -> tuple[Call, passes.Pass] | None:
    """The first pass in a stretch of evaluation that stands beside training."""
    linked = module.facts
    trains = passes.needs_graph_behind(linked.facts, index, 0)
    frozen = passes.freezes_in(linked.facts, index) and not trains
    for stretch in evaluated if not frozen else ():
        calls = [call for call in linked.facts.calls_in(index) if stretch.holds(call)]
        if any(_LEARNS.search(call.spelled) for call in calls):
            continue
        used_behind = passes.needs_graph_behind(linked.facts, index, stretch.last)
        for call in calls:
            once = not stretch.repeats(call) and not (stretch.closed and stretch.is_own(call))
            found = known.passed(linked, call)
            if (
                found is None
                or (once and not found.looped)
                or found.call.fate == "dropped"
                or _is_told_itself(found, call)
            ):
                continue
            if not used_behind or looked.is_only_looked_at(module, call.at):
                return call, found
    return None


def _in_override(
    known: passes.Passes, linked: Linked, index: int, function: FunctionFacts
) -> tuple[Call, passes.Pass] | None:
    """The first pass in a method that a base of its class has under no_grad, and it has not.

    One that switches gradients off for a part knows what it does, and what it leaves to the base's
    own method is without them there.
    """
    if passes.is_careful(linked.facts, index) or passes.trains(function.name):
        return None
    owner = linked.facts.class_named(function.owner)
    bases = linked.lineage(Member(linked, owner))[1:] if owner is not None else []
    same = [each for each in bases if function.name in each.facts.methods][:1]
    guarded = any(passes.is_careful(m.file.facts, m.facts.methods[function.name]) for m in same)
    for call in linked.facts.calls_in(index) if guarded else ():
        of_base = call.receiver is not None and call.receiver.text == "super"
        if of_base and call.method == function.name:
            continue
        found = known.passed(linked, call)
        if found is not None and found.call.fate != "dropped":
            return call, found
    return None


def _is_off_beside(facts: FileFacts, index: int, call: Call) -> bool:
    """Whether gradients are switched off for a part of the same loop."""
    near = (c for c in facts.calls_in(index) if c.outermost == call.outermost)
    return any(passes.is_off(each) for each in near)


def _switches(facts: FileFacts, index: int) -> list[Call]:
    """Return where a function puts a model in evaluation mode, or restores one only to ask it."""
    calls = facts.calls_in(index)
    found = [call for call in calls if call.method == "eval" and not call.arguments]
    restored = [call for call in calls if call.method == "load_state_dict"]
    return found + restored if restored and passes.only_evaluates(facts) else found


def _models(switches: Iterable[Call]) -> set[str]:
    """Name the models that are switched: `model` in `model.to(device).eval()`, too."""
    found = set[str]()
    for receiver in (each.receiver for each in switches if each.receiver is not None):
        head, _, method = receiver.text.rpartition(".")
        if receiver.kind != "call":
            found.add(receiver.text)
        elif head and method in words("methods", "without_pass"):
            found.add(head)
    return found


def _is_step_of(call: Call, models: Collection[str]) -> bool:
    """Whether a call is a step of an evaluation, asked of a model in evaluation mode."""
    model, _, method = call.spelled.rpartition(".")
    return model in models and _STEP.match(method) is not None


def _only_asked(linked: Linked, function: FunctionFacts) -> frozenset[str]:
    """Return the models on `self` that are put in evaluation mode when they come, for good.

    A module's own parts are not among them: what they make may be differentiated outside.
    """
    facts = linked.facts
    owner = facts.class_named(function.owner) if "eval" in facts.calls_by_name else None
    if owner is None:
        return frozenset()
    set_up = {index for index in owner.methods.values() if sets_up(facts, index)}
    calls = (c for c in facts.calls_by_name["eval"] if c.function in set_up)
    found = _models(c for c in calls if not c.arguments)
    on_self = {text for text in found if text.startswith("self.")}
    if not on_self or linked.is_module(Member(linked, owner)):
        return frozenset()
    return frozenset(text for text in on_self if not _is_trained(linked, owner, text))


def _is_trained(linked: Linked, owner: ClassFacts, model: str) -> bool:
    """Whether a class puts its model in training mode, or somebody does with that of an object."""
    attribute = model.removeprefix("self.")
    for facts, call in linked.calls_of("train"):
        head = call.spelled.removesuffix(".train")
        own = facts is linked.facts and call.function in owner.methods.values()
        if (head == model and own) or (head.endswith(f".{attribute}") and head != model):
            return True
    return False


def _looped(
    facts: FileFacts, index: int, function: FunctionFacts, only_asked: frozenset[str]
) -> Iterator[Call]:
    """Yield the calls in the loops of an evaluation, and those of a step of one."""
    named = _INFERENCE.match(function.name) is not None
    named |= _TESTS.match(function.name) is not None
    named |= "Pipeline" in function.owner and function.name == "__call__"
    calls = facts.calls_in(index)
    switched = _switches(facts, index)
    answers = bool(only_asked and _ANSWERS.match(function.name)) and passes.only_evaluates(facts)
    for call in calls:
        behind = any(_behind(call, switch) for switch in switched)
        predicts = _PREDICTS.match(call.method)
        step = _STEP.match(call.method) and not call.spelled.startswith((".", "super"))
        asked = call.spelled.removesuffix(".forward") in only_asked and function.name != "__call__"
        looped = call.loops and (named or behind or predicts or asked)
        looped = looped or (asked and answers)
        encodes = named and call.method == "encode_prompt" and call.spelled[:5] != "self."
        if looped or step or encodes or any(_is_within(call, switch, calls) for switch in switched):
            yield call


def _behind(call: Call, switch: Call) -> bool:
    return call.loops > switch.loops and call.at > switch.at


def _is_within(call: Call, switch: Call, calls: tuple[Call, ...]) -> bool:
    """Whether a model is called between its switch to evaluation and the one back to training."""
    model = switch.receiver.text if switch.receiver is not None else ""
    if not model or not call.spelled.startswith(model) or call.at < switch.at:
        return False
    return any(back.spelled == f"{model}.train" and back.at > call.at for back in calls)


def _is_told_itself(found: passes.Pass, call: Call) -> bool:
    """Whether what is called evaluates in a loop of its own, or in a mode, where it is told."""
    here = found.call.function
    switched = found.call is not call and here != MODULE and _switches(found.file.facts, here)
    return bool(found.looped or switched) and _INFERENCE.match(call.method) is not None
