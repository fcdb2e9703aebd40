"""Is it shown that the graphs which pile up become many? Else a leak is of low confidence.

A loop is long where it goes over data, has no end of its own, or trains: an optimizer steps in its
turns, or a function that it calls trains. One over the parts of a batch ends with the batch. What
is taken out again, by a function beside the loop, is a queue, which holds a few. A parameter has no
past.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.source.words import words
from leakcheck.static import syntax
from leakcheck.static.flow.judging import is_data_loop
from leakcheck.static.torch_api import framework

if TYPE_CHECKING:
    from leakcheck.static.flow.records import GrowingPlace
    from leakcheck.static.flow.walk import Flow
    from leakcheck.static.module import LoopNode, Module


def becomes_much(flow: Flow, growth: GrowingPlace) -> bool:
    """Tell whether a list or sum is shown to take in more than the parts of one step."""
    if growth.slots or growth.added.leaf or _is_queue(flow, growth):
        return False
    inside = [each.node for each in flow.backwards if each.loops & growth.loops]
    if growth.per_call or growth.filled or not inside or isinstance(flow.scope, cst.Module):
        return True
    loops = flow.module.loops_with(growth.loops)
    return any(_is_long(flow, loop) for loop in loops) or any(map(_trains, inside))


def asks_for_gradients(module: Module) -> bool:
    """Tell whether a file makes tensors require a gradient, which nothing gives a number.

    What a call gives back in one branch may be a plain number in the other.
    """
    return "requires_grad" in module.source or "Parameter(" in module.source


def _is_long(flow: Flow, loop: LoopNode) -> bool:
    return isinstance(loop, cst.While) or is_data_loop(flow, loop) or _steps(loop.body)


def _steps(body: cst.CSTNode) -> bool:
    """Whether an optimizer steps, or starts anew: `optimizer.step()`, not `env.step(action)`."""
    return any(
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and (node.func.attr.value == "zero_grad" or _is_plain_step(node))
        for node in syntax.walk(body)
    )


def _is_plain_step(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "step" and not call.args


def _trains(passed: cst.Call) -> bool:
    """Whether backward is called by a function, which may step as well."""
    called = syntax.dotted(passed.func).rpartition(".")[2]
    return called not in framework("backward", "methods")


def _is_queue(flow: Flow, growth: GrowingPlace) -> bool:
    """Whether the function, or one nested in it, takes entries out: `waiting[part].pop(0)`."""
    place = growth.target.partition("[")[0]
    if growth.how != "collect" or not isinstance(flow.scope, cst.FunctionDef):
        return False
    return any(
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value in words("methods", "take")
        and flow.code(node.func.value).partition("[")[0] == place
        for node in syntax.walk(flow.scope.body)
    )
