"""writer.close, without its parentheses: the line reads a method, and nothing is closed."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.shape import api


class ReleaseNotCalled(Rule):
    """Statements that name what should be released, or how, and do nothing with it."""

    code = "LK614"
    summary = "a statement names what releases a resource, and does not call it"
    help = "call it"
    severity = "error"
    words = ("close", "release", "stop", "shutdown", "terminate", "__exit__", "unlink", "cleanup")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at the statements that are nothing but an attribute."""
        facts = module.facts.facts
        endings = api("closing-methods") | api("teardowns")
        for use in facts.uses:
            if use.role != "read" or use.how != "dropped":
                continue
            around = facts.method_around(use.function)
            if use.name in endings:
                yield self.hit(use.at, f"`{use.holder}.{use.name}` is not called")
            elif use.holder == "self" and around is not None and around.name in api("teardowns"):
                told = f"`{around.name}` names `self.{use.name}`, and does nothing with it"
                yield self.hit(use.at, told, confidence="medium")
