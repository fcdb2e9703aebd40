"""module.forward = partial(..., module.forward): the module holds a bound method of itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.facts.model import MODULE
from leakcheck.static.facts.runs import runs_once
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, outline_nodes_of, outline_walk, walk


class WrappedForwardCycle(Rule):
    """Methods replaced by partials, caches, lambdas and closures that hold the bound method."""

    code = "LK205"
    summary = "a module's method is replaced by a wrapper that holds the module"
    help = "wrap type(module).forward and pass a weakref to the module"
    words = (".forward", "partial", "lambda", "lru_cache", "functools.cache")
    needs_torch = True

    def concerns(self, outline: ast.Module) -> bool:
        """Only a call or a lambda put where a name in it comes from, or a closure, can matter."""
        defined = {node.name for node in outline_nodes_of(outline, ast.FunctionDef)}
        for node in outline_nodes_of(outline, ast.Assign):
            match node:
                case ast.Assign(targets=[ast.Attribute(attr=attr)], value=ast.Name(id=name)):
                    if name in defined and attr in shape.api("module-methods"):
                        return True
                case ast.Assign(targets=targets, value=(ast.Call() | ast.Lambda()) as value):
                    written = {n.attr for n in targets if isinstance(n, ast.Attribute)}
                    read = (n for n in outline_walk(value) if isinstance(n, ast.Attribute))
                    if written and any(each.attr in written for each in read):
                        return True
        return False

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each assignment to an attribute of a name."""
        for assign in module.nodes(cst.Assign):
            for target in assign.targets:
                if isinstance(target.target, cst.Attribute) and _wraps(
                    module, target.target, assign.value
                ):
                    brief = _is_replaced(module, assign, target.target) or _is_alone(module, assign)
                    yield self.hit(
                        assign,
                        "the module keeps a wrapper that keeps the module: a cycle",
                        confidence="low" if brief else "high",
                    )


def _is_alone(module: Module, wrapped: cst.Assign) -> bool:
    """Whether a program comes here once: the cycle of one module is little."""
    function = module.function_of(wrapped)
    index = module.index_of(function) if function is not None else MODULE
    return index is not None and not module.loop_of(wrapped) and runs_once(module.facts, index)


def _is_replaced(module: Module, wrapped: cst.Assign, target: cst.Attribute) -> bool:
    """Whether something takes the wrapper's place when its work is done, a bound method or so.

    By another method of the same class, as behind a `with`, or further down in the function.
    """
    function, owner = module.function_of(wrapped), module.class_of(wrapped)
    line = module.location(wrapped).line
    for assign in module.nodes(cst.Assign):
        home = module.function_of(assign)
        later = home is function and module.location(assign).line > line
        beside = owner is not None and home is not function and module.class_of(assign) is owner
        slots = [each.target for each in assign.targets if isinstance(each.target, cst.Attribute)]
        same = any(slot.attr.value == target.attr.value for slot in slots)
        named = isinstance(assign.value, (cst.Attribute, cst.Name))
        if same and named and (later or beside) and not _is_function(module, assign.value):
            return True
    return False


def _is_function(module: Module, value: cst.BaseExpression) -> bool:
    return any(each.name.value == dotted(value) for each in module.nodes(cst.FunctionDef))


def _wraps(module: Module, target: cst.Attribute, value: cst.BaseExpression) -> bool:
    method = dotted(target)
    if method.count(".") != 1 or not _is_method(module, target):
        return False
    match value:
        case cst.Call(func=cst.Call(func=wrapper)) | cst.Call(func=wrapper):
            wraps = module.qualified(wrapper) in ("functools.partial", *shape.api("caches"))
            return wraps and any(shape.mentions(arg.value, method) for arg in value.args)
        case cst.Lambda():
            return shape.mentions(value.body, method)
        case cst.Name(value=name):
            return _closes_over(module, target, name)
    return False


def _closes_over(module: Module, target: cst.Attribute, name: str) -> bool:
    """Whether a nested function holds the object, or its bound method, and stays in its place."""
    function = module.function_of(target)
    owner, method = dotted(target.value), dotted(target)
    if function is None or not _is_instance(function, owner):
        return False
    nodes = list(shape.own_nodes(function))
    bound = {
        name
        for node in nodes
        if isinstance(node, cst.Assign) and dotted(node.value) == method
        for each in node.targets
        for name in shape.target_names(each.target)
    }
    put_back = any(
        isinstance(node, cst.Assign)
        and dotted(node.value) in bound
        and any(dotted(each.target) == method for each in node.targets)
        for node in walk(function.body)  # also by the wrapper itself, when it is called
    )
    deleted = any(isinstance(n, cst.Del) and shape.mentions(n.target, method) for n in nodes)
    wrapper = next(
        (n for n in nodes if isinstance(n, cst.FunctionDef) and n.name.value == name), None
    )
    if wrapper is None or shape.is_method(wrapper) or put_back or deleted:
        return False  # with a parameter `self` it becomes a method of a class
    held = {*bound, owner} - {*shape.parameter_names(wrapper)}
    return any(isinstance(node, cst.Name) and node.value in held for node in walk(wrapper.body))


def _is_instance(function: cst.FunctionDef, name: str) -> bool:
    """A local that stands for an object: not self, whose closures another rule tells, no class."""
    nodes = list(shape.own_nodes(function))
    turns = (n.target for n in nodes if isinstance(n, cst.For))
    local = {*shape.parameter_names(function), *(n for t in turns for n in shape.target_names(t))}
    bound = name in local or any(shape.binds(node, name) for node in nodes)
    is_class = any(word in name for word in ("cls", "class")) or not name.islower()
    return bound and name != "self" and not is_class


def _is_method(module: Module, target: cst.Attribute) -> bool:
    """A method of every module, or of the class around; other attributes may hold plain data."""
    owner = module.class_of(target)
    if dotted(target.value) == "self" and owner is not None:
        return target.attr.value in module.methods(owner)
    return target.attr.value in shape.api("module-methods")
