"""An out-of-memory handler retries while the exception still holds the failed attempt."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.facts.link import Linked
from leakcheck.static.facts.model import MODULE, Call, FileFacts
from leakcheck.static.facts.targets import callee
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import constant, dotted, walk


class RetryInExcept(Rule):
    """Handlers of out-of-memory errors that run the failed call again before they end."""

    code = "LK402"
    summary = "a retry inside `except` pays for the failed attempt as well"
    help = "set a flag in the handler and retry after it, when the traceback is gone"
    proof = "static only: a higher peak during the retry, no growth from step to step"
    words = ("out of memory", "OutOfMemoryError", "from_pretrained", "load_model")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each handler of an out-of-memory error, and at models loaded in any handler."""
        for call in module.facts.facts.calls:
            if call.handled == "except" and _second_model(module.facts.facts, call):
                yield self.hit(
                    call.at, f"the first `{call.bound}` is still bound", confidence="medium"
                )
        for attempt in module.nodes(cst.Try):
            failed = _called_in(module, attempt.body)
            wanted, known = _results(attempt.body), _names(attempt.body)
            function = module.function_of(attempt)
            for handler in attempt.handlers:
                if not _of_memory(module, handler):
                    continue
                moved, idle = _moved_to_host(handler.body), _leaves_device(module, handler)
                for node in shape.own_nodes(handler.body):
                    if not isinstance(node, cst.Call) or _on_host(node, moved):
                        continue
                    if _goes_on_in_host(module, handler, node):
                        continue
                    again = _again(module, node, failed, function)
                    again |= _instead(module, node, wanted, known)
                    if again and not _gives_up(module, node):
                        yield self.hit(
                            node,
                            "the failed attempt's tensors are still held during this call",
                            confidence="low" if idle else "high",
                        )


def _second_model(facts: FileFacts, call: Call) -> bool:
    """Whether a handler loads a model into the name that a whole one is bound to."""
    if call.fate != "bound" or not _LOADS.search(call.method) or _is_given(call, call.bound):
        return False  # what is loaded on top of the first needs it
    here = facts.calls_in(call.function)
    first = [
        c for c in here if c.bound == call.bound and c.spelled == call.spelled and c.at < call.at
    ]
    dropped = any(
        use.how == "del" and use.name == call.bound and use.at < call.at
        for use in facts.local_uses
        if use.function == call.function
    ) or any(
        bound.name == call.bound and bound.function == call.function and bound.value.text == "None"
        for bound in facts.bindings
    )
    tried = [c for c in here if c.handled == "try" and c.at < call.at and _is_given(c, call.bound)]
    return not dropped and any(
        whole.handled == "" and whole.loops == call.loops and whole.at < use.at
        for whole in first
        for use in tried
    )


def _is_given(call: Call, name: str) -> bool:
    """Whether the first model is what the attempt works on."""
    return any(given.value.kind == "name" and given.value.text == name for given in call.arguments)


_LOADS = re.compile(r"from_pretrained$|^_?load_model$")


def _moved_to_host(body: cst.CSTNode) -> set[str]:
    """The names that a handler gives a copy in the host's memory, or the host: `x = x.cpu()`."""
    moved = set[str]()
    for move in shape.own_nodes(body):
        if isinstance(move, cst.Assign) and _is_on_host(move.value, moved):
            moved |= {name for each in move.targets for name in shape.target_names(each.target)}
    return moved


def _goes_on_in_host(module: Module, handler: cst.ExceptHandler, retry: cst.Call) -> bool:
    """Whether the handler first moves a model there, by itself or by a function of the project.

    `model.to("cpu")` as a statement moves the model itself; of a tensor it would make a copy.
    """
    first, end = module.location(handler).line, module.location(retry).line
    within = (c for c in module.facts.facts.calls if first <= c.at.line < end)
    return any(
        call.fate == "dropped" and (_moves(call) or _moves_inside(module.facts, call))
        for call in within
    )


def _leaves_device(module: Module, handler: cst.ExceptHandler) -> bool:
    """Whether the handler moves anything to the host at all: what is left may have room then."""
    at = module.location(handler)
    last = max(module.location(node).line for node in shape.own_nodes(handler.body))
    within = [c for c in module.facts.facts.calls if at.line <= c.at.line <= last]
    return any(_moves(call) or _moves_inside(module.facts, call) for call in within)


def _moves_inside(linked: Linked, call: Call, depth: int = 1) -> bool:
    home, index = callee(linked, call) or (linked, MODULE)
    inner = home.facts.calls_in(index) if index != MODULE else ()
    return any(_moves(each) or (depth and _moves_inside(home, each, depth - 1)) for each in inner)


def _moves(call: Call) -> bool:
    to = call.method == "to" and any(a.value.text == "'cpu'" for a in call.arguments)
    return to or (call.method == "cpu" and not call.arguments)


def _on_host(retry: cst.Call, moved: set[str]) -> bool:
    """Whether a retry runs in the host's memory, where the failed attempt's is not missed."""
    return any(_is_on_host(arg.value, moved) for arg in retry.args)


def _is_on_host(value: cst.BaseExpression, moved: set[str]) -> bool:
    """`x.cpu()`, `x.to("cpu")`, `torch.device("cpu")`, "cpu", or a name that is given that."""
    match value:
        case cst.IfExp(body=body):  # `x.cpu() if x is not None else x`
            return _is_on_host(body, moved)
        case cst.Call(func=cst.Attribute(attr=cst.Name("cpu"))):
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name("to" | "device"))):
            return any(_is_on_host(arg.value, moved) for arg in value.args)
    return constant(value) == "cpu" or dotted(value) in moved


def _of_memory(module: Module, handler: cst.ExceptHandler) -> bool:
    """The type says out of memory, or the handler looks for it in the text."""
    if handler.type is not None:
        for node in walk(handler.type):
            if isinstance(node, (cst.Name, cst.Attribute)):
                named = module.qualified(node) or dotted(node)
                if named in shape.api("out-of-memory") or named.endswith("OutOfMemoryError"):
                    return True
    return "out of memory" in module.code(handler.body).lower()


def _called_in(module: Module, body: cst.CSTNode) -> dict[str, list[cst.Call]]:
    """Map what the try block calls that has frames of its own: no builtins, nothing of torch.

    Python's own library holds no tensors, `json.dumps(answer)`. What changes a tensor in place,
    `buffer.resize_(size)`, has no frame.
    """
    calls = (node for node in shape.own_nodes(body) if isinstance(node, cst.Call))
    found: dict[str, list[cst.Call]] = {}
    for call in calls:
        if _has_frames(module, call):
            found.setdefault(dotted(call.func), []).append(call)
    return found


def _has_frames(module: Module, call: cst.Call) -> bool:
    called = dotted(call.func)
    method = called.rpartition(".")[2]
    in_place = isinstance(call.func, cst.Attribute) and method.endswith("_")
    plain = module.qualified(call.func).partition(".")[0] in _WITHOUT_TENSORS
    return bool(called) and not (in_place or plain or method in shape.api("light-calls"))


_WITHOUT_TENSORS = sys.stdlib_module_names | {"torch"}


def _gives_up(module: Module, call: cst.Call) -> bool:
    """Whether a call, whose result nobody takes, is followed by a break or an error."""
    line = module.parent(module.parent(call) or call)
    end = shape.last_statement(module.parent(line) if line is not None else None)
    ends = isinstance(line, cst.SimpleStatementLine) and isinstance(end, (cst.Break, cst.Raise))
    return ends and isinstance(module.parent(call), cst.Expr)


def _again(
    module: Module,
    call: cst.Call,
    failed: Mapping[str, Sequence[cst.Call]],
    function: cst.FunctionDef | None,
) -> bool:
    """Whether the very function that failed is called, and given something that it was given."""
    called = dotted(call.func)
    if called in failed:
        given = _given(call)
        return not given or any(given & _given(each) or not each.args for each in failed[called])
    if function is None:
        return False
    own = function.name.value
    return called == own or (called == f"self.{own}" and shape.is_method(function))


def _results(body: cst.CSTNode) -> set[str]:
    """Name what the try block computes, whole or part by part: `images[at] = decoded`."""
    assigned = (node for node in shape.own_nodes(body) if isinstance(node, cst.Assign))
    targets = (each.target for node in assigned for each in node.targets)
    named = (each.value if isinstance(each, cst.Subscript) else each for each in targets)
    return {dotted(each) for each in named} - {""}


def _names(body: cst.CSTNode) -> set[str]:
    return {node.value for node in shape.own_nodes(body) if isinstance(node, cst.Name)}


def _instead(module: Module, call: cst.Call, wanted: set[str], known: set[str]) -> bool:
    """Whether another way to the same result is tried: `images = self.decode_tiled(latents)`."""
    statement = module.parent(call)
    targets = statement.targets if isinstance(statement, cst.Assign) else ()
    same = any(dotted(each.target) in wanted for each in targets)
    return same and _has_frames(module, call) and bool(_given(call) & known)


def _given(call: cst.Call) -> set[str]:
    """The names in what a call is given, `model.config` as a whole."""
    found = set[str]()
    todo: list[cst.CSTNode] = [arg.value for arg in call.args]
    while todo:
        node = todo.pop()
        name = dotted(node) if isinstance(node, (cst.Name, cst.Attribute)) else ""
        found |= {name} if name else set()
        todo += [] if name else node.children
    return found
