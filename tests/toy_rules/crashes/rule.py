"""A rule with a bug."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule


class Crashes(Rule):
    """It falls over what it does not know."""

    code = "TOY901"
    summary = "a rule with a bug"
    default = False
    words = ("crash",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Crash."""
        yield self.hit(module.tree, str([][1]))
