"""A hook stores what passes through it, and nothing takes it out again."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.facts.link import Member
from leakcheck.static.module import Module
from leakcheck.static.queries import growth, hooks
from leakcheck.static.queries.hooks import Hook, Store
from leakcheck.static.rule import Hit, Rule


class HookKeepsTensors(Rule):
    """Tensors that a hook appends to a list, or hangs on the hooked module, for good."""

    code = "LK202"
    summary = "a hook stores tensors that nothing ever clears"
    help = "clear it where the result is used and where the hook is removed"
    words = ("register_forward", "register_full_backward", "register_backward_hook")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each store in each hook function."""
        for hook in hooks.hook_functions(module):
            for store in hooks.stores(module, hook):
                if message := _complaint(module, hook, store):
                    yield self.hit(store.node, message)


def _complaint(module: Module, hook: Hook, store: Store) -> str:
    held = shape.last_name(store.target)
    if store.grows and _outlives_call(module, store):
        if not growth.bounded(module, store.word) and not _is_renewed(module, store):
            return f"every forward pass adds a tensor to `{held}`, which nothing clears"
        if _consumed_by_backward(module, hook, store):
            return f"`{held}` is emptied by the backward pass only: without gradients it grows"
    if _hung_on_module(hook, store) and _left_behind(module, store):
        return f"`{held}` stays on the module when the hook is removed, with its memory"
    return ""


def _outlives_call(module: Module, store: Store) -> bool:
    if isinstance(store.target, cst.Attribute):
        return True
    return isinstance(store.target, cst.Name) and store.word in growth.module_containers(module)


def _is_renewed(module: Module, store: Store) -> bool:
    """Whether the class, or a base, makes the list anew that a property of this name gives."""
    member = module.member_of(store.node)
    for each in member.file.lineage(member) if member is not None else ():
        index = each.facts.methods.get(store.word)
        given = each.file.facts.functions[index] if index is not None else None
        if given is not None and "property" in given.decorators:
            names = {value.text.removeprefix("self.") for value in given.returns}
            return any(
                use.name in names and not _is_first(each, use.function) for use in each.binds()
            )
    return False


def _is_first(member: Member, function: int) -> bool:
    return function == member.facts.methods.get("__init__")


def _consumed_by_backward(module: Module, hook: Hook, store: Store) -> bool:
    if "is_grad_enabled" in module.code(hook):
        return False
    return hooks.dropped_only_by_backward(module, store.word)


def _hung_on_module(hook: Hook, store: Store) -> bool:
    names = shape.parameter_names(hook)
    target = store.target
    return (
        bool(names)
        and isinstance(target, cst.Attribute)
        and isinstance(target.value, cst.Name)
        and target.value.value == names[0]
    )


def _left_behind(module: Module, store: Store) -> bool:
    """The file takes the hooks off again, and never the attribute they set."""
    if next(hooks.removals(module), None) is None or growth.named_in_text(module, store.word):
        return False
    others = [u for u in growth.uses(module, store.word) if u.act is not store.node]
    return not any(u.role in ("bind", "drop") for u in others)
