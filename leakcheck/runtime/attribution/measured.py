"""With what is a length compared that is no limit: a counter that goes up, the size of a batch."""

from __future__ import annotations

import ast

from leakcheck.runtime.attribution.names import functions_in, is_around


def goes_up(limit: ast.expr, within: ast.AST) -> bool:
    """Say whether an attribute is counted up and never begins anew: it is a place, and no limit."""
    if not isinstance(limit, ast.Attribute) or turned_at(limit, within) is not None:
        return False
    told = ast.unparse(limit)
    counts = [node for node in ast.walk(within) if isinstance(node, ast.AugAssign)]
    return any(ast.unparse(node.target) == told for node in counts)


def turned_at(counter: ast.expr, within: ast.AST) -> ast.expr | None:
    """Return n where a counter begins anew: `self.at = (self.at + 1) % n`, `if at >= n: at = 0`."""
    told = ast.unparse(counter)
    for node in ast.walk(within):
        match node:
            case ast.Assign(targets=[target], value=ast.BinOp(op=ast.Mod(), right=right)):
                if ast.unparse(target) == told:
                    return right
            case ast.AugAssign(target=target, op=ast.Mod(), value=value):
                if ast.unparse(target) == told:
                    return value
            case ast.If(
                test=ast.Compare(left=left, ops=[ast.GtE() | ast.Gt() | ast.Eq()], comparators=[n]),
                body=body,
            ) if ast.unparse(left) == told:
                if any(_is_set_to_zero(each, told) for each in body):
                    return n
    return None


def _is_set_to_zero(statement: ast.stmt, told: str) -> bool:
    match statement:
        case ast.Assign(targets=[target], value=ast.Constant(value=0)):
            return ast.unparse(target) == told
    return False


def is_guarded_by_argument(cut: ast.AST, within: ast.AST) -> bool:
    """Say whether a statement stands under `if len(batch) > n:`, where `batch` is an argument."""
    branches = (node for node in ast.walk(within) if isinstance(node, ast.If))
    around = (each for each in branches if is_around(each, getattr(cut, "lineno", 0)))
    return any(measures_argument(each, within) for each in around)


def measures_argument(branch: ast.If | ast.While, within: ast.AST) -> bool:
    """Say whether the length compared is that of an argument: a batch keeps its length."""
    arguments = {
        each.arg
        for node in functions_in(within)
        if is_around(node, branch.lineno)
        for each in node.args.args
    }
    for node in ast.walk(branch.test):
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]) if name in arguments:
                return True
            case ast.Attribute(value=ast.Name(id=name), attr="shape") if name in arguments:
                return True
    return False
