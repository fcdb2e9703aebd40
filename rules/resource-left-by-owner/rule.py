"""self.file = open(...), and a close() that forgets it."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.model import Evidence
from leakcheck.static.facts.link import Linked, Member, sets_up
from leakcheck.static.facts.model import AttributeEffect, Call, Expr, FileFacts
from leakcheck.static.facts.resources import enders, ends_figures, kept_open, openers
from leakcheck.static.facts.runs import is_made_per_call
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.shape import api


class ResourceLeftByOwner(Rule):
    """Resources on self that no closing method of the class, nor anybody else, releases."""

    code = "LK605"
    summary = "an object that can be closed leaves a resource of its own open"
    help = "release it in the same closing method as the others"
    proof = "static only: CPython closes the file with its owner, so none stays open"
    words = openers("owned", "ends", "proxied")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what each class that has a closing method acquires."""
        for member in module.facts.classes:
            for flush in _only_flushes(member):
                yield self.hit(
                    flush.at, "`close` only flushes, and closes nothing", confidence="medium"
                )
            ending = _closing(module.facts, member)
            closed_last = ending != ["__del__"]
            for use in member.binds() if closed_last else ():
                made = kept_open(module.facts.facts, use, *_GROUPS)
                closing = [name for name in ending if not _only_pauses(member, name, use)]
                if not made or not (closing or made in api("writers")):
                    continue
                if _is_told_to_stop(member, use) or _goes_with_all(module.facts, member, made):
                    continue
                if all(_forgotten(member, name, made) for name in _names_of(member, use)):
                    told = f"`{closing[0]}` leaves `self.{use.name}` open" if closing else ""
                    shown = closing or is_made_per_call(member)  # one writer a run is no leak
                    shown = shown and not _only_brackets(member, closing, use)
                    yield self.hit(
                        use.at,
                        told or f"nothing ever closes `self.{use.name}`",
                        confidence="medium" if shown else "low",
                        evidence=_closes(module, member, closing[0]) if closing else (),
                    )


def _only_flushes(member: Member) -> Iterator[Call]:
    """Yield what a close() does that hands on the last writes, and ends nothing it made.

    A flush of the class's own may close what it has written.
    """
    facts, index = member.file.facts, member.facts.methods.get("close")
    flush = member.facts.methods.get("flush")
    if flush is not None and any(call.method == "close" for call in facts.calls_in(flush)):
        return
    calls = facts.calls_in(index) if index is not None else ()
    made = {f"self.{use.name}.flush" for use in member.binds() if _makes_file(use.value)}
    own = all(call.spelled in (*made, "self.flush") for call in calls)
    yield from calls if made and own else ()


def _makes_file(value: Expr | None) -> bool:
    """Whether an attribute is made by its class: what it is handed in, another may end."""
    return value is not None and value.kind == "call" and not value.text.endswith(_IN_MEMORY)


_IN_MEMORY = ("StringIO", "BytesIO")  # they go with their object


def _closing(linked: Linked, member: Member) -> list[str]:
    """Name what ends the object: `terminate(self)`, not `terminate(self, ids)`."""
    return [
        name
        for each in linked.lineage(member)
        for name, index in each.facts.methods.items()
        if name in api("teardowns")
        and (
            name.startswith("__")
            or name in _ENDS_IT_ALL
            or len(each.file.facts.functions[index].parameters) == 1
        )
    ]


_ENDS_IT_ALL = ("finalize", "teardown")  # whatever they are given: loggers are told a status


def _goes_with_all(linked: Linked, member: Member, made: str) -> bool:
    """Whether a closing method drops every attribute, or closes whichever figure is current.

    `delattr(self, name)` for each name: with it goes all that CPython ends with its last reference.
    """
    closing = [
        (each.file.facts, index)
        for each in linked.lineage(member)
        for name, index in each.facts.methods.items()
        if name in api("teardowns")
    ]
    if not enders(made):  # a figure
        return any(ends_figures(facts, index) for facts, index in closing)
    if not enders(made).isdisjoint(_OF_WORKERS):
        return False
    return any(_deletes_each(call) for facts, index in closing for call in facts.calls_in(index))


_OF_WORKERS = ("join", "cancel", "shutdown", "terminate")  # which go on without a reference


def _deletes_each(call: Call) -> bool:
    name = call.argument("name", 1) if call.spelled == "delattr" else None
    return name is not None and name.kind != "constant"


def _only_pauses(member: Member, name: str, use: AttributeEffect) -> bool:
    """Whether work ends and may begin again with the same resource, as by `start` and `stop`."""
    if name not in ("stop", "finish"):
        return False
    begins = [index for other, index in member.facts.methods.items() if other in _BEGINS]
    made_when_needed = (
        name == "finish" and use.guarded and not sets_up(member.file.facts, use.function)
    )
    return (bool(begins) and use.function not in begins) or made_when_needed


def _is_told_to_stop(member: Member, use: AttributeEffect) -> bool:
    """Whether its function is handed an event that a closing method sets, and soon asks it.

    In each turn of its loop, itself or in a method, and no turn is known to wait over a second.
    """
    facts = member.file.facts
    made = [c for c in facts.calls if c.bound == f"self.{use.name}" and c.function == use.function]
    closing = {index for name, index in member.facts.methods.items() if name in api("teardowns")}
    ended = {c.spelled.removesuffix(".set") for c in facts.calls_by_name.get("set", ())
             if c.function in closing}  # fmt: skip
    for call in made:
        target, given = call.argument("target", 1), call.argument("args", 3)
        if target is None or given is None or ended.isdisjoint(given.plain):
            continue
        name = target.text.rpartition(".")[2]
        runs = [i for i, f in enumerate(facts.functions) if f.name == name and f.owner]
        return bool(runs) and all(_soon_asks(facts, index) for index in runs)
    return False


def _soon_asks(facts: FileFacts, index: int) -> bool:
    """Whether each turn of a function's loop asks an event, and waits for a second at most."""
    turns = [call for call in facts.calls_in(index) if call.loops]
    own = {c.method for c in turns if c.spelled == f"self.{c.method}"}
    helpers = [i for i, f in enumerate(facts.functions) if f.name in own]
    asking = [*turns, *(call for helper in helpers for call in facts.calls_in(helper))]
    waits = [c.argument("timeout") for c in turns]
    waits += [c.argument("", 0) for c in turns if c.method == "sleep"]
    known = [wait for wait in waits if wait is not None]
    brief = bool(known) and all(each.kind == "constant" and _is_brief(each.text) for each in known)
    return brief and any(call.method == "is_set" for call in asking)


def _is_brief(seconds: str) -> bool:
    return seconds.replace(".", "", 1).isdecimal() and float(seconds) <= 1


def _only_brackets(member: Member, closing: list[str], use: AttributeEffect) -> bool:
    """Whether a block is all that ends, and the resource is of none: opened by another method."""
    method = member.file.facts.method_around(use.function)
    opened = method is None or method.name in ("__enter__", "__aenter__")
    opened = opened or sets_up(member.file.facts, use.function)
    return bool(closing) and set(closing) <= {"__exit__", "__aexit__"} and not opened


_BEGINS = ("start", "restart", "resume", "begin", "reset", "run")


def _closes(module: Module, member: Member, name: str) -> tuple[Evidence, ...]:
    """Return the closing method, if it stands in this file."""
    index = member.facts.methods.get(name)
    if index is None:
        return ()
    place = module.location(member.file.facts.functions[index].at)
    return (Evidence(place, "closing", name),)


_GROUPS = ("owned", "ends", "proxied")


def _is_finalized(facts: FileFacts, name: str) -> bool:
    """Whether a finalizer ends it: `weakref.finalize(self, self._folder.cleanup)`."""
    return any(
        name in spelled.split(".")
        for call in facts.calls
        if call.qualified in ("weakref.finalize", "atexit.register")
        for given in call.arguments
        for spelled in (given.value.text, *given.value.names)
    )


def _forgotten(member: Member, name: str, made: str) -> bool:
    """Whether nothing in the project ends, hands on, gives back or replaces the attribute."""
    linked = member.file
    if _is_finalized(linked.facts, name):
        return False
    releases = enders(made) | {*api("closing-methods")}
    if any(_is_released(each, name, releases) for each in linked.lineage(member)):
        return False
    for facts, use in linked.uses_of(name, member):
        if use.how == "returned" and _is_property(facts, use):
            method = facts.functions[use.function].name
            if not _only_used(member, method, releases):
                return False
            continue
        if use.role in ("escape", "take") or use.how in releases:
            return False
        if use.role == "bind" and facts.method_around(use.function) is None:
            return False
        if use.role == "read" and use.how not in ("", "used"):
            continue
    return not linked.spelled_as_string(name)


def _is_released(member: Member, name: str, releases: frozenset[str]) -> bool:
    """Whether a method ends it by another name, or hands on its method that does.

    `for each in (self.a, self.b): each.close()`, and `self._safely(self.a.close)`.
    """
    facts, handed = member.file.facts, {f"self.{name}.{method}" for method in releases}
    calls = [call for index, _ in member.methods() for call in facts.calls_in(index)]
    if any(given.value.text in handed for call in calls for given in call.arguments):
        return True
    turned = {(b.function, b.name) for b in facts.bindings if f"self.{name}" in b.value.plain}
    return any(
        call.method in releases
        and call.receiver is not None
        and (call.function, call.receiver.text) in turned
        for call in calls
    )


def _names_of(member: Member, use: AttributeEffect) -> set[str]:
    """Return the attributes that are given the same: `self.own = file` and `self.stream = file`."""
    named = use.value is not None and use.value.kind == "name"
    same = [other for other in member.binds() if named and other.value == use.value]
    return {use.name, *(other.name for other in same if other.function == use.function)}


def _is_property(facts: FileFacts, use: AttributeEffect) -> bool:
    """Whether the attribute is given out under another name: `return self._writer`."""
    return use.function >= 0 and "property" in facts.functions[use.function].decorators


def _only_used(member: Member, name: str, releases: frozenset[str]) -> bool:
    """Whether everybody only calls methods of it, and none that ends it."""
    uses = (use for _, use in member.file.uses_of(name, member))
    return all(use.role not in ("escape", "take") and use.how not in releases for use in uses)
