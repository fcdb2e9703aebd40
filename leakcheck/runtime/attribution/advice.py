"""What to write instead, for a line that leaks: a pure function of the line and what it keeps."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from itertools import pairwise

from leakcheck.model import Holder, Kind, LeakTrace, Link, Suspect
from leakcheck.runtime.attribution.names import ADDS

_INSIDE = "what is kept has a graph inside ({inside}): detach that, or clear {holder} after its use"
_TRACEBACK = (
    "keep str(error), or error.with_traceback(None): a traceback keeps the locals of its frames"
)
_AFTER_BACKWARD = "if a later backward needs them, empty {container} after it; else keep numbers"
_FOR_BACKWARD = re.compile(r"log_?prob|entrop|log_?pi\b")  # what policy gradients are made of
_CARRIED = "detach what is carried over: {target} = {target}.detach()"
_GENERIC = {
    "graph": "keep numbers: .item() for a scalar, .detach() for a tensor",
    "tensor": "keep a number (.item()) or a bounded window, or move it to disk",
    "object": "bound the container (deque(maxlen=...)) or clear it when it has been used",
    "threads": "let each thread end (a stop flag and .join()), or use a pool of a fixed size",
    "descriptors": "close each when it has been used: a with block, or .close()",
    "processes": "wait for each child to end (.wait() or .join()), or use a pool of a fixed size",
}
_NODE_ADVICE = (
    "what is kept is a part of the graph itself, as the ctx of an autograd.Function is: "
    "keep numbers, or detached tensors"
)
_HOOK_ADVICE = "keep the handle that {method} returns and call its .remove() after use"
_REGISTERED_ADVICE = (
    "what is registered in a module or an optimizer stays there: register it once, "
    "or take it out (del) after use"
)
_OPTIMIZER_ADVICE = (
    "an optimizer keeps state as large as its parameters: drop the old one, or keep one and "
    "empty it with .state.clear()"
)
_STATE_ADVICE = (
    "an optimizer keeps the state of every parameter that it was given: make a new one of those in "
    "use, or take the others out of .param_groups and .state"
)
_HANDLER_ADVICE = "take each handler back with .removeHandler() after use, or add one once"
_WARNED_ADVICE = (
    "each text that was warned of is remembered: keep numbers out of it, or have a filter ignore it"
)
_WARNED = Holder("global", "__warningregistry__")
_SUSPENDED_ADVICE = (
    "a suspended {what} keeps its locals: let it end, or .close() it, and keep what it was made of"
)
_FINALIZE_ADVICE = (
    "weakref.finalize keeps its function and arguments: give it none that refer to the object, "
    "as a bound method does"
)
_EXIT_ADVICE = (
    "what is registered with atexit stays until the program ends: register one function once, "
    "or take each out with atexit.unregister() when it has been called"
)
_CONTEXT_ADVICE = (
    "a context variable keeps its value until it is set back: keep the token that {name}.set() "
    "returns and call {name}.reset(token) after use"
)
_GRAPH_HOOK_ADVICE = (
    "a hook that leads to a tensor of the graph it is on keeps that graph for ever, and no "
    "collection frees it: give it a weakref.ref of its object, or call .remove() on the handle"
)
_DONE_ADVICE = (
    "a task or future keeps its result and its arguments: take each out of {container} when it is "
    "done, with .add_done_callback() or when its result was read"
)
_MEMO_ADVICE = (
    "each new argument is one more entry: limit the cache (maxsize=...), or ask it for what comes "
    "again, which a tensor or a number made anew never does"
)
_AWAITED = ("Task", "Future")
EXIT_FUNCTIONS = Holder("exits", "atexit")
_FINALIZERS = Holder("class attribute", "_registry", "finalize")  # what weakref.finalize keeps
_PARTS_OF_OPTIMIZERS = ((".state", "defaultdict"), (".param_groups", "list"))
_REGISTERS = ("._parameters", "._buffers", "._modules", ".param_groups")
OUTSIDE_ADVICE = (
    "look for what keeps it outside Python's view: a hook on a tensor whose function reaches that "
    "tensor, a function registered with atexit or in C++, or a variable of another thread"
)
CREATE_GRAPH_ADVICE = (
    "backward(create_graph=True) ties each parameter to its gradient in C++: use "
    "torch.autograd.grad(..., create_graph=True), or set .grad = None after use"
)


def fix_for(code: str, kind: Kind, *, scalar: bool | None) -> str:
    """Return the line rewritten so that it keeps no graph, or general advice.

    `scalar`: what is kept has one element, so that .item() may be offered; None for no tensor.
    """
    if kind == "graph" and scalar is None:
        return _NODE_ADVICE
    statement = _parsed(code)
    cut = ".item()" if scalar else ".detach()"
    if kind == "graph" and statement is not None:
        rewritten = _rewritten(statement, cut)
        if rewritten:
            return rewritten
    method = _registers_hook(statement)
    return _HOOK_ADVICE.format(method=f"{method}()") if method else _GENERIC.get(kind, "")


def is_general(fix: str) -> bool:
    """Say whether a fix is said of any leak of its kind: a rule that names the line knows more."""
    return fix in _GENERIC.values()


def fitting(suspect: Suspect) -> str:
    """Return the fix of a suspect, another one if what keeps it calls for its own."""
    links = suspect.trace.links if suspect.trace else ()
    at = next((place for place, link in enumerate(links) if link.suspect), None)
    if suspect.trace is not None and (by_root := _root_advice(suspect.holder, suspect.kind)):
        return by_root
    if suspect.trace is None or at is None:
        return suspect.fix
    if suspect.kind == "graph":
        return _keeper_advice(suspect.trace, at) or _without_graph(suspect, links, at)
    if suspect.kind not in ("tensor", "object"):
        return suspect.fix
    if suspect.holder.kind == "memo":
        return _MEMO_ADVICE
    grown_in = links[at - 1].edge if at else _container(suspect.holder)
    if is_optimizer_state(suspect.holder):
        return _STATE_ADVICE
    if suspect.holder.owner.endswith("Logger") and suspect.holder.name == "handlers":
        return _HANDLER_ADVICE
    if grown_in.endswith("_hooks") and ".remove()" not in suspect.fix:
        return _HOOK_ADVICE.format(method="registering a hook")
    is_parameter = suspect.what.startswith("Parameter ") and links[at].edge.startswith(".")
    registered = _REGISTERED_ADVICE if grown_in in _REGISTERS or is_parameter else ""
    awaited = _DONE_ADVICE if links[at].holder in _AWAITED else ""
    awaited = awaited.format(container=_container(suspect.holder))
    return registered or awaited or _keeper_advice(suspect.trace, at) or suspect.fix


def is_optimizer_state(holder: Holder) -> bool:
    """Say whether it is the state of an optimizer, which has what parameters there are."""
    return holder.kind == "attribute" and holder.name == "state"


def _root_advice(holder: Holder, kind: Kind) -> str:
    """Return what to do about what is registered somewhere until it is taken back."""
    if holder.kind == "graph hook":
        return _GRAPH_HOOK_ADVICE
    root = holder if holder.kind == "outside" else holder.start
    if root.kind == "context variable" and kind != "graph":  # that is to be cut off first
        return _CONTEXT_ADVICE.format(name=root.name)
    known = {EXIT_FUNCTIONS: _EXIT_ADVICE, _FINALIZERS: _FINALIZE_ADVICE, _WARNED: _WARNED_ADVICE}
    return known.get(root, "")


def _keeper_advice(trace: LeakTrace, at: int) -> str:
    """Return what to do about an object that keeps more than its name says, "" if none is seen.

    It is looked for from the reference that grows, at `at`, down to what leaks.
    """
    for link, inner in pairwise(trace.links[at:]):
        if inner.edge.startswith(".tb_"):
            return _TRACEBACK
        if inner.edge.startswith("suspended "):
            return _SUSPENDED_ADVICE.format(what=link.holder)
        if (inner.edge, inner.holder) in _PARTS_OF_OPTIMIZERS:
            return _OPTIMIZER_ADVICE
    return ""


def _without_graph(suspect: Suspect, links: Sequence[Link], at: int) -> str:
    """Return the fix of a graph, or how to free one that is inside of what is kept."""
    inside = _INSIDE.format(inside=links[-1].edge, holder=_container(suspect.holder))
    if at < len(links) - 1 and links[at].edge == "[x]":
        return inside
    carried = suspect.fix.startswith(_CARRIED.partition(":")[0])
    several = any(link.edge == "[x]" for link in links)  # one of each step is kept, not carried
    return inside if carried and several else suspect.fix


def _container(holder: Holder) -> str:
    """Return the name of a container, with the class of an attribute."""
    return holder.named.qualified or "the container"


def _registers_hook(statement: ast.stmt | None) -> str:
    """Return the method that registers a hook, unless what the hook adds to is what grows."""
    nodes = list(ast.walk(statement)) if statement else []
    hooks = [part for node in nodes if isinstance(node, ast.Lambda) for part in ast.walk(node)]
    names, inside = ([*map(_method, part)] for part in (nodes, hooks))
    methods = (name for name in names if name.startswith("register_") and name.endswith("hook"))
    return "" if set(ADDS).intersection(inside) else next(methods, "")


def _method(node: ast.AST) -> str:
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(called, ast.Name):
        return called.id
    return called.attr if isinstance(called, ast.Attribute) else ""


def _parsed(code: str) -> ast.stmt | None:
    try:
        body = ast.parse(code.strip()).body
    except (SyntaxError, ValueError):
        return None
    return body[0] if len(body) == 1 else None


def _rewritten(statement: ast.stmt, cut: str) -> str:
    """Return the statement with what it keeps cut off, "" when that cannot be said in one line."""
    match statement:
        case ast.AugAssign(target=target, op=ast.Add(), value=value) if _may_be_tensor(value):
            return f"{ast.unparse(target)} += {_cut(value, cut)}"
        case ast.AugAssign(target=target):
            return _CARRIED.format(target=ast.unparse(target))
        case ast.Assign(targets=[target], value=ast.BinOp(left=left, op=ast.Add(), right=right)):
            if _reads(left, target) and _may_be_tensor(right):
                return f"{ast.unparse(target)} = {ast.unparse(left)} + {_cut(right, cut)}"
            return _CARRIED.format(target=ast.unparse(target))
        case ast.Assign(targets=[ast.Subscript() as target], value=value) if _may_be_tensor(value):
            return f"{ast.unparse(target)} = {_cut(value, cut)}"
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target]):
            return _CARRIED.format(target=ast.unparse(target))
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=method) as called, args=[kept])):
            if method in ("append", "add", "appendleft", "put", "put_nowait") and _may_be_tensor(
                kept
            ):
                if _FOR_BACKWARD.search(ast.unparse(kept)):
                    return _AFTER_BACKWARD.format(container=ast.unparse(called.value))
                return f"{ast.unparse(called)}({_cut(kept, cut)})"
    return ""


def _reads(value: ast.expr, target: ast.expr) -> bool:
    """Say whether `value` is the target's old value, also by getattr or .get with a default."""
    match value, target:
        case ast.Call(func=ast.Name(id="getattr"), args=[of, ast.Constant(value=name), _]), _:
            return ast.unparse(target) == f"{ast.unparse(of)}.{name!s}"
        case ast.Call(func=ast.Attribute(value=of, attr="get"), args=[key, *_]), ast.Subscript():
            return ast.unparse(target) == f"{ast.unparse(of)}[{ast.unparse(key)}]"
    return ast.unparse(value) == ast.unparse(target)


def _may_be_tensor(value: ast.expr) -> bool:
    # `val += 1` leaks through val; of `records.append((step, loss))` no part can be named safely
    if isinstance(value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        return True
    if isinstance(value, ast.BinOp):
        return _may_be_tensor(value.left) or _may_be_tensor(value.right)
    return isinstance(value, ast.UnaryOp) and _may_be_tensor(value.operand)


def _cut(value: ast.expr, cut: str) -> str:
    text = ast.unparse(value)
    simple = isinstance(value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    return f"{text}{cut}" if simple else f"({text}){cut}"
