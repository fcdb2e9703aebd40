"""Does the program empty what grows now and then? `if step % 90 == 0: kept = []`, by its source."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from leakcheck.runtime.attribution.names import REMOVES, TAKES, functions_in, is_item, name_of

ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_SIZES = (*ORDERED, ast.Eq, ast.NotEq)


def replaced_in(tree: ast.AST, owner: str) -> ast.AST | None:
    """Return where an object is made anew, now and then, that holds what grows."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and empties(node, owner, tree):
            return node
    return None


def empties(branch: ast.If, name: str, within: ast.AST, line: int = 0) -> bool:
    """Say whether a branch that is taken again and again empties something, or calls what does.

    `if step % 90 == 0: kept = []`, `if done: episode.clear()`, `if now - since > 60: self.flush()`;
    not `if kept is None: kept = []`, and not a `while`, which is the loop around the steps.
    """
    again = any(isinstance(node, ast.Mod) for node in ast.walk(branch.test))
    flag = isinstance(branch.test, (ast.Name, ast.Attribute))
    if not again and not flag and not compares_sizes(branch.test):
        return False
    nodes = [node for part in branch.body for node in ast.walk(part)]
    for function in called_in(branch.body, name, within):
        nodes += [node for node in ast.walk(function) if not _sets_up(node, function)]
    return any(_is_emptying(node, name) for node in nodes if getattr(node, "lineno", 0) != line)


def calls_what_empties(branch: ast.If, name: str, within: ast.AST) -> bool:
    """Say whether a branch calls a function that empties something, and under no condition."""
    statements = [part for each in called_in(branch.body, name, within) for part in each.body]
    nodes = (part.value if isinstance(part, ast.Expr) else part for part in statements)
    return any(_is_emptying(node, name) for node in nodes)


def called_in(
    statements: Sequence[ast.stmt], name: str, within: ast.AST
) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the functions that statements call, but for those with a `name` of their own."""
    nodes = (node for part in statements for node in ast.walk(part))
    called = {name_of(node.func) for node in nodes if isinstance(node, ast.Call)}
    functions = functions_in(within) if called else ()
    return [each for each in functions if each.name in called and not has_own(each, name)]


def has_own(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Say whether `name` is a parameter or a local of a function."""
    nodes = list(ast.walk(function))
    outer = [
        each
        for node in nodes
        if isinstance(node, (ast.Global, ast.Nonlocal))
        for each in node.names
    ]
    made = {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return name not in outer and name in made | {
        node.arg for node in nodes if isinstance(node, ast.arg)
    }


def _is_emptying(node: ast.AST, name: str) -> bool:
    match node:
        case ast.While(test=drained):
            return name_of(drained) == name and removes_from(node, name)
        case ast.Call(func=ast.Attribute(value=emptied, attr="clear")):
            return name_of(emptied) == name and not is_item(emptied)
        case ast.Assign(targets=targets, value=value):
            parts = [part for each in targets for part in getattr(each, "elts", [each])]
            values = getattr(value, "elts", []) if len(parts) > 1 else [value]
            pairs = zip(parts, values, strict=False)
            return any(
                name_of(part) == name and not is_item(part) and _is_empty(one)
                for part, one in pairs
            )
    return False


def _sets_up(node: ast.AST, function: ast.AST) -> bool:
    """Say whether a statement sets an attribute of an object that the function makes itself."""
    match node:
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=owner))]):
            return any(_makes(each, owner) for each in ast.walk(function))
    return False


def _makes(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id=made)], value=ast.Call(func=called)) if made == name:
            maker = ast.unparse(called)
            return maker in ("cls", "type(self)") or maker.endswith("__new__")
    return False


def _is_empty(value: ast.expr) -> bool:
    match value:
        case ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Constant(value="" | b""):
            return True
        case ast.Call(func=ast.Name(), args=[]) | ast.Call(func=ast.Attribute(), args=[]):
            return True  # list(), deque(maxlen=9), defaultdict()
    return False


def compares_sizes(test: ast.expr) -> bool:
    """Say whether a condition compares two sizes, and not with zero, None or nothing.

    `if listener in listeners: listeners.remove(listener)` limits nothing.
    """
    compared = [node for node in ast.walk(test) if isinstance(node, ast.Compare)]
    sides = [side for node in compared for side in (node.left, *node.comparators)]
    with_nothing = any(isinstance(side, ast.Constant) and not side.value for side in sides)
    sizes = any(isinstance(operator, _SIZES) for node in compared for operator in node.ops)
    full = isinstance(test, ast.Call) and name_of(test.func) == "full"  # a queue's own limit
    return (sizes and not with_nothing) or full


def removes_from(branch: ast.If | ast.While, name: str) -> bool:
    """Say whether elements of `name` are removed in a branch."""
    for part in branch.body:
        for node in ast.walk(part):
            match node:
                case ast.Call(func=ast.Attribute(value=changed, attr=method), args=args):
                    # what a dictionary gets stays there: it is asked for a key
                    removes = method in REMOVES or (method in TAKES and not args)
                    if removes and name_of(changed) == name:
                        return True
                case ast.Delete(targets=targets):
                    if any(name_of(target) == name for target in targets):
                        return True
    return False
