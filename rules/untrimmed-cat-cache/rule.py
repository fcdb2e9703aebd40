"""self.keys = torch.cat([self.keys, new]): longer at every call, never cut."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.facts.runs import is_made_per_call
from leakcheck.static.flow.prospects import own_attribute
from leakcheck.static.module import Module
from leakcheck.static.queries import growth, lifetime
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, outline_nodes_of, outline_walk, walk


class UntrimmedCatCache(Rule):
    """Tensors on `self` that are joined to and neither sliced nor reset."""

    code = "LK304"
    summary = "a cached tensor is joined to at every step and never cut or reset"
    help = "keep a window with a slice, or reset it when the sequence ends"
    default = False  # of 15 told in packages that nobody had read, none was a leak
    words = ("cat(", "concat", "stack(")
    needs_torch = True

    def concerns(self, outline: ast.Module) -> bool:
        """Only an attribute of self that is set outside of __init__, and joined, can matter."""
        read, written = set[str](), set[str]()
        first = set(_set_first(outline))
        parts = [part for call in outline_nodes_of(outline, ast.Call) for part in _parts(call)]
        names = {part.id for part in parts if isinstance(part, ast.Name)}
        for node in outline_nodes_of(outline, ast.Assign) if parts else ():
            match node:
                case ast.Assign(targets=[target], value=value):
                    if any(isinstance(n, ast.Name) and n.id in names for n in outline_walk(target)):
                        read.add(own_attribute(value))
                    if id(node) not in first:
                        written.add(own_attribute(target))
        return bool((read | set(map(own_attribute, parts))) & written - {""})

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each assignment to an attribute or slot of self."""
        for assign in module.nodes(cst.Assign):
            function = module.function_of(assign)
            if len(assign.targets) != 1 or function is None or _is_store(module, assign):
                continue
            word = _word(assign.targets[0].target)
            if not word or function.name.value == "__init__":
                continue
            joined = _joined_names(module, function, word, assign)
            if not _holds_join(module, assign.value, word, joined) or _reset(module, word, joined):
                continue
            if not _merges(module, assign.value, word) and not _belongs_to_call(module, assign):
                yield self.hit(assign, f"`{word}` gets longer at every call")


def _merges(module: Module, value: cst.BaseExpression, word: str) -> bool:
    """`torch.cat([self.x, other.x])`: two objects become one, as by `+`."""
    if not isinstance(value, cst.Call) or module.qualified(value.func) not in shape.api("cat"):
        return False
    parts = value.args[0].value if value.args else None
    if not isinstance(parts, (cst.List, cst.Tuple)):
        return False
    named = [dotted(element.value).rpartition(".") for element in parts.elements]
    return len(named) > 1 and all(holder and last == word for holder, _, last in named)


def _belongs_to_call(module: Module, node: cst.CSTNode) -> bool:
    """Whether the object is made anew for each sequence; a part of a model is not."""
    owner = module.class_of(node)
    found = [m for m in module.facts.classes if owner and m.facts.name == owner.name.value]
    return any(not m.file.is_module(m) and is_made_per_call(m) for m in found)


def _parts(node: ast.Call) -> list[ast.expr]:
    """What a call that may be torch.cat joins."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr=name) | ast.Name(id=name),
            args=[ast.List(elts=parts) | ast.Tuple(elts=parts), *_],
        ) if "cat" in name or "stack" in name:
            return parts
    return []


def _set_first(outline: ast.Module) -> Iterator[int]:
    for function in outline_nodes_of(outline, ast.FunctionDef):
        if function.name == "__init__":
            yield from map(id, outline_walk(function))


def _is_store(module: Module, node: cst.CSTNode) -> bool:
    """A class that is itself a cache or a state, made anew for each sequence."""
    owner = module.class_of(node)
    return owner is not None and owner.name.value.endswith(("Cache", "State", "Buffer", "Params"))


def _word(target: cst.BaseExpression) -> str:
    """The attribute of self that is written, as a whole or in a slot."""
    while isinstance(target, cst.Subscript):
        target = target.value
    spelled = dotted(target)
    return spelled[5:] if spelled.startswith("self.") and spelled.count(".") == 1 else ""


def _old_names(function: cst.FunctionDef, word: str) -> set[str]:
    """The local names that hold what the cache held: `old, _ = self.cache[key]`."""
    return {
        name
        for node in shape.own_nodes(function)
        if isinstance(node, cst.Assign) and _reads(node.value, word)
        for target in node.targets
        for name in shape.target_names(target.target)
    }


def _reads(value: cst.BaseExpression, word: str) -> bool:
    """`self.x`, `self.x[k]`, `self.x.get(k)`, `self.x[k][0]`, and nothing else."""
    while isinstance(value, (cst.Subscript, cst.Call)):
        if isinstance(value, cst.Subscript):
            if any(isinstance(element.slice, cst.Slice) for element in value.slice):
                return False
            value = value.value
        elif isinstance(value.func, cst.Attribute) and value.func.attr.value == "get":
            value = value.func.value
        else:
            return False
    return dotted(value) == f"self.{word}"


def _joined_names(
    module: Module, function: cst.FunctionDef, word: str, stored: cst.Assign
) -> set[str]:
    """The local names that hold the cache and more: `keys = torch.cat([old, keys])`.

    What is joined behind the store is not what was stored, but in a loop.
    """
    nodes = shape.own_nodes(function)
    if module.loop_of(stored) is None:
        nodes = takewhile(lambda node: node is not stored, nodes)
    return {
        name
        for node in nodes
        if isinstance(node, cst.Assign) and _joins(module, node.value, word, function)
        for target in node.targets
        for name in shape.target_names(target.target)
    }


def _joins(module: Module, value: cst.BaseExpression, word: str, function: cst.FunctionDef) -> bool:
    if not isinstance(value, cst.Call) or module.qualified(value.func) not in shape.api("cat"):
        return False
    parts = value.args[0].value if value.args else None
    if not isinstance(parts, (cst.List, cst.Tuple)):
        return False
    old = _old_names(function, word)
    if any(_cut_to_size(e.value) or _is_blank(module, e.value) for e in parts.elements):
        return False
    return any(
        _reads(e.value, word) or (isinstance(e.value, cst.Name) and e.value.value in old)
        for e in parts.elements
    )


def _is_blank(module: Module, part: cst.BaseExpression) -> bool:
    """`torch.zeros_like(self.x)`: more room, of its own size, and no data."""
    return isinstance(part, cst.Call) and module.qualified(part.func) in shape.api("blanks")


def _cut_to_size(part: cst.BaseExpression) -> bool:
    """`new[:room]`: only as much is joined as there is room for."""
    while isinstance(part, (cst.Subscript, cst.Call, cst.Attribute)):
        match part:
            case cst.Subscript(
                slice=[cst.SubscriptElement(slice=cst.Slice(lower=None, upper=cst.Name()))]
            ):
                return True
            case cst.Call(func=function):
                part = function
            case _:
                part = part.value
    return False


def _holds_join(module: Module, value: cst.BaseExpression, word: str, joined: set[str]) -> bool:
    """The join itself, a local name that holds it, or a tuple or dict of such."""
    function = module.function_of(value)
    if function is not None and _joins(module, value, word, function):
        return True
    return any(lifetime.holds(value, name) for name in joined)


def _reset(module: Module, word: str, joined: set[str]) -> bool:
    """Some other place of the file sets it anew, cuts it or deletes it; registered state counts."""
    if growth.named_in_text(module, word):
        return True
    for use in growth.uses(module, word):
        if use.role == "drop" or _cut(module, use.node):
            return True
        if use.role not in ("bind", "slot") or not isinstance(use.act, cst.Assign):
            continue
        function = module.function_of(use.node)
        if function is None or function.name.value == "__init__":
            continue
        held = _holds_join(module, use.act.value, word, joined)
        if not held and not _first_fill(module, use.act):
            return True
    return any(_cut(module, name) for name in module.nodes(cst.Name) if name.value in joined)


def _cut(module: Module, node: cst.CSTNode) -> bool:
    """`x[-n:]`, of the cache or of what is joined to it."""
    above = module.parent(node)
    return isinstance(above, cst.Subscript) and any(
        isinstance(element.slice, cst.Slice) for element in above.slice
    )


def _first_fill(module: Module, assign: cst.Assign) -> bool:
    """`if self.x is None: self.x = new` or `if k not in self.x`: the start of what is joined to."""
    around = module.enclosing(assign, cst.If)
    if around is None:
        return False
    return any(
        isinstance(node, (cst.NotIn, cst.In, cst.Is, cst.IsNot))
        or (isinstance(node, cst.Name) and node.value in ("None", "hasattr"))
        for part in walk(around.test)
        for node in (part, getattr(part, "operator", part))
    )
