"""STOP = StopForward(), and later `raise STOP`: its traceback grows with every raise."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.facts.link import Linked
from leakcheck.static.facts.model import FileFacts, FunctionFacts
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
        linked, told = module.facts, set[str]()
        for index, function in enumerate(linked.facts.functions):
            for raised, at in function.raises:
                local = any(
                    binding.name == raised.text and binding.function == index
                    for binding in linked.facts.bindings
                )
                if (
                    raised.kind == "name"
                    and raised.text not in told
                    and not local
                    and _made_once(linked, raised.text, function)
                ):
                    told.add(raised.text)  # one object, wherever it is raised
                    yield self.hit(at, f"`{raised.text}` keeps the frames of every call it ended")


def _made_once(linked: Linked, name: str, function: FunctionFacts) -> bool:
    """Whether the name is a module's, or a class's, and stands for an exception made there."""
    if _is_object(linked.facts, name) or _is_of_class(linked.facts, name, function):
        return True
    source = linked.imported(name)
    return source is not None and _is_object(*source)


def _is_of_class(facts: FileFacts, name: str, function: FunctionFacts) -> bool:
    """Whether it is `self.NAME` or `cls.NAME`, an attribute that the class is made with."""
    holder, _, attribute = name.rpartition(".")
    if holder not in ("self", "cls", function.owner) or not function.owner:
        return False
    binds = (use for use in facts.uses_by_name.get(attribute, ()) if use.role == "bind")
    return all(use.function < 0 for use in binds) and _is_object(facts, attribute)


def _is_object(facts: FileFacts, name: str) -> bool:
    values = [b.value for b in facts.bindings if b.name == name and b.function < 0]
    return bool(values) and all(
        value.kind == "call" and _is_exception(facts, value.text) for value in values
    )


def _is_exception(facts: FileFacts, name: str) -> bool:
    """Whether a class is named like an exception, or is one of this file's."""
    own = facts.class_named(name)
    return name.endswith(_NAMED) or (own is not None and any(b.endswith(_NAMED) for b in own.bases))
