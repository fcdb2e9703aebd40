"""What a file's outline rules out: is there any place where a graph could pile up?

Asked of the standard library's tree, before LibCST parses the file, which takes ten times as long.
Each answer errs towards "yes".
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import cast

from leakcheck.source.words import Pattern, says
from leakcheck.source.words import words as said
from leakcheck.static.syntax import outline_at_top, outline_walk
from leakcheck.static.syntax import outline_nodes_of as nodes_of
from leakcheck.static.torch_api import framework, words

# the iterable of a loop over data, as graphs.py asks
DATA = Pattern(r"(?i)(?<!micro_)(<data>|\bdl\b)")
# methods that give attributes their first values, or move them, as attributes.py asks
SETTING_UP = Pattern(r"(_?(<first_values>)|(_?build|register)\w*)$")
# functions that mix old and new by arithmetic, as assignments.py asks
MIXING_FUNCTIONS = frozenset(
    {"lerp", "add", "addcmul", "cat", "stack", "where", "max", "maximum", "sum"}
)
_CUTS = frozenset({"detach", "detach_", "data"})
_WRITERS = frozenset({"setattr", "register_buffer"})


Loop = ast.For | ast.AsyncFor | ast.While
OutlineFunction = ast.FunctionDef | ast.AsyncFunctionDef


class OutlineProspects:
    """What of a file can make graphs pile up; each is looked for when a rule asks."""

    def __init__(self, outline: ast.Module) -> None:
        """Take a file's outline."""
        self._outline = outline
        self._loops: list[Loop] = nodes_of(outline, ast.For, ast.While)
        self._every_loop = [*self._loops, *nodes_of(outline, ast.AsyncFor)]

    @cached_property
    def _inside(self) -> list[ast.AST]:
        return _inside(self._loops)

    @cached_property
    def on_self(self) -> bool:
        """A method adds to an attribute of self."""
        return _grows_on_self(self._outline)

    @cached_property
    def in_loop(self) -> bool:
        """A loop adds to something in place."""
        return any(isinstance(n, ast.AugAssign) or _adds_in_place(n) for n in self._inside)

    @cached_property
    def trains(self) -> bool:
        """Backward or autograd.grad is called, or a loop calls what may do so."""
        called = map(_called, nodes_of(self._outline, ast.Call))
        return any("backward" in name or name == "grad" for name in called) or any(
            isinstance(node, ast.Call) and says(_called(node), "trains") for node in self._inside
        )

    @cached_property
    def evaluates(self) -> bool:
        """A loop or a comprehension goes over data, in what is no training."""
        return _evaluates(self._outline)

    @cached_property
    def samples(self) -> bool:
        """A scheduler steps from one sample to the next: it is given three values or more."""
        calls = [node for node in self._inside if isinstance(node, ast.Call)]
        steps = (node for node in calls if _called(node) in framework("pipelines", "step"))
        return any(len(node.args) + len(node.keywords) > 2 for node in steps)

    @cached_property
    def catches(self) -> bool:
        """A function inside of another one adds to a list."""
        functions = nodes_of(self._outline, ast.FunctionDef)
        inner = {
            n for f in functions for n in outline_walk(f)[1:] if isinstance(n, ast.FunctionDef)
        }
        return any(_adds(node) for function in inner for node in outline_walk(function))

    @cached_property
    def runs_on(self) -> bool:
        """A loop over data, a while loop or one of the program itself makes a sum."""
        return _runs_on(self._outline, self._every_loop)

    @cached_property
    def feeds(self) -> bool:
        """A method is given something that it may keep."""
        return _feeds(self._outline)

    @cached_property
    def late(self) -> bool:
        """A long loop adds to something, and something is detached outside of a loop."""
        return (
            any(map(_is_long, self._every_loop))
            and any(isinstance(node, ast.AugAssign) or _adds(node) for node in self._inside)
            and _detaches_late(self._outline, self._loops)
        )


@lru_cache(maxsize=1)
def prospects(outline: ast.Module) -> OutlineProspects:
    """Return what a file's outline can answer."""
    return OutlineProspects(outline)


def _inside(loops: list[Loop]) -> list[ast.AST]:
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


def _detaches_late(outline: ast.Module, loops: list[Loop]) -> bool:
    """Whether a graph is cut where no innermost loop is."""
    cuts = [n for n in nodes_of(outline, ast.Attribute) if n.attr in _CUTS and not _is_torchs(n)]
    if not cuts:
        return False
    insides = [outline_walk(loop) for loop in loops]
    innermost = {n for inside in insides if not _has_loop(inside[1:]) for n in inside}
    return any(cut not in innermost for cut in cuts)


def _is_torchs(node: ast.Attribute) -> bool:
    """`torch.utils.data` is a module."""
    match node:
        case ast.Attribute(ast.Attribute(ast.Name("torch"), "utils"), "data"):
            return True
    return False


def _is_long(loop: Loop) -> bool:
    """Whether late_detach.py may take a loop for a long one."""
    if isinstance(loop, ast.While) or _is_data(loop.iter):
        return True
    called = (_called(node) for node in outline_walk(loop.iter) if isinstance(node, ast.Call))
    return any(name == "range" or name in said("said", "progress") for name in called)


def _is_data(iterated: ast.expr) -> bool:
    return DATA.search(ast.unparse(iterated)) is not None


def _has_loop(nodes: list[ast.AST]) -> bool:
    return any(isinstance(node, (ast.For, ast.While)) for node in nodes)


def _feeds(outline: ast.Module) -> bool:
    """Whether something other than a module, or a list or dict made here, takes an argument in."""
    displays = {
        target.id
        for node in nodes_of(outline, ast.Assign)
        if isinstance(node.value, (ast.List, ast.Dict, ast.Tuple))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    passive = displays | _imported(outline)
    return any(
        not (isinstance(taker, ast.Name) and taker.id in passive) for taker in _takers(outline)
    )


def _imported(outline: ast.Module) -> set[str]:
    """Return the names of imported modules that are given nothing else."""
    imports = nodes_of(outline, ast.Import)
    names = {(a.asname or a.name).partition(".")[0] for each in imports for a in each.names}
    bound = (n.id for n in nodes_of(outline, ast.Name) if isinstance(n.ctx, ast.Store))
    given = (argument.arg for argument in nodes_of(outline, ast.arg))
    return names.difference(bound, given)


def _takers(outline: ast.Module) -> Iterator[ast.expr]:
    """Yield what is given something by a method that collects, or under a key."""
    for call in nodes_of(outline, ast.Call):
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        given = (*call.args, *(keyword.value for keyword in call.keywords))
        if call.args and says(method, "collects") and not all(map(_is_plain, given)):
            yield cast("ast.Attribute", call.func).value
    for node in nodes_of(outline, ast.Assign):
        slots = (each for target in node.targets for each in _flat(target))
        if not _is_plain(node.value):
            yield from (slot.value for slot in slots if isinstance(slot, ast.Subscript))


def _is_plain(value: ast.expr) -> bool:
    """Whether a value is written out: a number or a text has no graph."""
    return isinstance(value, ast.Constant)


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _evaluates(outline: ast.Module) -> bool:
    """Whether data is gone over, by an evaluation's name, beside `.eval()`, or by the program."""
    clauses: list[ast.For | ast.comprehension] = nodes_of(outline, ast.For, ast.comprehension)
    if not any(_is_data(each.iter) for each in clauses):
        return False
    functions: list[OutlineFunction] = nodes_of(outline, ast.FunctionDef, ast.AsyncFunctionDef)
    calls = (n.func for n in nodes_of(outline, ast.Call) if isinstance(n.func, ast.Attribute))
    return (
        any(says(function.name, "evaluates") for function in functions)
        or any(called.attr == "eval" for called in calls)
        or any(isinstance(n, (ast.For, ast.comprehension)) for n in outline_at_top(outline))
    )


def _runs_on(outline: ast.Module, loops: list[Loop]) -> bool:
    """Whether a loop that is long by its looks gives a place what is made of what it held."""
    own: set[ast.AST] = set(outline_at_top(outline))
    lasting = [
        loop for loop in loops if loop in own or isinstance(loop, ast.While) or _is_data(loop.iter)
    ]
    declared: list[ast.Global | ast.Nonlocal] = nodes_of(outline, ast.Global, ast.Nonlocal)
    shared = {name for each in declared for name in each.names}
    return any(_sums(node, shared) for node in _inside(lasting))


def _sums(node: ast.AST, shared: set[str]) -> bool:
    """Whether a place may be given a sum, as assignments.py sees one, of more than numbers."""
    match node:
        case ast.AugAssign(value=value):
            return not _is_plain(value)
        case ast.Assign(targets=targets, value=value) if _mixes_by_arithmetic(value):
            return any(_takes_in(each, value, shared) for t in targets for each in _flat(t))
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            return _mixes_by_arithmetic(value) and _takes_in(target, value, shared)
        case ast.NamedExpr(target=target, value=value):
            return _mixes_by_arithmetic(value) and _takes_in(target, value, shared)
        case ast.Call():
            return _called(node) in _WRITERS | words("methods", "in_place_sums")
    return False


def _mixes_by_arithmetic(value: ast.expr) -> bool:
    """Whether a value may be old and new together: not what a model, or `.to(device)`, returns."""
    while isinstance(value, ast.Call) and not (value.args or value.keywords):
        if not isinstance(value.func, ast.Attribute):
            break
        value = value.func.value
    if isinstance(value, ast.Call):
        return _called(value) in MIXING_FUNCTIONS | {"list", "tuple"}
    return True


def _takes_in(target: ast.expr, value: ast.expr, shared: set[str]) -> bool:
    """Whether a name is read in what it is given; of other places, that may be by way of names."""
    if not isinstance(target, ast.Name):
        return True
    read = (node.id for node in outline_walk(value) if isinstance(node, ast.Name))
    return target.id in shared or target.id in read


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
