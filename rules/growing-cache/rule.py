"""A memo is filled under keys taken from the data, and nothing ever takes an entry out."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static import growth, memos
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule


class GrowingCache(Rule):
    """Dicts at module level or on `self` that remember every input."""

    code = "LK303"
    summary = "a cache is filled under keys from the data and never emptied"
    help = "give it a limit, or key it weakly (weakref.WeakKeyDictionary)"

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each store into a dict under a key."""
        for memo in memos.memos(module):
            if not growth.bounded(module, memo.name):
                yield self.hit(
                    memo.node, f"`{memo.name}` keeps an entry for every {memo.key} it ever saw"
                )
