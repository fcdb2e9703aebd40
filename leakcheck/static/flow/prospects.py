"""What a file's outline rules out: is there any place where a graph could pile up?

Asked of the standard library's tree, before LibCST parses the file, which takes ten times as long.
Each answer errs towards "yes".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from leakcheck.source.words import says
from leakcheck.static import syntax
from leakcheck.static.torch_api import words

# the iterable of a loop over data, as graphs.py asks
DATA = re.compile(r"(?<!micro_)(loader|dataset|data_iter|dataiter|train_data|batches|\bdl\b)",
                  re.IGNORECASE)  # fmt: skip
# methods that give attributes their first values, or move them, as attributes.py asks
SETTING_UP = re.compile(
    r"(__init__|__post_init__|_?build\w*|_?setup|register\w*|_?init_weights|"
    r"reset_parameters|_apply|to_empty|_?load_(from_)?state_dict)$"
)
# functions that mix old and new by arithmetic, as assignments.py asks
MIXING_FUNCTIONS = frozenset(
    {"lerp", "add", "addcmul", "cat", "stack", "where", "max", "maximum", "sum"}
)
_CUTS = frozenset({"detach", "detach_", "data"})


@dataclass(frozen=True, slots=True)
class OutlineProspects:
    """What of a file can make graphs pile up."""

    on_self: bool  # a method adds to an attribute of self
    in_loop: bool  # a loop adds to something in place
    trains: bool  # backward or autograd.grad is called, or a loop calls what may do so
    over_data: bool  # a loop or a comprehension goes over data
    endless: bool  # a while loop, or a loop of the program itself
    feeds: bool  # a method is given something that it may keep
    late: bool  # a loop adds to something, and something is detached outside of a loop


@lru_cache(maxsize=1)
def prospects(outline: ast.Module) -> OutlineProspects:
    """Look once at each node of a file's outline."""
    nodes = syntax.outline_nodes(outline)
    loops = [node for node in nodes if isinstance(node, (ast.For, ast.While))]
    in_loops = [inner for loop in loops for inner in ast.walk(loop)]
    called = [(node, _called(node)) for node in nodes if isinstance(node, ast.Call)]
    return OutlineProspects(
        on_self=_grows_on_self(nodes),
        in_loop=any(isinstance(node, ast.AugAssign) or _adds_in_place(node) for node in in_loops),
        trains=any("backward" in name or name == "grad" for _, name in called)
        or any(isinstance(n, ast.Call) and says(_called(n), "trains") for n in in_loops),
        over_data=any(DATA.search(ast.unparse(each)) for each in _iterated(nodes)),
        endless=any(isinstance(node, ast.While) for node in loops) or _loops_at_top(outline),
        feeds=_feeds(nodes),
        late=any(isinstance(node, ast.AugAssign) or _adds(node) for node in in_loops)
        and _detaches_late(nodes, loops),
    )


def _adds(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="append")):
            return True
    return _adds_in_place(node)


def _detaches_late(nodes: tuple[ast.AST, ...], loops: list[ast.For | ast.While]) -> bool:
    """Whether a graph is cut where no innermost loop is."""
    cuts = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr in _CUTS]
    if not cuts:
        return False
    insides = [{id(inner) for inner in ast.walk(loop)} for loop in loops]
    innermost = [i for i, loop in enumerate(loops) if not _holds_loop(loop)]
    return any(not any(id(cut) in insides[i] for i in innermost) for cut in cuts)


def _holds_loop(loop: ast.For | ast.While) -> bool:
    return any(isinstance(n, (ast.For, ast.While)) and n is not loop for n in ast.walk(loop))


def _feeds(nodes: tuple[ast.AST, ...]) -> bool:
    """Whether something other than a list or dict made here takes an argument in."""
    displays = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.List, ast.Dict, ast.Tuple))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=taker, attr=name), args=[_, *_]):
                takes = says(name, "collects")
            case ast.Subscript(value=taker, ctx=ast.Store()):
                takes = True
            case _:
                continue
        if takes and not (isinstance(taker, ast.Name) and taker.id in displays):
            return True
    return False


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _iterated(nodes: tuple[ast.AST, ...]) -> Iterator[ast.expr]:
    return (node.iter for node in nodes if isinstance(node, (ast.For, ast.comprehension)))


def _loops_at_top(outline: ast.Module) -> bool:
    todo: list[ast.AST] = list(outline.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.For):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)
    return False


def _grows_on_self(nodes: tuple[ast.AST, ...]) -> bool:
    candidates = [node for node in nodes if _adds_to_self(node) or _writes_by_name(node)]
    candidates += _given_back(nodes)
    if not candidates:
        return False
    first = {id(inner) for node in nodes if _sets_up(node) for inner in ast.walk(node)}
    return any(id(node) not in first for node in candidates)


def _writes_by_name(node: ast.AST) -> bool:
    """`setattr(self, name, value)` and `self.register_buffer(name, value)`."""
    match node:
        case ast.Call(func=ast.Name(id="setattr"), args=[holder, _, _]):
            return isinstance(holder, ast.Name) and holder.id == "self"
        case ast.Call(func=ast.Attribute(attr="register_buffer"), args=[_, _, *_]):
            return True
    return False


def _given_back(nodes: tuple[ast.AST, ...]) -> list[ast.AST]:
    """List where an attribute is given a name that was made of it: `self.mean = mean`."""
    made: dict[str, set[str]] = {}
    given: list[tuple[ast.AST, str, str]] = []
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                made.setdefault(name, set()).update(map(own_attribute, ast.walk(value)))
            case ast.Assign(targets=[target], value=value) if own := own_attribute(target):
                names = {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
                given += [(node, name, own) for name in names]
    return [node for node, name, own in given if own in made.get(name, ())]


def _sets_up(node: ast.AST) -> bool:
    """Whether a method gives attributes their first values, and does no more by closures."""
    if not isinstance(node, ast.FunctionDef) or not SETTING_UP.match(node.name):
        return False
    return not any(isinstance(n, ast.FunctionDef) and n is not node for n in ast.walk(node))


def _adds_to_self(node: ast.AST) -> bool:
    match node:
        case ast.AugAssign(target=target):
            return bool(own_attribute(target))
        case ast.Assign(targets=targets, value=value):
            return any(_mixes(each, value) for target in targets for each in _flat(target))
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            return _mixes(target, value)
        case ast.NamedExpr(target=target, value=value):
            return _mixes(target, value)
        case ast.Call(func=ast.Attribute(value=receiver, attr=method)):
            adds = method in words("methods", "grow") or method in words("methods", "in_place_sums")
            return adds and bool(own_attribute(receiver))
    return False


def _adds_in_place(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in words("methods", "in_place_sums")
        case ast.Assign(targets=[target], value=value) if not isinstance(value, ast.Call):
            names = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
            return any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(value))
        case ast.Assign(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
            return name in MIXING_FUNCTIONS
    return False


def _mixes(target: ast.expr, value: ast.expr) -> bool:
    """Whether an attribute of self is set from more than itself, or one of its slots is set."""
    own = own_attribute(target)
    if not own or isinstance(target, ast.Subscript):
        return bool(own)
    if own_attribute(value) and not isinstance(value, ast.Call):  # self.blocks = self.blocks[:last]
        return False
    return own == "?" or any(own_attribute(node) in (own, "?") for node in ast.walk(value))


def _flat(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [inner for element in target.elts for inner in _flat(element)]
    return [target]


def own_attribute(node: ast.AST) -> str:
    """Name the attribute of self that an expression reaches through; "?" when that is computed."""
    name = ""
    while True:
        match node:
            case ast.Attribute(value=inner, attr=attribute):
                name, node = attribute, inner
            case ast.Subscript(value=inner) | ast.Starred(value=inner):
                node = inner
            case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id="self"), *_]):
                return "?"
            case ast.Call(func=ast.Attribute(value=inner)):
                node = inner
            case ast.Name(id="self"):
                return name
            case _:
                return ""
