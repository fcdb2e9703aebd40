"""Is a call's result only looked at? Then each way that it goes leads to a value without a graph.

`out = model(x); seen = out[0].softmax(-1); seen.argmax().item()` looks; `return out` does not.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from leakcheck.static.facts.nodes import dotted, span
from leakcheck.static.facts.passes import is_switch
from leakcheck.static.syntax import below, outline, outline_nodes, outline_nodes_of, outline_walk
from leakcheck.static.torch_api import words

if TYPE_CHECKING:
    from leakcheck.static.facts.model import Span
    from leakcheck.static.module import Module

MOST_NAMES = 12  # a value that goes through more names than this is not followed

_LOOKING = frozenset({"print", "isinstance", "len", "type", "float", "int", "bool", "str"})
_ADDS = frozenset({"append", "extend"})  # to a list, which has the value's graph from then on
_ABOUT = frozenset({"shape", "size", "dim", "ndim", "dtype", "device", "numel", "nelement"})
_NEEDING = frozenset({"register_hook", "retain_grad", "grad_fn", "requires_grad"})


def is_only_looked_at(module: Module, at: Span, *, as_data: bool = False) -> bool:
    """Tell whether nothing takes the graph of what the call at a place gives back.

    `as_data`: and something takes its values, more than its shape or its type.
    """
    call, around = _found(module, at)
    if call is None or around is None:
        return False
    looks = _Looks(around)
    if looks.is_under_mode(call):  # which may be off
        return False
    return looks.only_looked_at(call) and (looks.take_data or not as_data)


def is_without_graph(module: Module, at: Span) -> bool:
    """Tell whether what the call at a place gives is read by NumPy, which raises for a graph."""
    call, around = _found(module, at)
    if call is None or around is None:
        return False
    looks = _Looks(around)
    looks.only_looked_at(call)
    return looks.by_numpy


def _found(module: Module, at: Span) -> tuple[ast.Call | None, ast.AST | None]:
    """Return the call at a place, and the function around it."""
    tree = outline(module.source)
    if tree is None:
        return None, None
    calls = outline_nodes_of(tree, ast.Call)
    return next((call for call in calls if span(call) == at), None), _function_around(tree, at)


def is_thrown_away(module: Module, at: Span) -> bool:
    """Tell whether nothing reads what is made of a call's result: a pass to warm up, to set up."""
    tree = outline(module.source)
    if tree is None:
        return False
    statements: list[ast.Expr | ast.Assign] = outline_nodes_of(tree, ast.Expr, ast.Assign)
    made = next((each for each in statements if _begins_with(each.value, at)), None)
    if not isinstance(made, ast.Assign):
        return made is not None
    names = {name for target in made.targets for name in _plain(target) or ("",)}
    around = _function_around(tree, at) or tree
    read = {
        node.id
        for node in outline_walk(around)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    return "" not in names and names.isdisjoint(read)


def _begins_with(node: ast.expr, at: Span) -> bool:
    """Whether an expression is the call at a place, or what is asked of its result."""
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Call) and span(node) == at:
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return False


def _function_around(tree: ast.Module, at: Span) -> ast.AST | None:
    around = [
        node
        for node in outline_nodes(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.lineno <= at.line <= (node.end_lineno or node.lineno)
    ]
    return around[-1] if around else None


class _Looks:
    """What becomes of values in one function."""

    def __init__(self, function: ast.AST) -> None:
        self.take_data = False
        self.by_numpy = False  # with its graph, which raises
        self._bound: dict[str, list[ast.Assign]] = {}
        self._switched = _switched(function)
        self._above: dict[int, ast.AST] = {}
        self._reads: dict[str, list[ast.Name]] = {}
        for node in outline_walk(function):
            for child in below(node):
                self._above[id(child)] = node
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._reads.setdefault(node.id, []).append(node)
            match node:
                case ast.Assign(targets=[ast.Name(id=bound)]):
                    self._bound.setdefault(bound, []).append(node)

    def only_looked_at(self, value: ast.expr) -> bool:
        """Tell whether the graph is cut wherever the value goes, and it goes somewhere."""
        todo, names = [value], list[str]()
        while todo:
            given = self._names_given(todo.pop())
            if given is None or len(names) > MOST_NAMES:
                return False
            new = [name for name in given if name not in names]
            names += new
            todo += [read for name in new for read in self._reads_with_graph(name)]
        return not names or any(name in self._reads for name in names)

    def _reads_with_graph(self, name: str) -> list[ast.Name]:
        """Return the reads of a name, but those behind `name = name.detach().numpy()`."""
        reads = self._reads.get(name, [])
        for statement in self._bound.get(name, ()):
            inner = [read for read in outline_walk(statement.value) if read in reads]
            if inner and all(self._names_given(read) == [] for read in inner):
                behind = self._rest_of_block(statement)
                reads = [read for read in reads if read.lineno not in behind]
        return reads

    def _rest_of_block(self, statement: ast.Assign) -> range:
        """Return the lines behind a statement in the block that it stands in."""
        around = self._above.get(id(statement))
        blocks = [getattr(around, part, None) for part in ("body", "orelse", "finalbody")]
        block = next((each for each in blocks if each and statement in each), [statement])
        last = max(node.end_lineno or node.lineno for node in block)
        return range((statement.end_lineno or statement.lineno) + 1, last + 1)

    def is_under_mode(self, value: ast.expr) -> bool:
        """Tell whether a value is made or read in a block that switches gradients."""
        return any(value.lineno in lines for lines in self._switched)

    def _makes_another(self, value: ast.expr) -> bool:
        """Whether a tensor is read for what is made of it: an item, an attribute, a sum."""
        match self._above.get(id(value)):
            case ast.Subscript(value=inner) | ast.Attribute(value=inner):
                return inner is value
            case ast.BinOp() | ast.UnaryOp():
                return True
        return False

    def _cuts(self, read: ast.Attribute) -> bool:
        """Whether what is read has no graph: `x.shape`, `x.item()`, not the field `out.sample`."""
        around = self._above.get(id(read))
        called = isinstance(around, ast.Call) and around.func is read
        return read.attr in words("methods" if called else "attributes", "cut")

    def _names_given(self, value: ast.expr) -> list[str] | None:
        """Return the names that take the value with its graph; None where it goes elsewhere."""
        node: ast.AST = value
        if self.is_under_mode(value) and self._makes_another(value):
            self.take_data = True
            return []
        while (above := self._above.get(id(node))) is not None:
            match above:
                case ast.Attribute(attr=attr) if attr in _NEEDING:
                    return None
                case ast.Attribute(attr=attr) if self._cuts(above) or attr in _ADDS:
                    self.take_data |= attr not in _ABOUT | _ADDS
                    self.by_numpy |= attr == "numpy"
                    return []
                case ast.Call(func=ast.Name(id=name)) if name in _LOOKING:
                    return []
                case (
                    ast.FormattedValue()
                    | ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format"))
                ):
                    self.take_data = True
                    return []
                case ast.Compare():
                    return []
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if (
                    attr in _ADDS and node in above.args
                ):
                    return [name]
                case ast.Assign(targets=[target]) if above.value is node:
                    return _plain(target)
                case ast.stmt() | ast.Lambda() | ast.comprehension():
                    return None
            node = above
        return None


def _switched(function: ast.AST) -> list[range]:
    """Return the lines of the blocks whose own manager switches gradients, always or by a value."""
    chosen = {
        target.id
        for each in outline_walk(function)
        if isinstance(each, ast.Assign) and _says_mode(each.value)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    return [
        range(block.body[0].lineno, (block.end_lineno or block.lineno) + 1)
        for block in outline_walk(function)
        if isinstance(block, ast.With)
        for item in block.items
        if _says_mode(item.context_expr)
        or (isinstance(item.context_expr, ast.Name) and item.context_expr.id in chosen)
    ]


def _says_mode(value: ast.expr) -> bool:
    """`torch.no_grad()`, and `torch.enable_grad() if tuned else torch.no_grad()`."""
    if isinstance(value, ast.IfExp):
        return _says_mode(value.body) or _says_mode(value.orelse)
    return isinstance(value, ast.Call) and is_switch(dotted(value.func).rpartition(".")[2])


def _plain(target: ast.expr) -> list[str] | None:
    """Return the plain names of a target; None where it is, or holds, another place."""
    match target:
        case ast.Name(id=name):
            return [name]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            names: list[str] = []
            for part in parts:
                inner = _plain(part)
                if inner is None:
                    return None
                names += inner
            return names
    return None
