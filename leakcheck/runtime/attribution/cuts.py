"""Which statements leave only a part of what grows: the newest, the best, those still wanted?"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from leakcheck.runtime.attribution.emptying import ORDERED
from leakcheck.runtime.attribution.measured import is_guarded_by_argument
from leakcheck.runtime.attribution.names import name_of

HUGE = 10_000_000
_COPIES = ("sorted", "list", "dict", "set", "tuple", "deque", "OrderedDict", "Counter")
_CHOOSES = ("nlargest", "nsmallest", "islice", "sample")
_JOINS = ("cat", "concat", "concatenate", "append", "vstack", "hstack", "stack")
_DRAWS = ("randrange", "randint", "integers")
_KEEPS_SOME = ("difference_update", "intersection_update")
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def cuts(node: ast.AST, name: str, within: ast.AST) -> bool:
    """Say whether a statement keeps only some of something: `kept = kept[-n:]`."""
    if not _is_cut(node, name) or is_guarded_by_argument(node, within):
        return False
    return not _is_for_itself(node, name) or any(
        _sets_back(each, name) for each in ast.walk(within)
    )


def _is_for_itself(node: ast.AST, name: str) -> bool:
    """Say whether a variable gets a part of the attribute of its name: `rows = self.rows[-n:]`."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
        return False
    read = {type(each) for each in ast.walk(node.value) if _last_name(each) == name}
    return ast.Attribute in read and ast.Name not in read


def _sets_back(node: ast.AST, name: str) -> bool:
    """Say whether the attribute gets what the variable of its name has: `self.rows = rows`."""
    if not isinstance(node, ast.Assign):
        return False
    attributes = (each for target in node.targets for each in ast.walk(target))
    is_set = any(isinstance(each, ast.Attribute) and each.attr == name for each in attributes)
    values = (each for each in ast.walk(node.value) if isinstance(each, ast.Name))
    return is_set and any(each.id == name for each in values)


def _is_cut(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Assign(targets=[target], value=value):
            whole = not isinstance(target, ast.Subscript) or isinstance(target.slice, ast.Slice)
            return whole and name_of(target) == name and _is_part(value, name)
        case ast.Delete(targets=[ast.Subscript(slice=ast.Slice()) as target]):
            return name_of(target) == name
        case ast.AugAssign(target=target, op=ast.BitAnd()):
            return name_of(target) == name
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=held, attr=method))):
            return method in _KEEPS_SOME and name_of(held) == name
        case ast.For(target=ast.Name(id=gone), iter=chosen, body=body):
            removed = any(_removes(each, gone, name) for each in body)
            return removed and _is_part(chosen, name)
    return False


def _removes(statement: ast.stmt, element: str, name: str) -> bool:
    match statement:
        case ast.Delete(targets=[ast.Subscript(value=held, slice=ast.Name(id=key))]):
            return name_of(held) == name and key == element
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=held, attr=method), args=[key, *_])):
            by_key = isinstance(key, ast.Name) and key.id == element
            return method in ("pop", "discard", "remove") and name_of(held) == name and by_key
    return False


def _is_part(value: ast.expr, name: str) -> bool:
    """Say whether a value is a slice, or some of `name` and more: `kept[-n:] + [x]`."""
    match value:
        case ast.Subscript(slice=at):
            parts = [each for each in getattr(at, "elts", [at]) if isinstance(each, ast.Slice)]
            return any(part.lower or part.upper or part.step for part in parts)
        case ast.BinOp(op=ast.Add(), left=ast.Subscript() as left):
            return _is_slice_of(left, name)
        case ast.BinOp(op=ast.BitAnd(), left=left):
            return _names(left, name)
        case ast.BinOp(op=ast.Sub(), left=ast.Call() as left):  # of sets; h - x may be a tensor
            return _names(left, name)
        case ast.List(elts=[ast.Starred(value=first), *_]):
            return _is_slice_of(first, name)
        case ast.IfExp(body=one, orelse=other):
            return _is_part(one, name) or _is_part(other, name)
        case ast.Call(func=called, args=args, keywords=keywords):
            return _chooses(name_of(called), args, keywords, name)
    return isinstance(value, _COMPREHENSIONS) and _is_chosen(value, name)


def _is_slice_of(value: ast.expr, name: str) -> bool:
    return isinstance(value, ast.Subscript) and name_of(value) == name and _is_part(value, name)


def _chooses(called: str, args: list[ast.expr], keywords: list[ast.keyword], name: str) -> bool:
    """Say whether a function returns some of `name`: `heapq.nlargest(n, kept)`."""
    if called in _COPIES and args:
        limited = called == "deque" and (len(args) > 1 or bool(keywords))
        return _is_part(args[0], name) or (limited and _names(args[0], name))
    if called == "filter" and len(args) == 2:
        return _names(args[1], name) and _compares(ast.walk(args[0]))
    if called in _JOINS and args:
        return any(_is_slice_of(part, name) for part in (*args, *getattr(args[0], "elts", ())))
    return called in _CHOOSES  # whatever they choose from, they choose a number


def _names(node: ast.expr, name: str) -> bool:
    """Say whether an expression is `name` or goes over it: `kept.items()`, `set(kept)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=held, attr="items" | "values" | "keys"), args=[]):
            return name_of(held) == name
        case ast.Call(func=ast.Name(id=called), args=[held]) if called in _COPIES:
            return _names(held, name)
    return name_of(node) == name


def _is_chosen(value: ast.AST, name: str) -> bool:
    """Say whether those stay that are young or small enough, or wanted elsewhere.

    `[r for r in kept if r.step > step - n]`, `{k: kept[k] for k in recent}`.
    """
    chosen = getattr(value, "generators", [])
    if len(chosen) != 1:
        return False
    if _names(chosen[0].iter, name):
        return _compares(part for test in chosen[0].ifs for part in ast.walk(test))
    if name in map(_last_name, ast.walk(chosen[0].iter)):  # range(len(kept))
        return False
    kept = getattr(value, "elt", None) or getattr(value, "value", None)
    parts = list(ast.walk(kept)) if kept is not None else []
    return any(isinstance(part, ast.Subscript) and name_of(part) == name for part in parts)


def _compares(nodes: Iterable[ast.AST]) -> bool:
    orders = [node.ops[0] for node in nodes if isinstance(node, ast.Compare)]
    return any(isinstance(each, (*ORDERED, ast.In)) for each in orders)


def _last_name(node: ast.AST) -> str:
    return name_of(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""


def divisor(node: ast.AST, name: str) -> ast.expr | None:
    """Return 300 where a statement fills places again and again: `table[step % 300] = x`.

    Places may be drawn, `rows[randrange(300)] = x`. Not for a key that is put together,
    `table["step %d" % step] = x`.
    """
    match node:
        case ast.Assign(targets=[ast.Subscript(slice=key) as target]) if name_of(target) == name:
            for part in ast.walk(key):
                match part:
                    case ast.BinOp(left=left, op=ast.Mod(), right=right) if not _is_text(left):
                        return right
                    case ast.BinOp(op=ast.BitAnd(), right=mask):
                        return ast.copy_location(ast.BinOp(mask, ast.Add(), ast.Constant(1)), mask)
                    case ast.Call(func=called, args=[*_, most]) if name_of(called) in _DRAWS:
                        return None if _is_huge(most) else most
    return None


def age_out(statement: ast.AST, name: str, within: ast.AST) -> ast.expr | None:
    """Return n where a statement takes out what is n older: `rows.pop(step - n, None)`."""
    match statement:
        case ast.Delete(targets=[ast.Subscript(value=held, slice=key)]):
            pass
        case ast.Expr(value=call) | ast.Assign(value=call):
            match call:
                case ast.Call(func=ast.Attribute(value=held, attr="pop"), args=[key, *_]):
                    pass
                case ast.Call(func=ast.Attribute(value=held, attr="discard"), args=[key]):
                    pass
                case _:
                    return None
        case _:
            return None
    return _subtracted(key, within) if name_of(held) == name else None


def _subtracted(key: ast.expr, within: ast.AST) -> ast.expr | None:
    """Return n of `step - n`; not of a position, `len(rows) - 1` or `i - 1`."""
    if isinstance(key, ast.Name):  # old = step - n
        values = (
            each.value
            for each in ast.walk(within)
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == key.id
        )
        key = next(values, key)
    match key:
        case ast.BinOp(left=ast.Name() | ast.Attribute(), op=ast.Sub(), right=right):
            return None if isinstance(right, ast.Constant) and right.value == 1 else right
    return None


def _is_huge(number: ast.expr) -> bool:
    """Say whether a number is one that is drawn so as not to come again: 2**40."""
    match number:
        case ast.Constant(value=int(value)):
            return value >= HUGE
        case ast.BinOp(op=ast.Pow() | ast.LShift()):
            return True
    return False


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
