"""self.keys = torch.cat([self.keys, new]): longer at every call, never cut."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static import growth, shape
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, walk


class UntrimmedCatCache(Rule):
    """Tensors on `self` that are joined to and neither sliced nor reset."""

    code = "LK304"
    summary = "a cached tensor is joined to at every step and never cut or reset"
    help = "keep a window with a slice, or reset it when the sequence ends"
    words = ("torch",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each assignment of a cat to an attribute or slot of self."""
        for assign in module.nodes(cst.Assign):
            if len(assign.targets) != 1 or not _is_cat(module, assign.value):
                continue
            target = assign.targets[0].target
            function = module.function_of(assign)
            if function is None or function.name.value == "__init__":
                continue
            word = _word(target)
            joins = word and _joins_itself(module, function, target, assign.value)
            if joins and not _reset(module, word):
                yield self.hit(assign, f"`{word}` gets longer at every call")


def _is_cat(module: Module, value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Call) and module.qualified(value.func) in shape.api("cat")


def _word(target: cst.BaseExpression) -> str:
    """The attribute of self that is written, as a whole or in a slot."""
    while isinstance(target, cst.Subscript):
        target = target.value
    spelled = dotted(target)
    return spelled[5:] if spelled.startswith("self.") and spelled.count(".") == 1 else ""


def _joins_itself(
    module: Module,
    function: cst.FunctionDef,
    target: cst.BaseExpression,
    value: cst.BaseExpression,
) -> bool:
    """What is joined holds the target itself, or a local name that was read from it."""
    assert isinstance(value, cst.Call)
    if not value.args:
        return False
    old = module.code(target)
    sources = {old} | {
        name
        for node in shape.own_nodes(function)
        if isinstance(node, cst.Assign) and module.code(node.value) == old
        for t in node.targets
        for name in shape.target_names(t.target)
    }
    parts = value.args[0].value
    if not isinstance(parts, (cst.List, cst.Tuple)):
        return False
    return any(module.code(element.value) in sources for element in parts.elements)


def _reset(module: Module, word: str) -> bool:
    """Some other place of the file sets it anew, cuts it or deletes it; registered state counts."""
    if growth.named_in_text(module, word):
        return True
    for use in growth.uses(module, word):
        if use.role == "drop":
            return True
        if use.role not in ("bind", "slot") or not isinstance(use.act, cst.Assign):
            continue
        function = module.function_of(use.node)
        made_anew = not shape.mentions(use.act.value, f"self.{word}")
        if _is_cat(module, use.act.value):
            continue
        if any(isinstance(n, cst.Slice) for n in walk(use.act.value)):
            return True
        later = function is not None and function.name.value != "__init__"
        if made_anew and later and not _first_fill(module, use.act):
            return True
    return False


def _first_fill(module: Module, assign: cst.Assign) -> bool:
    """`if self.x is None: self.x = new`, the start of what is joined to afterwards."""
    around = module.enclosing(assign, cst.If)
    return around is not None and any(
        isinstance(n, cst.Name) and n.value == "None" for n in walk(around.test)
    )
