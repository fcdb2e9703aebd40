"""A memo is filled under keys taken from the data, and nothing ever takes an entry out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakcheck.static.module import Module
from leakcheck.static.queries import growth, memos
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import outline_nodes_of


class GrowingCache(Rule):
    """Dicts at module level or on `self` that remember every input."""

    code = "LK303"
    summary = "a cache is filled under keys from the data and never emptied"
    help = "give it a limit, or key it weakly (weakref.WeakKeyDictionary)"

    def concerns(self, outline: ast.Module) -> bool:
        """Only a store under a named key, beside a look-up of that key, can matter."""
        stored: set[tuple[str, str]] = set()
        asked: set[tuple[str, str]] = set()
        for node in outline_nodes_of(outline, ast.Assign, ast.Compare, ast.Call):
            match node:
                case ast.Assign(
                    targets=[ast.Subscript(value=holder, slice=(ast.Name() | ast.Call()) as key)]
                ):
                    stored.add((ast.dump(holder), ast.dump(key)))
                case ast.Compare(left=(ast.Name() | ast.Call()) as key, comparators=[*holders]):
                    asked.update((ast.dump(holder), ast.dump(key)) for holder in holders)
                case ast.Call(func=ast.Attribute(value=holder, attr="get"), args=[key, *_]):
                    asked.add((ast.dump(holder), ast.dump(key)))
        return bool(stored & asked)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each store into a dict under a key."""
        for memo in memos.memos(module):
            if not growth.bounded(module, memo.name):
                yield self.hit(
                    memo.node, f"`{memo.name}` keeps an entry for every {memo.key} it ever saw"
                )
