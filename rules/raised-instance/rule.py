"""STOP = StopForward(), and later `raise STOP`: its traceback grows with every raise."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.facts.link import Linked
from leakcheck.static.facts.model import FileFacts
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule

_NAMED = ("Error", "Exception", "Stop", "Interrupt", "Exit")


class RaisedInstance(Rule):
    """One exception object, made once and raised again and again."""

    code = "LK314"
    summary = "one exception object is raised again and again, and keeps the frames of each time"
    help = "raise a new one, or `raise error.with_traceback(None)`"
    words = ("raise ",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what functions raise by its name alone."""
        linked = module.facts
        for index, function in enumerate(linked.facts.functions):
            for raised, at in function.raises:
                local = any(
                    binding.name == raised.text and binding.function == index
                    for binding in linked.facts.bindings
                )
                if raised.kind == "name" and not local and _made_once(linked, raised.text):
                    yield self.hit(at, f"`{raised.text}` keeps the frames of every call it ended")


def _made_once(linked: Linked, name: str) -> bool:
    """Whether the name is a module's own and stands for an exception object made there."""
    if _is_object(linked.facts, name):
        return True
    source = linked.imported(name)
    return source is not None and _is_object(*source)


def _is_object(facts: FileFacts, name: str) -> bool:
    values = [b.value for b in facts.bindings if b.name == name and b.function < 0]
    return bool(values) and all(
        value.kind == "call" and _is_exception(facts, value.text) for value in values
    )


def _is_exception(facts: FileFacts, name: str) -> bool:
    """Whether a class is named like an exception, or is one of this file's."""
    own = facts.class_named(name)
    return name.endswith(_NAMED) or (own is not None and any(b.endswith(_NAMED) for b in own.bases))
