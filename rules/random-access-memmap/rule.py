"""One numpy.memmap for the whole run: pages that were read stay resident."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.queries import datasets
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, walk


class RandomAccessMemmap(Rule):
    """Memory maps bound for the whole run that functions read in slices."""

    code = "LK505"
    summary = "a memory map lives for the whole run, and each page that is read stays resident"
    help = "map the file anew for each batch, so that its pages can go"
    default = False
    severity = "info"
    proof = "static only: resident pages of a file, which the kernel takes back when it needs them"
    words = ("memmap",)
    needs_torch = True

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each memory map that outlives the function that reads it."""
        for call in module.calls:
            if module.qualified(call.func) not in shape.api("memory-maps"):
                continue
            if _written(call):
                continue
            above = module.parent(call)
            if isinstance(above, cst.Assign) and _read_elsewhere(module, above):
                yield self.hit(call, "the pages that are read stay resident for the whole run")


def _written(call: cst.Call) -> bool:
    mode = shape.keyword_value(call, "mode", 2)
    return isinstance(mode, cst.SimpleString) and "w" in mode.value


def _read_elsewhere(module: Module, assign: cst.Assign) -> bool:
    """Bound at module level or on a data set, and sliced inside a function."""
    function, owner = module.function_of(assign), module.class_of(assign)
    for target in assign.targets:
        spelled = dotted(target.target)
        if function is None and owner is None:
            readers = module.functions
        elif (
            owner is not None and spelled.startswith("self.") and datasets.is_dataset(module, owner)
        ):
            readers = [f for f in module.methods(owner).values() if f is not function]
        elif _read_in_loop(module, assign, spelled):
            return True
        else:
            continue
        if any(_reads(module, reader, spelled) for reader in readers):
            return True
    return False


def _reads(module: Module, reader: cst.CSTNode, name: str) -> bool:
    """Sliced here, itself or by another name: `data = train if ... else val; data[i:j]`."""
    names = {name}
    for node in walk(reader):
        match node:
            case cst.Assign(value=cst.Name() | cst.IfExp() as value):
                if shape.mentions(value, name):
                    names |= {n for t in node.targets for n in shape.target_names(t.target)}
        if isinstance(node, cst.Subscript) and dotted(node.value) in names:
            return True
    return False


def _read_in_loop(module: Module, assign: cst.Assign, name: str) -> bool:
    """A local map that a loop after it reads."""
    function = module.function_of(assign)
    if function is None or not name or "." in name or module.loop_of(assign) is not None:
        return False
    return any(
        isinstance(node, (cst.For, cst.While)) and _reads(module, node.body, name)
        for node in shape.own_nodes(function)
    )
