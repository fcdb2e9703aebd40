"""A memo is filled under keys taken from the data, and nothing ever takes an entry out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakcheck.static import growth, memos
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule


class GrowingCache(Rule):
    """Dicts at module level or on `self` that remember every input."""

    code = "LK303"
    summary = "a cache is filled under keys from the data and never emptied"
    help = "give it a limit, or key it weakly (weakref.WeakKeyDictionary)"

    def concerns(self, outline: ast.Module) -> bool:
        """Only a store under a named key, beside a look-up of that key, can matter."""
        stored: set[str] = set()
        asked: set[str] = set()
        for node in ast.walk(outline):
            match node:
                case ast.Assign(targets=[ast.Subscript(slice=key)]):
                    stored.add(ast.dump(key).replace("Store()", "Load()"))
                case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()]):
                    asked.add(ast.dump(key))
                case ast.Call(func=ast.Attribute(attr="get"), args=[key, *_]):
                    asked.add(ast.dump(key))
        return bool(stored & asked)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each store into a dict under a key."""
        for memo in memos.memos(module):
            if not growth.bounded(module, memo.name):
                yield self.hit(
                    memo.node, f"`{memo.name}` keeps an entry for every {memo.key} it ever saw"
                )
