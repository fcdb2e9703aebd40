"""self.handlers.append((handler, (self, *args))): the object is in its own container.

So is a module with `self.by_name = dict(self.named_modules())`, whose first is the module itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.flow.prospects import own_attribute
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import children, dotted, outline_nodes_of, outline_walk, walk


class SelfInOwnContainer(Rule):
    """`self` stored in a container that `self` holds."""

    code = "LK206"
    summary = "an object is filed in its own container, so only the garbage collector frees it"
    help = "pass self when the entry is used, or store a weakref to it"

    def concerns(self, outline: ast.Module) -> bool:
        """Only a bare `self` that is put into something on self can matter."""
        for node in outline_nodes_of(outline, ast.Call, ast.Assign):
            match node:
                case ast.Call(func=ast.Attribute(value=holder, attr="append" | "add"), args=stored):
                    holders: list[ast.expr] = [holder]
                case ast.Call(
                    func=ast.Attribute(value=ast.Name("self"), attr="modules" | "named_modules")
                ):
                    return True
                case ast.Assign(targets=holders, value=value):
                    holders = [each for each in holders if isinstance(each, ast.Subscript)]
                    stored = [value]
                case _:
                    continue
            if any(own_attribute(each) for each in holders) and any(map(_names_self, stored)):
                return True
        return False

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each append to, and each store into, a container on self."""
        for call in module.calls:
            match call.func:
                case cst.Attribute(value=holder, attr=cst.Name(value="append" | "add")):
                    filed = _on_self(holder) and any(_holds_self(a.value) for a in call.args)
                    if filed and not _is_weak(module, holder) and _is_own(module, holder):
                        yield from self._hit(module, call)
        for assign in module.nodes(cst.Assign):
            for target in assign.targets:
                slot = isinstance(target.target, cst.Subscript) and _on_self(target.target)
                slot = slot and not _is_weak(module, target.target)
                slot = slot and _is_own(module, target.target)
                slot = slot and not shape.is_put_back(module, target.target)
                kept = _on_self(target.target) and _are_own_modules(assign.value)
                if (slot and _holds_self(assign.value)) or kept:
                    yield from self._hit(module, assign)
        for loop in module.nodes(cst.For):
            for node in _files_each(loop) if _gives_own_modules(loop.iter) else ():
                yield from self._hit(module, node)

    def _hit(self, module: Module, node: cst.CSTNode) -> Iterator[Hit]:
        if shape.method_of(module, node) is not None:
            yield self.hit(node, "the object holds this container and the container the object")


def _is_weak(module: Module, holder: cst.BaseExpression) -> bool:
    """Whether the container holds what is in it weakly: `weakref.WeakSet()`."""
    name = _container(holder).removeprefix("self.")
    return any(
        isinstance(each.value, cst.Call)
        and module.qualified(each.value.func).startswith("weakref.")
        and any(dotted(t.target).removeprefix("self.") == name for t in each.targets)
        for each in module.nodes(cst.Assign)
    )


def _is_own(module: Module, holder: cst.BaseExpression) -> bool:
    """Whether the container is the object's, and not its class's, which lasts in any case."""
    member, name = module.member_of(holder), _container(holder).removeprefix("self.")
    if member is None or any(use.name == name for use in member.binds()):
        return True
    body = module.class_of(holder)
    lines = body.body.body if body is not None else ()
    return not any(
        shape.binds(part, name) or (isinstance(part, cst.AnnAssign) and dotted(part.target) == name)
        for line in lines
        if isinstance(line, cst.SimpleStatementLine)
        for part in line.body
    )


def _names_self(value: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "self" for node in outline_walk(value))


def _on_self(holder: cst.BaseExpression) -> bool:
    """Whether a container, or an entry of one, is self's own: what enters another's is a part."""
    return re.fullmatch(r"self\.\w+", _container(holder)) is not None


def _container(holder: cst.BaseExpression) -> str:
    """Spell a container, given it or an entry of it: "self.rows" of `self.rows[k]`."""
    while isinstance(holder, cst.Subscript):
        holder = holder.value
    return dotted(holder)


def _holds_self(value: cst.BaseExpression) -> bool:
    """`self` itself is an element, however deep in tuples, lists, dicts and sums of these."""
    todo: list[cst.CSTNode] = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, cst.Name) and node.value == "self":
            return True
        if isinstance(node, _DISPLAYS):
            todo.extend(children(node))
    return False


def _gives_own_modules(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Call) and dotted(value.func) in _OWN_MODULES


def _are_own_modules(value: cst.BaseExpression) -> bool:
    """All modules below self in a container, with self as the first of them."""
    match value:
        case cst.Call(args=[cst.Arg(value=inner)]) if dotted(value.func) in _CONTAINERS:
            return _gives_own_modules(inner)
        case (
            cst.DictComp(value=cst.Name(value=kept), for_in=each)
            | cst.ListComp(elt=cst.Name(value=kept), for_in=each)
        ):
            given = not each.ifs and each.inner_for_in is None and _gives_own_modules(each.iter)
            return given and _last_name(each.target) == kept
    return False


def _files_each(loop: cst.For) -> Iterator[cst.CSTNode]:
    """Yield what puts each module of a loop, also the first, into a container on self."""
    module = _last_name(loop.target)
    for line in loop.body.body:
        if not isinstance(line, cst.SimpleStatementLine):
            if any(isinstance(node, (cst.Continue, cst.Break)) for node in walk(line)):
                return  # the first may be passed over
            continue
        match line.body[0]:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Subscript() as slot)],
                value=cst.Name(value=kept),
            ) if _on_self(slot) and kept == module:
                yield line.body[0]
            case cst.Expr(
                value=cst.Call(
                    func=cst.Attribute(value=holder, attr=cst.Name(value="append" | "add")),
                    args=[cst.Arg(value=cst.Name(value=kept))],
                ) as call
            ) if _on_self(holder) and kept == module:
                yield call


def _last_name(target: cst.BaseExpression) -> str:
    """`module` of both `module` and `name, module`."""
    if isinstance(target, cst.Tuple) and target.elements:
        target = target.elements[-1].value
    return target.value if isinstance(target, cst.Name) else ""


_OWN_MODULES = ("self.named_modules", "self.modules")
_CONTAINERS = ("dict", "list", "tuple", "set", "OrderedDict", "collections.OrderedDict")
_DISPLAYS = (
    cst.Tuple, cst.List, cst.Set, cst.Dict, cst.Element, cst.DictElement, cst.StarredElement,
    cst.BinaryOperation,
)  # fmt: skip
