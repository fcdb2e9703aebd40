"""What a file's outline rules out: is there any place where a graph could pile up?

Asked of the standard library's tree, before LibCST parses the file, which takes ten times as long.
Each answer errs towards "yes".
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from leakcheck.source.words import says
from leakcheck.static.syntax import below, outline_walk
from leakcheck.static.syntax import outline_nodes_of as nodes_of
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
    """Look once at the nodes of a file's outline that can answer."""
    loops: list[ast.For | ast.While] = nodes_of(outline, ast.For, ast.While)
    inside = _inside(loops)
    called = map(_called, nodes_of(outline, ast.Call))
    return OutlineProspects(
        on_self=_grows_on_self(outline),
        in_loop=any(isinstance(node, ast.AugAssign) or _adds_in_place(node) for node in inside),
        trains=any("backward" in name or name == "grad" for name in called)
        or any(isinstance(node, ast.Call) and says(_called(node), "trains") for node in inside),
        over_data=any(DATA.search(ast.unparse(each)) for each in _iterated(outline)),
        endless=bool(nodes_of(outline, ast.While)) or _loops_at_top(outline),
        feeds=_feeds(outline),
        late=any(isinstance(node, ast.AugAssign) or _adds(node) for node in inside)
        and _detaches_late(outline, loops),
    )


def _inside(loops: list[ast.For | ast.While]) -> list[ast.AST]:
    """List the loops and all that is in them, each node once."""
    found: dict[ast.AST, None] = {}
    for loop in loops:
        if loop not in found:
            found |= dict.fromkeys(outline_walk(loop))
    return list(found)


def _adds(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="append")):
            return True
    return _adds_in_place(node)


def _detaches_late(outline: ast.Module, loops: list[ast.For | ast.While]) -> bool:
    """Whether a graph is cut where no innermost loop is."""
    cuts = [node for node in nodes_of(outline, ast.Attribute) if node.attr in _CUTS]
    if not cuts:
        return False
    insides = [outline_walk(loop) for loop in loops]
    innermost = {n for inside in insides if not _has_loop(inside[1:]) for n in inside}
    return any(cut not in innermost for cut in cuts)


def _has_loop(nodes: list[ast.AST]) -> bool:
    return any(isinstance(node, (ast.For, ast.While)) for node in nodes)


def _feeds(outline: ast.Module) -> bool:
    """Whether something other than a list or dict made here takes an argument in."""
    displays = {
        target.id
        for node in nodes_of(outline, ast.Assign)
        if isinstance(node.value, (ast.List, ast.Dict, ast.Tuple))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return any(
        not (isinstance(taker, ast.Name) and taker.id in displays) for taker in _takers(outline)
    )


def _takers(outline: ast.Module) -> Iterator[ast.expr]:
    """Yield what is given something by a method that collects, or under a key."""
    for call in nodes_of(outline, ast.Call):
        if isinstance(call.func, ast.Attribute) and call.args and says(call.func.attr, "collects"):
            yield call.func.value
    for slot in nodes_of(outline, ast.Subscript):
        if isinstance(slot.ctx, ast.Store):
            yield slot.value


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _iterated(outline: ast.Module) -> Iterator[ast.expr]:
    yield from (loop.iter for loop in nodes_of(outline, ast.For))
    yield from (clause.iter for clause in nodes_of(outline, ast.comprehension))


def _loops_at_top(outline: ast.Module) -> bool:
    todo: list[ast.AST] = list(outline.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.For):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            todo += below(node)
    return False


def _grows_on_self(outline: ast.Module) -> bool:
    assigns = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)
    nodes = nodes_of(outline, *assigns, ast.Call)
    candidates = {node for node in nodes if _adds_to_self(node) or _writes_by_name(node)}
    candidates |= _given_back(nodes_of(outline, ast.Assign))
    for function in nodes_of(outline, ast.FunctionDef) if candidates else ():
        if _sets_up(function):
            candidates.difference_update(outline_walk(function))
    return bool(candidates)


def _writes_by_name(node: ast.AST) -> bool:
    """`setattr(self, name, value)` and `self.register_buffer(name, value)`."""
    match node:
        case ast.Call(func=ast.Name(id="setattr"), args=[holder, _, _]):
            return isinstance(holder, ast.Name) and holder.id == "self"
        case ast.Call(func=ast.Attribute(attr="register_buffer"), args=[_, _, *_]):
            return True
    return False


def _given_back(assigns: list[ast.Assign]) -> set[ast.AST]:
    """Return where an attribute is given a name that was made of it: `self.mean = mean`."""
    given: list[tuple[ast.AST, str, str]] = []
    for node in assigns:
        match node:
            case ast.Assign(targets=[target], value=value) if own := own_attribute(target):
                names = {each.id for each in outline_walk(value) if isinstance(each, ast.Name)}
                given += [(node, name, own) for name in names]
    wanted = {name for _, name, _ in given}
    made: dict[str, set[str]] = defaultdict(set)
    for node in assigns:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in wanted:
                made[name].update(map(own_attribute, outline_walk(value)))
    return {node for node, name, own in given if own in made[name]}


def _sets_up(function: ast.FunctionDef) -> bool:
    """Whether a method gives attributes their first values, and does no more by closures."""
    if not SETTING_UP.match(function.name):
        return False
    return not any(isinstance(node, ast.FunctionDef) for node in outline_walk(function)[1:])


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
            names = {n.id for n in outline_walk(target) if isinstance(n, ast.Name)}
            return any(isinstance(n, ast.Name) and n.id in names for n in outline_walk(value))
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
    return own == "?" or any(own_attribute(node) in (own, "?") for node in outline_walk(value))


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
