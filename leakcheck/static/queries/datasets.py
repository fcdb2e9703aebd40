"""Data sets: which classes are one, and what their constructors keep for the workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    """Tell whether a class has a Dataset base, or no base and both dunders of one.

    What is asked for keys as well, or given entries, is a mapping, which no loader reads.
    """
    if shape.has_base(module, owner, "dataset-classes"):
        return True
    methods = module.methods(owner)
    mapping = not _OF_MAPPINGS.isdisjoint(methods)
    return "__getitem__" in methods and "__len__" in methods and not owner.bases and not mapping


_OF_MAPPINGS = frozenset(["__contains__", "__setitem__", "keys"])


def setup_methods(module: Module, owner: cst.ClassDef) -> list[cst.FunctionDef]:
    """List the constructor and what it calls on self, in turn; a subclass's constructor counts."""
    return _reached(module, owner, ["__init__", *_called_by_subclasses(module, owner)])


def _reached(module: Module, owner: cst.ClassDef, first: Iterable[str]) -> list[cst.FunctionDef]:
    """List the methods of these names and what they call on self, in turn."""
    methods, todo = module.methods(owner), list(first)
    found: dict[str, cst.FunctionDef] = {}
    while todo:
        name = todo.pop()
        if name in methods and name not in found:
            found[name] = methods[name]
            todo += _called_on_self(methods[name])
    return list(found.values())


def _called_by_subclasses(module: Module, owner: cst.ClassDef) -> Iterator[str]:
    for other in module.classes:
        if any(dotted(base.value) == owner.name.value for base in other.bases):
            constructor = module.methods(other).get("__init__")
            yield from _called_on_self(constructor) if constructor is not None else ()


def _called_on_self(method: cst.FunctionDef) -> list[str]:
    return [
        shape.last_name(node)
        for node in walk(method.body)
        if isinstance(node, cst.Call) and dotted(node.func).startswith("self.")
    ]


def kept_by_constructor(module: Module, owner: cst.ClassDef) -> Iterator[Kept]:
    """Yield what the set-up methods of a data set store on self."""
    for method in setup_methods(module, owner):
        for node in shape.own_nodes(method):
            match node:
                case cst.Assign():
                    for target in node.targets:
                        if own := _own(target.target):
                            yield Kept(own, node.value, node, method)
                case cst.Call(
                    func=cst.Attribute(value=holder, attr=cst.Name(value="append" | "extend")),
                    args=[cst.Arg(value=value)],
                ) if own := _own(holder):
                    yield Kept(own, value, node, method)


def _own(target: cst.BaseExpression) -> str:
    spelled = dotted(target)
    return spelled[5:] if spelled.startswith("self.") and spelled.count(".") == 1 else ""


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


def read_by_workers(module: Module, owner: cst.ClassDef, attribute: str) -> bool:
    """Tell whether getting an item subscripts `self.<attribute>`, by a method of its own or not."""
    for method in _run_by_workers(module, owner):
        for node in walk(method.body):
            if isinstance(node, cst.Subscript) and dotted(node.value) == f"self.{attribute}":
                return True
            if isinstance(node, cst.Attribute) and dotted(node) == f"self.{attribute}.iloc":
                return True
    return False


_GETTERS = ("__getitem__", "__getitems__", "__iter__")


def _run_by_workers(module: Module, owner: cst.ClassDef) -> list[cst.FunctionDef]:
    """List what gets an item; where a base does, any method may be asked but those that set up."""
    if getting := _reached(module, owner, _GETTERS):
        return getting
    set_up = {id(method) for method in setup_methods(module, owner)}
    return [each for each in module.methods(owner).values() if id(each) not in set_up]
