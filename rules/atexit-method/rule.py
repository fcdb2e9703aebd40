"""atexit.register(self.close): the instance lives until the program ends."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.model import Evidence
from leakcheck.static import shape
from leakcheck.static.facts.link import Member
from leakcheck.static.facts.model import FunctionFacts
from leakcheck.static.facts.runs import is_made_once
from leakcheck.static.module import Module
from leakcheck.static.queries import hooks
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted


class AtexitMethod(Rule):
    """Bound methods, and closures over `self`, that are registered to run at exit.

    Many objects live as long as their program anyway. One that others may end earlier does not,
    or need not: it is told with confidence where ending it leaves it registered.
    """

    code = "LK208"
    summary = "atexit keeps a bound method, and its instance, until the program ends"
    help = "use weakref.finalize(self, function, resource), or atexit.unregister() where it ends"
    words = ("atexit",)
    needs_torch = True

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each registration inside a method."""
        for call in module.calls_of("atexit.register"):
            if not call.args or shape.method_of(module, call) is None:
                continue
            if hooks.holds_self(module, call.args[0].value, call):
                ending = _ending(module, call)
                yield self.hit(
                    call,
                    "every instance stays until the program ends",
                    confidence="low" if ending is None else "high",
                    evidence=_places(module, call, ending) if ending is not None else (),
                )


def _ending(module: Module, call: cst.Call) -> FunctionFacts | None:
    """Return the method that is registered, if it ends the object at any time, but not its stay."""
    owner, name = module.member_of(call), dotted(call.args[0].value).removeprefix("self.")
    if owner is None or not _ends(name) or module.enclosing(call, cst.If) is not None:
        return None  # under an `if` it may be that only the first one is registered
    if "__new__" in owner.facts.methods or _is_for_one(owner) or _is_taken_back(owner, name):
        return None
    return next((each for _, each in owner.methods() if each.name == name), None)


def _is_for_one(owner: Member) -> bool:
    """Whether the program makes one for a run, and leaves none for others to make.

    What a library offers others make as often as they like.
    """
    offered = not owner.facts.name.startswith("_") and "__main__" not in owner.file.facts.strings
    return is_made_once(owner) and not offered


def _ends(name: str) -> bool:
    """Whether a method that others may call says that it ends its object, or a part of it."""
    public = name == "__del__" or not name.startswith("_")
    return public and not shape.api("teardowns").isdisjoint((name, name.partition("_")[0]))


def _is_taken_back(owner: Member, name: str) -> bool:
    """Whether anybody unregisters the method, of this object or another."""
    given = (
        argument.value.text.rpartition(".")[2]
        for _, call in owner.file.calls_of("unregister")
        for argument in call.arguments
    )
    return name in given


def _places(module: Module, call: cst.Call, ending: FunctionFacts) -> tuple[Evidence, ...]:
    kept = Evidence(module.location(call), "kept", module.code(call.args[0].value))
    return (kept, Evidence(module.location(ending.at), "closing", ending.name))
