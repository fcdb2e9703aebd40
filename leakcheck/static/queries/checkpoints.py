"""Is a checkpoint shown to come from a device, or to be loaded beside a model that is there?

A published file is most often of the CPU, and one copy of it before the model moves is no peak.
What shows more: the file's own code saves checkpoints, or trains in parallel; an optimizer is
restored; one is loaded after the other; it is only looked into; the model is at work already.
"""

from __future__ import annotations

import re
from typing import Literal

import libcst as cst

from leakcheck.source.words import Pattern
from leakcheck.static.facts.model import MODULE, Call, Expr, FileFacts
from leakcheck.static.facts.passes import needs_graph
from leakcheck.static.module import Module

# beside weights, only a training saves an optimizer and its epoch, from where it trained;
# "module." begins the names of what a parallel model saved there, and it keeps an average
_OF_TRAINING = re.compile(r"""optim\w*\.load_state_dict|["']optimi|["']epoch["']""")
_FROM_DEVICE = re.compile(
    rf"""{_OF_TRAINING.pattern}|["']module["'.]|DataParallel|(\b|_)ema(\b|_)"""
)
_MAKES = Pattern(r"(__init__|__new__|_*(<hands_out>)(_\w+)?)$")


def weighs(module: Module, load: cst.Call, *, restored: bool) -> bool:
    """Tell whether it is shown that what a `torch.load` makes lies on a device beside a model.

    `restored`: a model is given it. What others make an object of, as that is made, may be of the
    CPU, and goes with it if not.
    """
    function = module.function_of(load)
    if not restored and function is not None and _MAKES.match(function.name.value):
        return _FROM_DEVICE.search(module.code(function)) is not None
    if not restored or module.loop_of(load) is not None:
        return True
    near = module.code(function) if function is not None else module.source
    made = function is not None and function.name.value == "__init__"
    if (_OF_TRAINING if made else _FROM_DEVICE).search(near):
        return True
    saved_from = _saved_from(module)
    if saved_from == "host":
        return False
    facts, at = module.facts.facts, module.location(load)
    here = [c for c in facts.calls if (c.at.line, c.at.column) == (at.line, at.column - 1)]
    live = any(_is_for_live_model(facts, call) for call in here)
    if live and not made:  # what a constructor loads is most often published
        return True
    return saved_from == "device" and (live or not any(_makes_its_model(facts, c) for c in here))


def _saved_from(module: Module) -> Literal["device", "host", ""]:
    """Where the file saves checkpoints from, if it does.

    `state.cpu()` beside each save is the host; where the function trains as well, that may be of
    anything.
    """
    facts = module.facts.facts
    places = {call.function for call in facts.calls if _saves(call)}
    moving = {call.function for call in facts.calls if _moves_to_host(call)} - {MODULE}
    from_host = {at for at in places & moving if not needs_graph(facts, at)}
    if not places:
        return ""
    return "host" if places == from_host else "device"


def _moves_to_host(call: Call) -> bool:
    place = call.argument("device", 0) if call.method == "to" else None
    return call.method == "cpu" or place == Expr("constant", "'cpu'")


def _saves(call: Call) -> bool:
    return call.qualified == "torch.save" or call.method == "save_checkpoint"


def _is_for_live_model(facts: FileFacts, load: Call) -> bool:
    """Whether the model was moved before, or is that of an object at work."""
    beside = facts.calls_in(load.function) if load.function != MODULE else ()
    models = {_receiver(call) for call in beside if call.method == "load_state_dict"}
    moved = (c for c in beside if c.method in ("cuda", "to") and c.at < load.at)
    if any(_receiver(call) in models or call.bound in models for call in moved):
        return True
    method = facts.method_around(load.function)
    if method is None or not method.owner or _MAKES.match(method.name):
        return False
    made = {call.bound for call in beside}
    return any(name.startswith("self.") and name not in made for name in models)


def _makes_its_model(facts: FileFacts, load: Call) -> bool:
    """Whether the model is made beside the load, and is what is returned: not yet on a device.

    So is what a constructor makes for its object. A method of a class, and not of an object, has
    no model at work.
    """
    function = facts.function(load.function)
    if function is not None and "classmethod" in function.decorators:
        return True
    beside = facts.calls_in(load.function) if function is not None else ()
    restored = {_receiver(call) for call in beside if call.method == "load_state_dict"}
    made = {call.bound for call in beside if call.bound}
    returned = {value.text for value in function.returns} if function is not None else set()
    if function is not None and function.name == "__init__":
        returned |= {name for name in made if name.startswith("self.")}
    return bool(restored) and restored <= made & returned


def _receiver(call: Call) -> str:
    return call.receiver.text if call.receiver is not None else ""
