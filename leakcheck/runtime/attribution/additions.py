"""Does a new value have all of what is there, and more? `kept = torch.cat([kept, x])`."""

from __future__ import annotations

import ast

from leakcheck.runtime.attribution.names import FUNCTIONS, JOINS, is_item, name_of

_COPYING = """
list dict tuple deque defaultdict OrderedDict sorted reversed chain array asarray tensor as_tensor
from_numpy copy deepcopy
"""
_KEEPING = """
copy items values keys union append extend concat detach clone contiguous cpu cuda to float double
numpy tolist requires_grad_ add add_ assign rename
"""
_COPIES = frozenset(_COPYING.split())
_SAME = frozenset(_KEEPING.split())  # methods
_FUNCTION = (*FUNCTIONS, ast.Lambda)
_LESS = (ast.Sub, ast.BitAnd, ast.BitXor)  # of sets


def adds_only(value: ast.expr, kept: ast.expr) -> bool:
    """Say whether a value is known to have all that `kept` has, or does not read it.

    `kept`: a variable or an attribute, of whichever object.
    """
    if not reads(value, kept):
        return True
    match value:
        case ast.Name() | ast.Attribute():
            return _is_same(value, kept)
        case ast.BinOp(left=left, op=sign, right=right):
            return not isinstance(sign, _LESS) and adds_only(left, kept) and adds_only(right, kept)
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return all(adds_only(part, kept) for part in parts)
        case ast.Dict(values=parts):
            return all(adds_only(part, kept) for part in parts)
        case ast.Starred(value=inner) | ast.Await(value=inner) | ast.NamedExpr(value=inner):
            return adds_only(inner, kept)
        case ast.IfExp(body=one, orelse=other):
            return all(reads(part, kept) and adds_only(part, kept) for part in (one, other))
        case ast.Call():
            return _joins(value, kept)
        case ast.Lambda():
            return True  # a closure, which holds it
        case ast.ListComp(generators=[over]) | ast.DictComp(generators=[over]):
            return not over.ifs and adds_only(over.iter, kept)
        case ast.SetComp(generators=[over]) | ast.GeneratorExp(generators=[over]):
            return not over.ifs and adds_only(over.iter, kept)
    return False


def _joins(call: ast.Call, kept: ast.expr) -> bool:
    called = name_of(call.func)
    held = call.func.value if isinstance(call.func, ast.Attribute) else None
    if held is not None and reads(held, kept):
        known = called in _SAME and adds_only(held, kept)
    else:
        limited = called == "deque" and (len(call.args) > 1 or bool(call.keywords))
        copies = called in _COPIES and not limited
        linked = called == "partial" or called.lstrip("_")[:1].isupper()  # made with the one before
        known = copies or linked or JOINS.search(called) is not None
    given = (*call.args, *(each.value for each in call.keywords))
    return known and all(adds_only(each, kept) for each in given)


def reads(value: ast.AST, kept: ast.expr) -> bool:
    """Say whether an expression reads more of `kept` than its length."""
    match value:
        case ast.Call(func=ast.Name(id="len"), args=[measured]):
            return is_item(measured) and reads(measured, kept)
        case ast.Name() | ast.Attribute() if _is_same(value, kept):
            return True
    return any(reads(part, kept) for part in ast.iter_child_nodes(value))


def _is_same(node: ast.expr, kept: ast.expr) -> bool:
    """Say whether both are variables or both attributes: `args.rows` is not `rows`."""
    return type(node) is type(kept) and name_of(node) == name_of(kept)


def is_given_less(statement: ast.stmt, kept: ast.expr) -> bool:
    """Say whether an assignment may leave less than there was: `kept = prune(kept)`."""
    match statement:
        case ast.AugAssign(op=ast.Sub() | ast.BitAnd() | ast.BitXor()):
            return True
        case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Tuple(elts=values)):
            pairs = zip(parts, values, strict=False)
            return any(
                name_of(part) == name_of(kept) and _is_less(value, kept) for part, value in pairs
            )
        case ast.Assign(targets=[ast.Tuple() | ast.List()], value=value):
            return reads(value, kept)
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            return _is_less(value, kept)
    return False


def _is_less(value: ast.expr, kept: ast.expr) -> bool:
    return reads(value, kept) and not adds_only(value, kept)


def returns_all(function: ast.FunctionDef | ast.AsyncFunctionDef, given: str) -> bool:
    """Say whether a function returns all of a parameter, or a function that holds it."""
    kept = ast.Name(given)
    inner = (node for node in ast.walk(function) if isinstance(node, _FUNCTION))
    if any(node is not function and reads(node, kept) for node in inner):
        return True
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    return bool(returned) and all(
        value is not None and reads(value, kept) and adds_only(value, kept) for value in returned
    )
