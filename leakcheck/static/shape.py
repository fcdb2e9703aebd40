"""What kind of thing is this? Questions about classes, loops and names that several rules ask.

Everything is answered from the syntax of one module; "no" when it can't be told.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import cast

import libcst as cst

from leakcheck.static.module import LoopNode, Module
from leakcheck.static.names import table
from leakcheck.static.syntax import (
    PLAIN_TYPES,
    argument,
    bindings,
    children,
    dotted,
    outline_nodes_of,
    outline_walk,
    parameters,
    walk,
)
from leakcheck.static.torch_api import words

_LOADER = re.compile(r"(^|_)dls?\d*(_|$)|loader", re.IGNORECASE)
_STEPS_TO_FOLLOW = 6  # names through which the origin of a value is followed


@cache
def api(group: str) -> frozenset[str]:
    """Return one of the lists of names in resource_api.toml."""
    groups = cast("dict[str, dict[str, list[str]]]", table("resource_api"))["names"]
    return frozenset(groups[group])


@cache
def registrations() -> dict[str, tuple[str, ...]]:
    """Return what registers something that lasts, with what takes it back."""
    listed = cast("dict[str, dict[str, list[str]]]", table("resource_api"))["registrations"]
    return {name: tuple(undone_by) for name, undone_by in listed.items()}


def own_nodes(function: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the nodes of a function's body in source order, without those of nested functions."""
    if isinstance(function, cst.Module):
        stack: list[cst.CSTNode] = list(reversed(function.body))
    else:
        stack = [function]
        if isinstance(function, (cst.FunctionDef, cst.Lambda)):
            stack = [function.body]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
            stack += reversed(children(node))


def last_statement(block: cst.CSTNode | None) -> cst.BaseSmallStatement | None:
    """Return the statement that a block ends with, None if that is an `if`, a loop or the like."""
    line = block.body[-1] if isinstance(block, cst.IndentedBlock) and block.body else None
    return line.body[-1] if isinstance(line, cst.SimpleStatementLine) else None


def last_name(node: cst.CSTNode) -> str:
    """Return the last word of a name, attribute or called name: "append" for `self.x.append(1)`."""
    match node:
        case cst.Call():
            return last_name(node.func)
        case cst.Attribute():
            return node.attr.value
        case cst.Name():
            return node.value
    return ""


def mentions(node: cst.CSTNode, name: str) -> bool:
    """Tell whether a dotted name, or something below it, is used anywhere in the node."""
    head, _, _ = name.partition(".")
    for inner in walk(node):
        if isinstance(inner, cst.Attribute) and dotted(inner) == name:
            return True
        if isinstance(inner, cst.Name) and head == name and inner.value == name:
            return True
    return False


def root(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return the name, or `self.x`, that an expression's value is reached through."""
    while True:
        match node:
            case cst.Attribute(value=cst.Name(value="self")) | cst.Name():
                return node
            case cst.Attribute() | cst.Subscript():
                node = node.value
            case cst.Call(func=cst.Name()) if node.args:
                node = node.args[0].value  # enumerate(x), list(x), zip(x, y)
            case cst.Call():
                node = node.func
            case _:
                return node


def origin(module: Module, node: cst.BaseExpression, function: cst.CSTNode | None) -> str:
    """Follow local names back to where a value comes from: a parameter, "self.x", or "".

    Loop variables lead to what is looped over, assigned names to what was assigned.
    """
    for _ in range(_STEPS_TO_FOLLOW):
        node = root(node)
        if isinstance(node, cst.Attribute):
            return dotted(node)
        if not isinstance(node, cst.Name) or not isinstance(function, cst.FunctionDef):
            return ""
        source = _binding(function, node.value)
        if source is None:
            return node.value if node.value in parameter_names(function) else ""
        if mentions(source, node.value):  # x = f(x): the parameter, seen through
            return node.value if node.value in parameter_names(function) else ""
        node = source
    return ""


def _binding(function: cst.FunctionDef, name: str) -> cst.BaseExpression | None:
    for node in own_nodes(function):
        match node:
            case cst.For() | cst.CompFor() if name in target_names(node.target):
                return node.iter
            case cst.Assign() if any(name in target_names(t.target) for t in node.targets):
                return node.value
    return None


def target_names(target: cst.BaseExpression) -> list[str]:
    """List the plain names that an assignment target binds."""
    match target:
        case cst.Name():
            return [target.value]
        case cst.Tuple() | cst.List():
            return [name for element in target.elements for name in target_names(element.value)]
        case cst.StarredElement():
            return target_names(target.value)
    return []


def binds(node: cst.CSTNode, name: str) -> bool:
    """Tell whether a node is an assignment that binds a plain name."""
    return isinstance(node, cst.Assign) and any(
        name in target_names(target.target) for target in node.targets
    )


def given(node: cst.CSTNode, name: str) -> cst.BaseExpression | None:
    """Return what an assignment binds a plain name to; `{}` for b in `a, b = [], {}`."""
    pairs = bindings(node)
    return next((value for target, value in pairs if name in target_names(target)), None)


def parameter_names(function: cst.FunctionDef | cst.Lambda) -> list[str]:
    """List the names of a function's parameters, without self and cls."""
    names = [param.name.value for param in parameters(function)]
    return [name for name in names if name not in ("self", "cls")]


def is_method(function: cst.FunctionDef | None) -> bool:
    """Tell whether a function's first parameter is `self`."""
    listed = parameters(function) if function is not None else []
    return bool(listed) and listed[0].name.value == "self"


def method_of(module: Module, node: cst.CSTNode) -> cst.FunctionDef | None:
    """Return the method around a node, through functions nested in it."""
    for above in module.ancestors(node):
        if isinstance(above, cst.FunctionDef) and is_method(above):
            return above
        if isinstance(above, cst.ClassDef):
            return None
    return None


def is_put_back(module: Module, slot: cst.BaseExpression) -> bool:
    """Tell whether a block begins with a store and puts something else there as it ends."""
    function, owner = method_of(module, slot), module.class_of(slot)
    if function is None or owner is None or function.name.value != "__enter__":
        return False
    ending = module.methods(owner).get("__exit__")
    return ending is not None and any(
        isinstance(node, cst.Assign) and any(t.target.deep_equals(slot) for t in node.targets)
        for node in walk(ending.body)
    )


def has_base(module: Module, node: cst.ClassDef | None, group: str) -> bool:
    """Tell whether a class has a base of an api group, or one that is named like it."""
    if node is None:
        return False
    known = api(group)
    tails = {name.rpartition(".")[2] for name in known}
    return any(
        base in known or base.rpartition(".")[2].endswith(tuple(tails))
        for base in module.bases(node)
    )


def holds_tensors(module: Module, node: cst.ClassDef | None) -> bool:
    """Tell whether a class is a module, or stores what torch makes, on `self`."""
    if node is None:
        return False
    if has_base(module, node, "module-classes"):
        return not _is_light(module, node)
    return any(
        isinstance(inner, cst.Assign) and _stores_tensor(module, inner) for inner in walk(node.body)
    )


def _is_light(module: Module, node: cst.ClassDef) -> bool:
    """Whether all that a module of its own sets on `self` are numbers, functions and light parts.

    An activation that is made of others: what it is held by is what weighs.
    """
    inherits = any(module.qualified(base.value) != "torch.nn.Module" for base in node.bases)
    if inherits or any(isinstance(n, cst.Call) and _registers(n) for n in walk(node.body)):
        return False
    plain = _plain_parameters(node)
    stored = [
        n.value
        for n in walk(node.body)
        if isinstance(n, cst.Assign | cst.AnnAssign)
        if any(dotted(target).startswith("self.") for target in _targets(n))
    ]
    return bool(stored) and all(_weighs_nothing(module, value, plain) for value in stored)


def _targets(node: cst.Assign | cst.AnnAssign) -> list[cst.BaseExpression]:
    if isinstance(node, cst.AnnAssign):
        return [node.target]
    return [part for each in node.targets for part in _parts(each.target)]


def _registers(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in (
        "register_parameter",
        "register_buffer",
        "add_module",
    )


def _plain_parameters(node: cst.ClassDef) -> set[str]:
    """Name the parameters of methods that are said to be numbers, flags or text."""
    return {
        each.name.value
        for each in walk(node.body)
        if isinstance(each, cst.Param) and each.annotation is not None
        if dotted(each.annotation.annotation) in PLAIN_TYPES
    }


def _weighs_nothing(module: Module, value: cst.BaseExpression | None, plain: set[str]) -> bool:
    match value:
        case cst.Name(value=name):
            return name in plain or name in ("None", "True", "False")
        case cst.BaseNumber() | cst.SimpleString() | cst.Lambda():
            return True
        case cst.Call():
            made = module.qualified(value.func)
            head, _, kind = made.rpartition(".")
            return head == "torch.nn" and kind in words("modules", "without_parameters")
    return False


def _stores_tensor(module: Module, assign: cst.Assign) -> bool:
    stored = [dotted(each) for t in assign.targets for each in _parts(t.target)]
    if not any(name.startswith("self.") for name in stored):
        return False
    if isinstance(assign.value, cst.Name):
        return assign.value.value in api("model-names")
    if not isinstance(assign.value, cst.Call):
        return False
    made = module.qualified(assign.value.func)
    light = made.startswith(tuple(api("torch-without-tensors")))
    return made.startswith(("torch.", "torchvision.")) and not light


def _parts(target: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Return what a target binds: both of `self.q, self.r = torch.qr(a)`."""
    if isinstance(target, cst.Tuple):
        return [element.value for element in target.elements]
    return [target]


def trains(node: cst.CSTNode) -> bool:
    """Tell whether a piece of code runs a backward pass, or takes optimizer steps, itself."""
    return any(map(_takes_a_step, walk(node)))


def _takes_a_step(node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    name = node.func.attr.value
    if name == "step":
        return "optim" in last_name(node.func.value)
    return name in _STEPS


_STEPS = frozenset({"step", "backward", "manual_backward", "training_step"})


def may_step_in_loop(outline: ast.Module) -> bool:
    """Whether `step_loop` can find a loop in a file, from its cheap outline."""
    loops: list[ast.For | ast.AsyncFor | ast.While]
    loops = outline_nodes_of(outline, ast.For, ast.AsyncFor, ast.While)
    called = (n.func for loop in loops for n in outline_walk(loop) if isinstance(n, ast.Call))
    return any(isinstance(each, ast.Attribute) and each.attr in _STEPS for each in called)


def training_loop(module: Module, node: cst.CSTNode) -> LoopNode | None:
    """Return the innermost loop around the node that trains in its body."""
    loop = module.loop_of(node)
    while loop is not None and not trains(loop.body):
        loop = module.loop_of(loop)
    return loop


def step_loop(module: Module, node: cst.CSTNode) -> LoopNode | None:
    """Return the loop around the node that takes the steps itself: no loop or function in it."""
    loop = training_loop(module, node)
    if loop is None or not any(map(_takes_a_step, own_nodes(loop.body))):
        return None
    inner = (each for each in own_nodes(loop.body) if isinstance(each, (cst.For, cst.While)))
    return None if any(trains(each.body) for each in inner) else loop


def loader_like(module: Module, node: cst.BaseExpression, function: cst.CSTNode | None) -> bool:
    """Tell whether an expression is a DataLoader, or plainly one by its name."""
    match node:
        case cst.Call(func=cst.Name(value="iter" | "enumerate" | "tqdm" | "zip"), args=[_, *_]):
            return any(loader_like(module, arg.value, function) for arg in node.args)
        case cst.Call():
            called = module.qualified(node.func)
            if called in api("loaders") or last_name(node) in ("DataLoader", "StatefulDataLoader"):
                return True
            if last_name(node) == "prepare":
                return any(loader_like(module, arg.value, function) for arg in node.args)
    if named_like_loader(last_name(node)):
        return True
    if isinstance(node, cst.Attribute):
        return _is_set_to_loader(module, dotted(node))
    bound = _binding(function, node.value) if _is_local(node, function) else None  # type: ignore
    if bound is None or bound is node:
        return False
    return _is_loader_call(module, bound) or named_like_loader(last_name(_wrapped(bound)))


def _wrapped(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return what is looped over: `loader` of `tqdm(loader, desc="batches")`."""
    match node:
        case cst.Call(func=func, args=[cst.Arg(value=inner), *_]):
            return inner if last_name(func) in ("tqdm", "enumerate", "iter") else node
    return node


def _is_set_to_loader(module: Module, spelled: str) -> bool:
    """`handlers.io = loader_factory(config)`: all the module puts there is made by such calls."""
    values = [
        assign.value
        for assign in module.nodes(cst.Assign)
        for target in assign.targets
        if spelled and dotted(target.target) == spelled
    ]
    made = (isinstance(v, cst.Call) and _LOADER.search(last_name(v)) for v in values)
    return bool(values) and all(
        is_made or _is_loader_call(module, v) for v, is_made in zip(values, made, strict=True)
    )


def named_like_loader(name: str) -> bool:
    """Tell whether a name speaks of a data loader: "train_dl", "loader"."""
    return _LOADER.search(name) is not None


def _is_local(node: cst.BaseExpression, function: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.Name) and isinstance(function, cst.FunctionDef)


def _is_loader_call(module: Module, node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and (
        module.qualified(node.func) in api("loaders") or last_name(node) == "DataLoader"
    )


def gradients_off(module: Module, node: cst.CSTNode) -> bool:
    """Tell whether a node stands under no_grad or inference_mode, as a block or a decorator."""
    off = api("gradients-off")
    for above in module.ancestors(node):
        if isinstance(above, cst.With):
            items = [item.item for item in above.items]
        elif isinstance(above, cst.FunctionDef):
            items = [decorator.decorator for decorator in above.decorators]
        else:
            continue
        called = [item.func if isinstance(item, cst.Call) else item for item in items]
        if any(module.qualified(name) in off for name in called):
            return True
    return False


def keyword_value(
    call: cst.Call, keyword: str, position: int | None = None
) -> cst.BaseExpression | None:
    """Return the value of an argument, None when it is not given."""
    found = argument(call, keyword, position)
    return found.value if found is not None else None
