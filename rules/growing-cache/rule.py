"""A memo is filled under keys taken from the data, and nothing ever takes an entry out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakcheck.static.facts.keys import only_constants
from leakcheck.static.facts.model import AttributeEffect
from leakcheck.static.facts.text import is_text
from leakcheck.static.module import Module
from leakcheck.static.queries import growth, memos
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import outline_at_top, outline_nodes_of


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
                    confidence="low" if _keeps_text(module, memo) else "high",
                )


def _stores(module: Module, memo: memos.Memo) -> list[AttributeEffect]:
    facts, line = module.facts.facts, module.location(memo.node).line
    kept = (use for use in (*facts.uses, *facts.local_uses) if use.at.line == line)
    return [use for use in kept if use.role == "slot"]


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
