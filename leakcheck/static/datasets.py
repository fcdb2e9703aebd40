"""Data sets: which classes are one, and what their constructors keep for the workers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.syntax import dotted, walk


@dataclass(frozen=True, slots=True)
class Kept:
    """`self.<attribute> = <value>` in a method that runs before the workers are forked."""

    attribute: str
    value: cst.BaseExpression
    node: cst.CSTNode
    method: cst.FunctionDef


def is_dataset(module: Module, owner: cst.ClassDef) -> bool:
    """Tell whether a class has a Dataset base, or both `__len__` and `__getitem__`."""
    if shape.has_base(module, owner, "dataset-classes"):
        return True
    methods = module.methods(owner)
    return "__getitem__" in methods and "__len__" in methods


def setup_methods(module: Module, owner: cst.ClassDef) -> list[cst.FunctionDef]:
    """List the constructor and the class's own methods that it calls, directly or in turn."""
    methods = module.methods(owner)
    todo = ["__init__"]
    found: dict[str, cst.FunctionDef] = {}
    while todo:
        name = todo.pop()
        method = methods.get(name)
        if method is None or name in found:
            continue
        found[name] = method
        todo += [
            node.func.attr.value
            for node in walk(method.body)
            if isinstance(node, cst.Call)
            and isinstance(node.func, cst.Attribute)
            and dotted(node.func.value) == "self"
        ]
    return list(found.values()) if found else _called_by_subclasses(module, owner)


def _called_by_subclasses(module: Module, owner: cst.ClassDef) -> list[cst.FunctionDef]:
    """A base class without a constructor: the methods that its subclasses' constructors call."""
    called: set[str] = set()
    for other in module.classes:
        if any(dotted(base.value) == owner.name.value for base in other.bases):
            called |= {
                shape.last_name(node)
                for method in setup_methods(module, other)
                for node in walk(method.body)
                if isinstance(node, cst.Call) and dotted(node.func).startswith("self.")
            }
    methods = module.methods(owner)
    todo, found = sorted(called & set(methods)), set(called & set(methods))
    while todo:
        for node in walk(methods[todo.pop()].body):
            if isinstance(node, cst.Call) and dotted(node.func).startswith("self."):
                name = shape.last_name(node)
                if name in methods and name not in found:
                    found.add(name)
                    todo.append(name)
    return [methods[name] for name in methods if name in found]


def kept_by_constructor(module: Module, owner: cst.ClassDef) -> Iterator[Kept]:
    """Yield what the set-up methods of a data set store on self."""
    for method in setup_methods(module, owner):
        for node in shape.own_nodes(method):
            if not isinstance(node, cst.Assign):
                continue
            for target in node.targets:
                spelled = dotted(target.target)
                if spelled.startswith("self.") and spelled.count(".") == 1:
                    yield Kept(spelled[5:], node.value, node, method)


def behind(kept: Kept) -> list[cst.CSTNode]:
    """List the stored expression and those that were assigned to the local names in it."""
    found: list[cst.CSTNode] = [kept.value]
    names = {n.value for n in walk(kept.value) if isinstance(n, cst.Name)}
    for node in shape.own_nodes(kept.method):
        match node:
            case cst.Assign() if any(
                name in names for t in node.targets for name in shape.target_names(t.target)
            ):
                found.append(node.value)
            case cst.Call(
                func=cst.Attribute(value=cst.Name(value=holder), attr=cst.Name("append"))
            ):
                if holder in names:
                    found.append(node)
    return found


def indexed(module: Module, owner: cst.ClassDef, attribute: str) -> bool:
    """Tell whether a method other than the constructor subscripts `self.<attribute>`."""
    for name, method in module.methods(owner).items():
        if name == "__init__":
            continue
        for node in walk(method.body):
            if isinstance(node, cst.Subscript) and dotted(node.value) == f"self.{attribute}":
                return True
            if isinstance(node, cst.Attribute) and dotted(node) == f"self.{attribute}.iloc":
                return True
    return False
