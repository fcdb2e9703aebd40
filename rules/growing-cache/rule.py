"""A memo is filled under keys taken from the data, and nothing ever takes an entry out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.facts.keys import one_of_many, only_constants
from leakcheck.static.facts.model import AttributeEffect
from leakcheck.static.facts.targets import is_of_python
from leakcheck.static.facts.text import is_text
from leakcheck.static.module import Module
from leakcheck.static.queries import growth, memos
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, outline_at_top, outline_nodes_of, walk


class GrowingCache(Rule):
    """Dicts at module level or on `self` that remember every input."""

    code = "LK303"
    summary = "a cache is filled under keys from the data and never emptied"
    help = "give it a limit, or key it weakly (weakref.WeakKeyDictionary)"

    def concerns(self, outline: ast.Module) -> bool:
        """Only a store under a key, beside a look-up of that key, can matter, and in no local."""
        stored: dict[tuple[str, str], ast.expr] = {}
        asked: set[tuple[str, str]] = set()
        for node in outline_nodes_of(outline, ast.Assign, ast.Compare, ast.Call):
            match node:
                case ast.Assign(
                    targets=[ast.Subscript(value=holder, slice=(ast.Name() | ast.Call()) as key)]
                ):
                    stored[ast.dump(holder), ast.dump(key)] = holder
                case ast.Compare(left=(ast.Name() | ast.Call()) as key, comparators=[*holders]):
                    asked.update((ast.dump(holder), ast.dump(key)) for holder in holders)
                case ast.Call(func=ast.Attribute(value=holder, attr="get"), args=[key, *_]):
                    asked.add((ast.dump(holder), ast.dump(key)))
        holders = [holder for place, holder in stored.items() if place in asked]
        return any(_may_outlive(outline, holder) for holder in holders)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each store into a dict under a key."""
        for memo in memos.memos(module):
            if not growth.bounded(module, memo.name) and not _has_few_keys(module, memo):
                yield self.hit(
                    memo.node,
                    f"`{memo.name}` keeps an entry for every {memo.key} it ever saw",
                    confidence="high" if _matters(module, memo) else "low",
                )


def _stores(module: Module, memo: memos.Memo) -> list[AttributeEffect]:
    facts, line = module.facts.facts, module.location(memo.node).line
    kept = (use for use in (*facts.uses, *facts.local_uses) if use.at.line == line)
    return [use for use in kept if use.role == "slot"]


def _matters(module: Module, memo: memos.Memo) -> bool:
    """Whether it is shown that keys are many, or that a key is itself an object that is kept.

    A key is of many by its name, or where a loop goes through them, here or in a caller; of a path
    or a word that somebody gives nobody knows how many there are.
    """
    if _keeps_text(module, memo) or _is_being_made(module, memo):
        return False
    slots = [use for use in _stores(module, memo) if use.key is not None]
    if any(use.key is not None and one_of_many(use.key) for use in slots):
        return True
    function = module.function_of(memo.node)
    if function is None or _is_asked_in_loop(module, function.name.value):
        return True
    nodes = list(walk(function))
    turns = (each.target for each in nodes if isinstance(each, (cst.For, cst.CompFor)))
    if any(memo.key in shape.target_names(each) for each in turns):
        return True
    asked = (each.value for each in nodes if isinstance(each, cst.Attribute))
    called = any(isinstance(each, cst.Call) and memo.key in _given(each) for each in nodes)
    return memo.key in map(dotted, asked) or not memo.key.isidentifier() or called


def _is_being_made(module: Module, memo: memos.Memo) -> bool:
    """Whether a constructor fills what it has just made for its own object, and nobody later."""
    facts, stores = module.facts.facts, _stores(module, memo)
    made = {
        (use.name, use.function)
        for use in facts.uses
        if use.role == "bind" and use.holder == "self" and facts.functions[use.function].owner
        if facts.functions[use.function].name == "__init__"
    }
    return bool(stores) and all((use.name, use.function) in made for use in stores)


def _is_asked_in_loop(module: Module, function: str) -> bool:
    """Whether the project calls it in a loop, with more than constants."""
    return any(
        call.loops and any(given.value.kind != "constant" for given in call.arguments)
        for _, call in module.facts.calls_of(function)
        if not is_of_python(call)
    )


def _given(call: cst.Call) -> list[str]:
    """Return what `id` or `hash` is given: an object, that is."""
    return [dotted(arg.value) for arg in call.args] if dotted(call.func) in ("id", "hash") else []


def _keeps_text(module: Module, memo: memos.Memo) -> bool:
    """Whether an entry is a word for a word, as tokenizers keep them."""
    return any(is_text(module.facts.facts, use) for use in _stores(module, memo))


def _has_few_keys(module: Module, memo: memos.Memo) -> bool:
    """Whether the project itself gives all the keys, and each is written down in it."""
    return any(
        use.key is not None and only_constants(module.facts, use.function, use.key)
        for use in _stores(module, memo)
    )


def _may_outlive(outline: ast.Module, holder: ast.expr) -> bool:
    """Whether a dict is part of something, or a name that the program's own code binds."""
    if not isinstance(holder, ast.Name):
        return True
    bound = (node for node in outline_at_top(outline) if isinstance(node, ast.Name))
    return any(node.id == holder.id and isinstance(node.ctx, ast.Store) for node in bound)
