"""A data set opens a file in its constructor, and every forked worker shares it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.facts.link import Linked
from leakcheck.static.facts.model import Call
from leakcheck.static.module import Module
from leakcheck.static.queries import datasets
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, walk


class HandleOpenedBeforeFork(Rule):
    """HDF5 and similar files that a data set opens once and keeps."""

    code = "LK504"
    summary = "a data set's constructor opens a file that its forked workers will share"
    help = "open it at the first item, in the worker, and close the one the constructor used"
    proof = "static only: the chunk caches grow in the loader's worker processes"
    words = ("h5py", "tables", "netCDF4")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each file opened by a data set's constructor, or by what that calls."""
        for owner in module.classes:
            if not datasets.is_dataset(module, owner) or _has_no_workers(module.facts):
                continue
            for method in datasets.setup_methods(module, owner):
                for call in _opened(module, method):
                    if _kept(module, method, call) and not _read_at_once(module, owner, call):
                        yield self.hit(call, "workers inherit this open file, with its caches")


def _has_no_workers(linked: Linked) -> bool:
    """Whether the project makes loaders, and each of them reads in its own process."""
    loaders = [call for _, call in linked.calls_of("DataLoader")]
    return bool(loaders) and all(map(_reads_itself, loaders))


def _reads_itself(loader: Call) -> bool:
    spread = any(given.keyword in ("*", "**") for given in loader.arguments)
    workers = loader.argument("num_workers", _WORKERS_POSITION)
    return not spread and (workers is None or workers.text == "0")


_WORKERS_POSITION = 5


def _opened(module: Module, method: cst.FunctionDef) -> Iterator[cst.Call]:
    for node in shape.own_nodes(method):
        if isinstance(node, cst.Call) and module.qualified(node.func) in shape.api("shared-files"):
            yield node


def _kept(module: Module, method: cst.FunctionDef, call: cst.Call) -> bool:
    """The file, or a part of it, ends up on self and is not closed in the same method."""
    above = module.parent(call)
    if not isinstance(above, cst.Assign):
        return False
    for target in above.targets:
        if dotted(target.target).startswith("self."):
            return not _closed(method, dotted(target.target))
    names = {name for t in above.targets for name in shape.target_names(t.target)}
    return any(
        _part_kept(node, name) and not _closed(method, name)
        for name in names
        for node in shape.own_nodes(method)
    )


def _read_at_once(module: Module, owner: cst.ClassDef, call: cst.Call) -> bool:
    """Whether the file is an attribute that only the set-up methods of the project ask."""
    above = module.parent(call)
    target = above.targets[0].target if isinstance(above, cst.Assign) else None
    if not isinstance(target, cst.Attribute):
        return False
    setting_up = {each.name.value for each in datasets.setup_methods(module, owner)}
    member = module.member_of(call)
    uses = member.file.uses_of(target.attr.value, member) if member is not None else ()
    methods = (facts.method_around(use.function) for facts, use in uses)
    return all(method is not None and method.name in setting_up for method in methods)


def _closed(method: cst.FunctionDef, name: str) -> bool:
    return any(
        isinstance(node, cst.Attribute) and dotted(node) == f"{name}.close"
        for node in walk(method.body)
    )


def _part_kept(node: cst.CSTNode, name: str) -> bool:
    """`self.x = f["x"]` or `self.xs.append(f.get("x"))`; `f["x"][:]` is a copy."""
    match node:
        case cst.Assign(value=value) if _is_part(value, name):
            return any(dotted(t.target).startswith("self.") for t in node.targets)
        case cst.Call(
            func=cst.Attribute(value=holder, attr=cst.Name(value="append")),
            args=[cst.Arg(value=value)],
        ) if _is_part(value, name):
            return dotted(holder).startswith("self.")
    return False


def _is_part(value: cst.BaseExpression, name: str) -> bool:
    match value:
        case cst.Name():
            return value.value == name
        case cst.Subscript(value=cst.Name(value=holder)):
            return holder == name
        case cst.Call(func=cst.Attribute(value=cst.Name(value=holder), attr=cst.Name(value="get"))):
            return holder == name
    return False
