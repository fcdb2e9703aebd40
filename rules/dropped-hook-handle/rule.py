"""A hook is put on somebody else's module, or at every step, and its handle is thrown away."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.model import Confidence
from leakcheck.static import shape
from leakcheck.static.facts.link import Member
from leakcheck.static.facts.runs import is_made, is_made_once, runs_in_set_up
from leakcheck.static.facts.weight import holds_tensors
from leakcheck.static.module import Module
from leakcheck.static.queries import hooks
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.torch_api import framework


class DroppedHookHandle(Rule):
    """Handles that nobody kept, where the hook will outlive the one who put it there."""

    code = "LK201"
    summary = "a hook's handle is thrown away although the module is not owned, or at every step"
    help = "keep the handle and call its remove() when the object is done"
    words = (
        "register_forward", "register_full_backward", "register_backward_hook", "register_module_",
        "register_optimizer_step", "_register_checkpoint",
    )  # fmt: skip

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each registration on a module."""
        for call in hooks.registrations(module):
            if not hooks.handle_dropped(module, call) or _is_removed_by_base(module, call):
                continue
            if _per_step(module, call) or hooks.runs_what_it_hooks(module, call):
                yield self.hit(call, "each call adds a hook, and none is ever removed")
            elif hooks.foreign(module, call):
                owner = module.member_of(call)
                piles_up = owner is not None and _piles_up(module, owner, call)
                each = owner is not None and _hooks_each_layer(module, owner, call)
                told = "this hook stays on the module when its owner is gone"
                likely: Confidence = "medium" if each else "low"
                yield self.hit(call, told, confidence="high" if piles_up else likely)
        for call in module.calls_of(*shape.api("global-hooks")):
            if call.args and _closes_over_a_call(module, call):
                yield self.hit(call, "each call adds a hook, and none is ever removed")


def _piles_up(module: Module, owner: Member, call: cst.Call) -> bool:
    """Whether owners come again, or users make them and each hook holds one with its tensors."""
    if is_made(owner):
        return not is_made_once(owner)
    return holds_tensors(owner) and hooks.holds_self(module, hooks.hook_argument(call), call)


def _hooks_each_layer(module: Module, owner: Member, call: cst.Call) -> bool:
    """Whether each object that users make adds a hook to every layer of what it is handed."""
    loop, function = module.loop_of(call), module.function_of(call)
    if is_made(owner) or not isinstance(loop, cst.For) or function is None:
        return False
    layers = isinstance(loop.iter, cst.Call) and shape.last_name(loop.iter) in shape.api("layers")
    index = owner.facts.methods.get(function.name.value)
    if not layers or index is None:
        return False
    return function.name.value == "__init__" or runs_in_set_up(owner.file, index)


def _is_removed_by_base(module: Module, call: cst.Call) -> bool:
    """Whether the handle is where a framework's own method looks for it."""
    above = module.parent(call)
    targets = above.targets if isinstance(above, cst.Assign) else ()
    return any(
        shape.last_name(each.target) in framework("hooks", "removed_by_base") for each in targets
    )


def _closes_over_a_call(module: Module, call: cst.Call) -> bool:
    """Whether a hook of the whole process is made anew by a function that others call back."""
    function = module.function_of(call)
    again = function is not None and module.function_of(function) is not None
    if not again or not hooks.handle_dropped(module, call):
        return False  # a function at the top may be set-up, which runs once
    match hooks.hook_argument(call):
        case cst.Name(value=name):
            nested = (f for f in module.functions if f.name.value == name)
            return any(module.function_of(each) is function for each in nested)
        case cst.Lambda():
            return True
    return False


def _per_step(module: Module, call: cst.Call) -> bool:
    function = module.function_of(call)
    in_step = function is not None and function.name.value in shape.api("step-methods")
    return (in_step or shape.training_loop(module, call) is not None) and not _once(module, call)


def _once(module: Module, call: cst.Call) -> bool:
    """Guarded by a test such as `if not self.hooked` or `if handle is None`."""
    tests = [above.test for above in module.ancestors(call) if isinstance(above, cst.If)]
    return any(word in module.code(test) for test in tests for word in ("not ", "None", "== 0"))
