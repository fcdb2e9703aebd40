"""optimizer.add_param_group(...), torch.jit.trace(...) in the loop: each step leaves one more."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.module import LoopNode, Module
from leakcheck.static.queries import hooks
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import walk


class RegisteredEveryStep(Rule):
    """Registrations that last, and compiled code that torch keeps, made anew at each step."""

    code = "LK215"
    summary = "every training step registers one more, and nothing takes it back"
    help = "do it once before the loop, or take it back in the loop"
    words = tuple(sorted({name.rpartition(".")[2] + "(" for name in shape.registrations()}))
    needs_torch = True

    def concerns(self, outline: ast.Module) -> bool:
        """Only a loop that takes steps can matter."""
        return shape.may_step_in_loop(outline)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each registration that every turn of a loop that trains runs."""
        for call in module.calls:
            name = _registration(module, call)
            loop = shape.step_loop(module, call) if name else None
            if loop is None or not _runs_each_turn(module, call, loop):
                continue
            has_handle = name in shape.api("registrations-with-a-handle")
            if has_handle and not hooks.handle_dropped(module, call):
                continue
            target = _target(name, call)
            if target is not None and _is_of_the_turn(target, loop):
                continue
            if not _takes_back(loop, shape.registrations()[name]):
                told = "each step leaves one more behind"
                if target is not None and name.startswith("."):
                    told = f"`{module.code(target)}` keeps one more at each step"
                yield self.hit(call, told, confidence="medium")


def _registration(module: Module, call: cst.Call) -> str:
    """Return the table's name of a registration, "" for other calls."""
    known = shape.registrations()
    qualified = module.qualified(call.func)
    method = f".{call.func.attr.value}" if isinstance(call.func, cst.Attribute) else ""
    return next((name for name in (qualified, method) if name in known), "")


def _target(name: str, call: cst.Call) -> cst.BaseExpression | None:
    """Return what is registered with: the object of a method, else the first argument's."""
    if name.startswith("."):
        return call.func.value if isinstance(call.func, cst.Attribute) else None
    if name in shape.api("registered-with-the-first-argument") and call.args:
        return call.args[0].value
    return None


def _runs_each_turn(module: Module, call: cst.Call, loop: LoopNode) -> bool:
    """Whether no condition, handler or `break` decides if the call is reached."""
    for above in module.ancestors(call):
        if above is loop:
            return True
        if isinstance(above, (cst.If, cst.IfExp, cst.ExceptHandler, cst.FunctionDef, cst.Lambda)):
            return False
    return False


def _is_of_the_turn(target: cst.BaseExpression, loop: LoopNode) -> bool:
    """Whether the loop itself makes what is registered with: another one in every turn."""
    root = shape.root(target)
    if not isinstance(root, cst.Name):
        return not isinstance(root, cst.Attribute)
    bound = shape.target_names(loop.target) if isinstance(loop, cst.For) else []
    return root.value in bound or any(shape.binds(node, root.value) for node in walk(loop.body))


def _takes_back(loop: LoopNode, undone_by: tuple[str, ...]) -> bool:
    calls = (node.func for node in walk(loop.body) if isinstance(node, cst.Call))
    return any(shape.last_name(called) in undone_by for called in calls)
