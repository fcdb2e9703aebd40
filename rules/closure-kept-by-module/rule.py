"""model.score = lambda x: ... model ...: object and function hold each other."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.facts.link import Linked, is_test
from leakcheck.static.facts.model import AttributeEffect, Call, FileFacts
from leakcheck.static.facts.runs import runs_once
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.shape import api


class ClosureKeptByModule(Rule):
    """Functions that hold a model, or an object made here, given to that very object."""

    code = "LK214"
    summary = "an object is given a function that holds it, so only the collector frees both"
    help = "close over a weakref to the object, or take the object as a parameter"

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what each function assigns to a model it was given, or an object it made."""
        facts, in_test = module.facts.facts, is_test(module.facts.path)
        for use in facts.uses:
            if use.role != "bind" or not _holds(facts, use, use.holder):
                continue
            if _is_model(facts, use) or (_is_made_here(module.facts, use) and not in_test):
                told = f"`{use.holder}` keeps this function, and the function `{use.holder}`"
                if not _put_back(facts, use) and not _wraps_itself(module, use):
                    alone = not use.loops and runs_once(module.facts, use.function)
                    brief = alone or _is_recovered(facts, use)
                    yield self.hit(use.at, told, confidence="low" if brief else "medium")


def _is_model(facts: FileFacts, use: AttributeEffect) -> bool:
    """Whether the holder is a plain name for a model that the function around was given or made."""
    function = facts.function(use.function)
    if function is None or use.holder.rpartition("_")[2] not in api("model-names"):
        return False
    made = (b for b in facts.bindings if b.function == use.function)
    return use.holder in function.parameters or any(b.name == use.holder for b in made)


def _is_made_here(linked: Linked, use: AttributeEffect) -> bool:
    """Whether the holder is an object that the function makes each time, of a known class."""
    return any(
        call.bound == use.holder
        and call.function == use.function >= 0
        and linked.class_called(call.qualified or call.spelled) is not None
        for call in linked.facts.calls
    )


def _holds(facts: FileFacts, use: AttributeEffect, name: str) -> bool:
    """Whether a lambda, a partial, a nested function, or what one returns, closes over the name."""
    value = use.value
    if value is None:
        return False
    if value.kind == "lambda":
        return name in value.names
    if value.text == "functools.partial":
        return any(_is_given(call, name) for call in facts.calls_in(use.function) if _is(call, use))
    made_by = [i for i, f in enumerate(facts.functions) if f.around == use.function]
    named = [index for index in made_by if facts.functions[index].name == value.text]
    if value.kind == "name":
        return any(_closes_over(facts, index, name) for index in named)
    if value.kind != "call" or any(_is_own(facts, index, name) for index in named):
        return False
    inner = (i for i, f in enumerate(facts.functions) if f.around in named)
    return any(_closes_over(facts, index, name) for index in inner)


def _is(call: Call, use: AttributeEffect) -> bool:
    return call.bound == f"{use.holder}.{use.name}" and call.at.line == use.at.line


def _is_given(call: Call, name: str) -> bool:
    """Whether a partial is given the model, or a bound method of it, and not a weakref to it."""
    given = (argument.value.text for argument in call.arguments if argument.value.kind == "name")
    methods = {f"{name}.{method}" for method in api("module-methods")}
    return any(text == name or text in methods for text in given)


def _closes_over(facts: FileFacts, index: int, name: str) -> bool:
    return name in facts.functions[index].reads and not _is_own(facts, index, name)


def _is_own(facts: FileFacts, index: int, name: str) -> bool:
    """Whether a function means something of its own by the name."""
    bound = any(b.name == name and b.function == index for b in facts.bindings)
    return bound or name in facts.functions[index].parameters


def _put_back(facts: FileFacts, use: AttributeEffect) -> bool:
    """Whether the attribute is given another value, or taken off, by the same function."""
    around = facts.method_around(use.function)
    same = (other for other in facts.uses_by_name[use.name] if other.holder == use.holder)
    again = (o for o in same if o is not use and o.role in ("bind", "take"))
    return any(facts.method_around(other.function) is around for other in again)


def _is_recovered(facts: FileFacts, use: AttributeEffect) -> bool:
    """Whether the function keeps the method under a name, from where another puts it back.

    `model.kept = model.forward`, and `model.forward = model.kept` when the work is done.
    """
    kept = {
        f".{other.name}"
        for other in facts.uses
        if other.role == "bind" and other.function == use.function
        if other.value is not None and other.value.text == f"{use.holder}.{use.name}"
    }
    values = (
        other.value.text
        for other in facts.uses_by_name[use.name]
        if other.role == "bind" and other.function != use.function and other.value is not None
    )
    return any(text.endswith(name) for text in values for name in kept)


def _wraps_itself(module: Module, use: AttributeEffect) -> bool:
    """`model.forward = lambda x: ... model.forward ...`, which wrapped-forward-cycle tells."""
    lines = module.source.splitlines()[use.at.line - 1 : use.at.end_line]
    return use.name in api("module-methods") and (
        (use.value is not None and use.value.kind == "name")
        or "\n".join(lines).count(f"{use.holder}.{use.name}") > 1
    )
