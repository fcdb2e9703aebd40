"""A line that keeps a graph, rewritten so that it keeps none: `losses.append(loss.item())`."""

from __future__ import annotations

import ast
import re

from leakcheck.model import Reason
from leakcheck.source.tree import ADDS, name_of
from leakcheck.source.words import words

_FOR_BACKWARD = re.compile(r"log_?prob|entrop|log_?pi\b")  # what policy gradients are made of


def adds_without_graph(code: str) -> bool:
    """Say whether a line adds what has no graph any more: `losses.append(loss.item())`."""
    match statement_of(code):
        case ast.Expr(value=ast.Call(args=[*_, ast.Call() as added])):
            return _method(added) in words("methods", "detaches")
    return False


def registers_hook(statement: ast.stmt | None) -> str:
    """Return the method that registers a hook, unless what the hook adds to is what grows."""
    nodes = list(ast.walk(statement)) if statement else []
    hooks = [part for node in nodes if isinstance(node, ast.Lambda) for part in ast.walk(node)]
    names, inside = ([*map(_method, part)] for part in (nodes, hooks))
    methods = (name for name in names if name.startswith("register_") and name.endswith("hook"))
    return "" if set(ADDS).intersection(inside) else next(methods, "")


def _method(node: ast.AST) -> str:
    return name_of(node.func) if isinstance(node, ast.Call) else ""


def statement_of(code: str) -> ast.stmt | None:
    """Return the only statement of a line, None if it has none or several."""
    try:
        body = ast.parse(code.strip()).body
    except (SyntaxError, ValueError):
        return None
    return body[0] if len(body) == 1 else None


def rewritten(statement: ast.stmt, cut: str) -> Reason | None:
    """Return the statement with what it keeps cut off, None when one line cannot say that."""
    match statement:
        case ast.AugAssign(target=target, op=ast.Add(), value=value) if _may_be_tensor(value):
            return written(f"{ast.unparse(target)} += {_cut(value, cut)}")
        case ast.AugAssign(target=target):
            return _carried(target)
        case ast.Assign(targets=[target], value=ast.BinOp(left=left, op=ast.Add(), right=right)):
            if _reads(left, target) and _may_be_tensor(right):
                return written(f"{ast.unparse(target)} = {ast.unparse(left)} + {_cut(right, cut)}")
            return _carried(target)
        case ast.Assign(targets=[ast.Subscript() as target], value=value) if _may_be_tensor(value):
            return written(f"{ast.unparse(target)} = {_cut(value, cut)}")
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target]):
            return _carried(target)
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=method) as called, args=[kept])):
            if method in ("append", "add", "appendleft", "put", "put_nowait") and _may_be_tensor(
                kept
            ):
                if _FOR_BACKWARD.search(ast.unparse(kept)):
                    return Reason.of("empty-after-backward", container=ast.unparse(called.value))
                return written(f"{ast.unparse(called)}({_cut(kept, cut)})")
    return None


def written(code: str) -> Reason:
    """Say to write this line instead."""
    return Reason.of("write", code=code)


def _carried(target: ast.expr) -> Reason:
    return Reason.of("detach-carried", target=ast.unparse(target))


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
