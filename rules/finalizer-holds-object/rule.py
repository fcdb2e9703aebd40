"""weakref.finalize(self, self.close): the finalizer holds what it waits for."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.facts.link import Linked
from leakcheck.static.facts.model import Call, Expr, FileFacts
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule


class FinalizerHoldsObject(Rule):
    """Finalizers whose callback, or an argument of it, is the object itself."""

    code = "LK210"
    summary = "a finalizer holds the object whose end it waits for, so it never comes"
    help = "give it a function and the resources alone, nothing that refers to the object"
    words = ("finalize",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each weakref.finalize."""
        for call in module.facts.facts.calls_by_name.get("finalize", ()):
            if call.qualified == "weakref.finalize" and _holds_its_object(module.facts, call):
                name = call.arguments[0].value.text
                yield self.hit(call.at, f"the callback holds `{name}` until the program ends")


def _holds_its_object(linked: Linked, call: Call) -> bool:
    name = call.arguments[0].value.text if len(call.arguments) > 1 else ""
    if not name:
        return False
    callback, *others = (argument.value for argument in call.arguments[1:])
    made = _made(linked.facts, call, callback)
    given = any(other.text == name or name in _held(other) for other in (callback, *others, *made))
    return given or any(_is_method(linked, call, each.text, name) for each in (callback, *made))


def _held(value: Expr) -> tuple[str, ...]:
    """Name what a value holds: of one worked out, `self.epoch is not None`, what stands in it."""
    return value.plain if value.kind == "other" else value.names


def _made(facts: FileFacts, call: Call, callback: Expr) -> list[Expr]:
    """What the name of a callback stands for: a lambda, or what a partial is made of."""
    if callback.kind != "name":
        return []
    given = [b.value for b in facts.bindings if _is(b.name, b.function, callback, call)]
    partials = (c for c in facts.calls if _is(c.bound, c.function, callback, call))
    parts = (c.arguments for c in partials if c.qualified == "functools.partial")
    return [v for v in given if v.kind == "lambda"] + [a.value for each in parts for a in each]


def _is(name: str, function: int, callback: Expr, call: Call) -> bool:
    return name == callback.text and function == call.function


def _is_method(linked: Linked, call: Call, callback: str, name: str) -> bool:
    """Whether a callback is bound: `self.close`, not `self.on_close`, which may be a function."""
    holder, _, method = callback.rpartition(".")
    if name != "self" or holder != name:
        return holder == name
    around = linked.class_around(call)
    found = (
        each.file.facts.functions[each.facts.methods[method]]
        for each in (linked.lineage(around) if around is not None else ())
        if method in each.facts.methods
    )
    return any(not {"classmethod", "staticmethod"} & {*each.decorators} for each in found)
