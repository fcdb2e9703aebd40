"""Pool().map(...): the workers of an anonymous pool, or of one that nobody ends, go on."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.facts.link import Linked, Member
from leakcheck.static.facts.model import AttributeEffect, Call
from leakcheck.static.facts.resources import abandoned, acquired, ends, left_open, makers
from leakcheck.static.facts.runs import runs_once
from leakcheck.static.facts.targets import callee
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.shape import api

_KNOWN = frozenset([*ends("ends"), *ends("proxied")])
_PROCESSES = frozenset(name.rpartition(".")[2] for name in api("processes"))  # of a context, too
_CONNECTIONS = ("get_connection", "getconn", "open_connection", "new_connection")
_HARMLESS = ("asyncio.",)  # they use an event loop, and leave it open


class WorkersNeverEnded(Rule):
    """Pools, managers, executors, event loops and connections that a function leaves behind."""

    code = "LK604"
    summary = "a function starts workers or opens a connection, and never ends it"
    help = "use it in a with block, or end it in a finally"
    proof = "static only: CPython ends the workers of a pool that is dropped, so none stays"
    words = (*makers("ends", "proxied"), *_CONNECTIONS, *(f".{name}(" for name in api("teardowns")))

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each call that starts something, in a function that runs more than once."""
        linked = module.facts
        for call in linked.facts.calls:
            enders = _ends_workers(linked, call) if call.loops and call.fate == "bound" else ()
            if enders and abandoned(linked, call, enders, ()):
                told = f"each turn starts the processes of `{call.bound}`, and none ends them"
                yield self.hit(call.at, told, confidence="medium")
                continue
            if _probes(call):
                yield self.hit(call.at, "nobody takes this connection, so nobody closes it")
            made = acquired(linked, call, _KNOWN)
            if not made or _makes_its_object(linked, call) or _is_for_thread(linked, call):
                continue
            if left_open(linked, call, made, _HARMLESS) and not runs_once(linked, call.function):
                name = f"`{call.bound}`" if call.bound else f"this {call.method}"
                brief = made in api("pools") | api("executors")  # end when they are dropped
                yield self.hit(
                    call.at, f"{name} is never ended", confidence="low" if brief else "medium"
                )
        for member in linked.classes:
            for use in member.binds():
                if _is_pool(use) and not _ended(member, use.name):
                    yield self.hit(
                        use.at,
                        f"nothing ends the workers of `self.{use.name}`",
                        confidence="medium",
                    )


def _ends_workers(linked: Linked, call: Call) -> tuple[str, ...]:
    """Return the methods that end the processes of what a call makes, if it starts some.

    It is an object of a class that starts them as it is made: the call's own, or that of a function
    of the project which returns a new one. The file knows how to end them: it does so elsewhere.
    """
    owner = linked.class_called(call.qualified or call.spelled)
    called = callee(linked, call) if owner is None else None
    if called is not None:
        home, index = called
        made = [c for c in home.facts.calls_in(index) if c.fate == "returned"]
        made = made if len(home.facts.functions[index].returns) == 1 else []
        owner = home.class_called(made[0].qualified or made[0].spelled) if made else None
    if owner is None:
        return ()
    methods = [pair for each in owner.file.lineage(owner) for pair in _methods(each)]
    names = [{call.method for call in calls} for name, calls in methods if name == "__init__"]
    starts = any("start" in called and called & _PROCESSES for called in names)
    enders = [name for name, _ in methods if starts and name in api("teardowns")]
    ended = (c for name in enders for c in linked.facts.calls_by_name.get(name, ()))
    return tuple(enders) if any("." in each.spelled for each in ended) else ()


def _methods(member: Member) -> list[tuple[str, tuple[Call, ...]]]:
    facts = member.file.facts
    return [(function.name, facts.calls_in(index)) for index, function in member.methods()]


def _is_pool(use: AttributeEffect) -> bool:
    """Whether processes are started, which do not end when the last reference to them is gone."""
    return use.value is not None and use.value.kind == "call" and use.value.text in api("pools")


def _ended(member: Member, name: str) -> bool:
    """Whether anything in the project does more with a pool than look at it and give it work."""
    uses = member.file.uses_of(name, member)
    known = (use.role == "bind" or use.how in ("", "used", *api("pool-work")) for _, use in uses)
    return not all(known) or member.file.spelled_as_string(name)


def _probes(call: Call) -> bool:
    """A connection asked for and thrown away."""
    return call.fate == "dropped" and call.method in _CONNECTIONS and call.function >= 0


def _is_for_thread(linked: Linked, call: Call) -> bool:
    """Whether an event loop is made where the thread has none yet, and becomes the thread's."""
    beside = linked.facts.calls_in(call.function)
    kept = (c for c in beside if c.method == "set_event_loop" and c.given(call.bound, ("loop",)))
    return call.handled == "except" and call.method == "new_event_loop" and any(kept)


def _makes_its_object(linked: Linked, call: Call) -> bool:
    """Whether a constructor starts it and can keep it, for as long as the object lives."""
    function = linked.facts.method_around(call.function)
    return function is None or (function.name == "__init__" and call.fate != "chained")
