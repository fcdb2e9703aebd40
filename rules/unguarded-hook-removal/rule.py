"""Hooks are registered, work is done, hooks are removed: an exception skips the last part."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.facts.runs import fails_the_program
from leakcheck.static.module import Module
from leakcheck.static.queries import hooks, lifetime
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, walk


class UnguardedHookRemoval(Rule):
    """Functions that add hooks, run the model and remove the hooks, without a finally."""

    code = "LK207"
    summary = "hooks are removed at the end of a function, but not when it raises"
    help = "do the work in a try block and remove the hooks in its finally"
    words = ("register_forward", "register_full_backward", "register_backward_hook")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look for functions with work between a registration and its removal."""
        adding, removing = hooks.hooking_functions(module), hooks.unhooking_functions(module)
        for function in module.functions:
            nodes = list(shape.own_nodes(function))
            removed = [n for n in nodes if _is_removing(n, removing - adding)]
            added = [n for n in nodes if removed and _is_adding(module, n, adding - removing)]
            added = [n for n in added if not _kept_elsewhere(module, n, nodes, removed)]
            added = [n for n in added if not all(_is_instead(module, n, each) for each in removed)]
            if not added or not removed or function.name.value in adding & _EXITS:
                continue
            if _is_fixture(function):
                continue
            if any(lifetime.removed_in_finally(module, n) for n in removed):
                continue
            if any(_is_after_any_error(module, n) for n in removed):
                continue
            if _work_between(module, nodes, added[-1], removed[0]):
                told = "an exception before the removal leaves the hook there"
                ends = _ends_with_it(module, function)
                for node in added:
                    brief = ends or _only_look(module, node)
                    yield self.hit(node, told, confidence="low" if brief else "high")


def _only_look(module: Module, added: cst.CSTNode) -> bool:
    """Whether the hooks that stay are known, and neither keep a tensor nor change a pass."""
    named = _adder(added)
    found = []
    for call in hooks.registrations(module):
        function = module.function_of(call)
        if call is added or (function is not None and function.name.value == named):
            behind = list(hooks.functions_behind(module, call))
            if not behind:
                return False
            found += behind
    return bool(found) and all(hooks.only_looks(module, each) for each in found)


def _adder(added: cst.CSTNode) -> str:
    """Name the function that adds the hooks, called here or handed on to be; empty for others."""
    match added:
        case cst.Call(func=name) | cst.Arg(value=name):
            return _own(name)
    return ""


def _ends_with_it(module: Module, function: cst.FunctionDef) -> bool:
    """Whether nothing catches the exception, of what only a script calls: the hook goes as well."""
    index = module.index_of(function)
    return index is not None and fails_the_program(module.facts, index)


def _is_instead(module: Module, one: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Whether only one of the two runs: they stand in different branches of an `if`."""
    inside = {id(above) for above in module.ancestors(other)}
    inner = one
    for above in module.ancestors(one):
        if id(above) in inside:
            return isinstance(above, cst.If) and id(inner) not in inside and inner is not above.test
        inner = above
    return False


def _is_after_any_error(module: Module, removal: cst.CSTNode) -> bool:
    """Whether a handler of every error removes them: `except Exception: self.remove(); raise`."""
    handler = module.enclosing(removal, cst.ExceptHandler)
    if not isinstance(handler, cst.ExceptHandler):
        return False
    return handler.type is None or dotted(handler.type) in ("Exception", "BaseException")


_EXITS = frozenset(["__enter__", "__exit__"])


def _is_adding(module: Module, node: cst.CSTNode, adding: set[str]) -> bool:
    if isinstance(node, cst.Call):
        direct = isinstance(node.func, cst.Attribute) and (
            node.func.attr.value in shape.api("module-hooks")
        )
        if direct:
            return not _on_itself(node) and not hooks.handle_dropped(module, node)
        return _own(node.func) in adding
    # model.apply(self._register_hooks), not model.register_forward_hook(partial(hook, 1))
    if not isinstance(node, cst.Arg) or _own(node.value) not in adding:
        return False
    return shape.last_name(module.parent(node) or node) not in {
        "partial",
        *shape.api("module-hooks"),
    }


def _kept_elsewhere(
    module: Module, call: cst.CSTNode, nodes: list[cst.CSTNode], removed: list[cst.CSTNode]
) -> bool:
    """Whether the handle goes into a list of another object, which nothing here removes."""
    above = module.parent(call)
    if not isinstance(above, cst.Assign) or not isinstance(above.targets[0].target, cst.Name):
        return False
    name = above.targets[0].target.value
    later = nodes[next(i for i, n in enumerate(nodes) if n is above) :]
    for node in later:
        match node:
            case cst.Call(
                func=cst.Attribute(value=cst.Attribute() as holder, attr=cst.Name(value="append")),
                args=[cst.Arg(value=cst.Name(value=given))],
            ) if given == name and not dotted(holder).startswith("self."):
                word = holder.attr.value
                return not any(word in module.code(_loop_or(module, each)) for each in removed)
            case cst.Name(value=value) if value == name and node is not above.targets[0].target:
                return False
    return False


def _loop_or(module: Module, node: cst.CSTNode) -> cst.CSTNode:
    loop = module.loop_of(node)
    return loop.iter if isinstance(loop, cst.For) else node


def _on_itself(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and dotted(call.func.value) == "self"


def _is_removing(node: cst.CSTNode, removing: set[str]) -> bool:
    if not isinstance(node, cst.Call):
        return False
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "remove":
        return not node.args
    return _own(node.func) in removing


def _is_fixture(function: cst.FunctionDef) -> bool:
    """Whether pytest goes on behind its yield, whatever became of the test."""
    return any("fixture" in dotted(_function(each)) for each in function.decorators)


def _function(decorator: cst.Decorator) -> cst.BaseExpression:
    given = decorator.decorator
    return given.func if isinstance(given, cst.Call) else given


def _own(name: cst.BaseExpression) -> str:
    """`f` or `self.f`, without the self."""
    spelled = dotted(name).removeprefix("self.")
    return "" if "." in spelled else spelled


def _work_between(
    module: Module, nodes: list[cst.CSTNode], start: cst.CSTNode, end: cst.CSTNode
) -> bool:
    """What can fail lies between: a call, unless it is bookkeeping, or who is waited for."""
    inside = {id(n) for n in (*walk(start), *walk(end))}
    first = next(i for i, n in enumerate(nodes) if n is start)
    last = next((i for i, n in enumerate(nodes) if n is end), first)
    between = nodes[first + 1 : last]
    if any(isinstance(n, (cst.Yield, cst.Await)) for n in between):
        return True
    return any(
        isinstance(n, cst.Call)
        and id(n) not in inside
        and shape.last_name(n) not in shape.api("bookkeeping-calls")
        for n in between
    )
