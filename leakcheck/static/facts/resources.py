"""Acquired here: ended, handed on to somebody who might end it, or left to itself?

Silence when unsure: whatever is returned, stored, or given to code that is not known to be harmless
is taken to be looked after.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, cast

from leakcheck.static.facts.model import AttributeEffect, Call, Expr, FileFacts
from leakcheck.static.facts.targets import callee
from leakcheck.static.names import table

if TYPE_CHECKING:
    from leakcheck.static.facts.link import Linked


@cache
def ends(group: str) -> Mapping[str, frozenset[str]]:
    """Return what is acquired, and the methods that end it: "ends" or "owned"."""
    listed = cast("dict[str, list[str]]", table("resource_api")[group])
    return {name: frozenset(methods) for name, methods in listed.items()}


def makers(*groups: str) -> tuple[str, ...]:
    """Return the last words of what is called to acquire what the groups list: `Pool`, `open`."""
    return tuple(sorted({name.rpartition(".")[2] for group in groups for name in ends(group)}))


def openers(*groups: str) -> tuple[str, ...]:
    """Return the last words of all that `kept_open` knows: hooks, too."""
    return (*makers(*groups), *sorted(_hooks()))


def kept_open(facts: FileFacts, use: AttributeEffect, *groups: str) -> str:
    """Return what has to be released that an attribute is bound to, as `enders` knows it, or "".

    Here, or where a local name was bound to it. A hook of what the same function makes is released
    with that.
    """
    values = [use.value] if use.value is not None else []
    if values and values[0].kind == "name":
        local = values[0].text
        bound = (b for b in facts.bindings if b.function == use.function and b.name == local)
        values = [binding.value for binding in bound]
    for value in values:
        owner, _, method = value.text.rpartition(".")
        if value.kind != "call":
            continue
        if method in _hooks():
            return method if not _is_made_here(facts, use, owner) else ""
        if any(value.text in ends(group) for group in groups):
            return value.text if not _is_found_again(facts, use, value) else ""
    return ""


def enders(made: str) -> frozenset[str]:
    """Return the methods that release what `kept_open` tells."""
    if made in _hooks():
        return frozenset(["remove"])
    groups = ("owned", "ends", "proxied")
    return frozenset().union(*(ends(group).get(made, frozenset()) for group in groups))


def _hooks() -> frozenset[str]:
    return _named("module-hooks") | _named("tensor-hooks")


def _is_made_here(facts: FileFacts, use: AttributeEffect, owner: str) -> bool:
    """Whether the function makes what a hook is registered with: `self.model = Model()`."""
    root, _, rest = owner.partition(".")
    name = rest.partition(".")[0] if root == "self" else root
    own = (each for each in facts.uses if each.role == "bind")
    bound = own if root == "self" else facts.bindings
    here = (each.value for each in bound if (each.name, each.function) == (name, use.function))
    return any(value is not None and value.kind != "name" for value in here)


def _is_found_again(facts: FileFacts, use: AttributeEffect, value: Expr) -> bool:
    """Whether a figure has a number or a name, by which the same one is given each time."""
    calls = (each for each in facts.calls_in(use.function) if each.qualified == value.text)
    return value.text in _named("figures") and any(each.argument("num", 0) for each in calls)


@cache
def _named(group: str) -> frozenset[str]:
    groups = cast("dict[str, dict[str, list[str]]]", table("resource_api"))["names"]
    return frozenset(groups[group])


def left_open(linked: Linked, call: Call, made: str, harmless: Collection[str]) -> bool:
    """Tell whether what a call in a function acquires is neither ended nor handed on."""
    if made in ends("proxied"):
        return _proxy_escapes(linked.facts, call)
    return abandoned(linked, call, ends("ends")[made], harmless)


def acquired(linked: Linked, call: Call, names: Collection[str]) -> str:
    """Return which of some resources a call gives: itself, or a function that it calls.

    Such a function makes one and returns it, and keeps it nowhere.
    """
    name = call.qualified or call.spelled
    if name in names:
        return name
    called = callee(linked, call) if call.fate == "bound" else None
    return _fresh(called[0].facts, called[1], names) if called is not None else ""


def _fresh(facts: FileFacts, index: int, names: Collection[str]) -> str:
    function = facts.functions[index]
    if function.decorators or function.yields:
        return ""  # it may be cached, or a context manager
    kept = [u.value for u in (*facts.uses, *facts.local_uses) if u.function == index and u.value]
    for call in facts.calls_in(index):
        name = call.qualified or call.spelled
        if name not in names or "." in call.bound:
            continue
        if call.fate == "returned":
            return name
        out = any(v.kind == "name" and v.text == call.bound for v in function.returns)
        given = any(_gives(other, call.bound) for other in facts.calls_in(index))
        shared = call.bound in function.shared or any(call.bound in v.names for v in kept)
        if out and not given and not shared and all(v.text != call.bound for v in kept):
            return name
    return ""


def _gives(call: Call, name: str) -> bool:
    return any(name in _text_and_names(given.value) for given in call.arguments)


def abandoned(
    linked: Linked, call: Call, enders: Collection[str], harmless: Collection[str]
) -> bool:
    """Tell whether nobody ends what a call gives, nor gets hold of it."""
    if call.fate == "chained":
        return not any(_follows(linked.facts, call, ender) for ender in enders)
    if call.fate != "bound" or "." in call.bound or not call.bound or call.function < 0:
        return False
    return _unattended(linked.facts, call.function, call.bound, enders, harmless, linked)


def _unattended(
    facts: FileFacts,
    function: int,
    name: str,
    enders: Collection[str],
    harmless: Collection[str],
    linked: Linked | None = None,
) -> bool:
    """Whether nobody ends what a name holds in a function; `linked` to look into who it calls."""
    inside = set(within(facts, function))
    if any(name in facts.functions[each].shared for each in inside):
        return False
    if any(name in _text_and_names(value) for value in _given_away(facts, inside)):
        return False
    for other in facts.calls:
        if other.function not in inside:
            continue
        if name in other.managers or (_on(other, name) and other.method in enders):
            return False
        kept = other.qualified.startswith(tuple(harmless)) if harmless else False
        if kept or not any(name in _text_and_names(a.value) for a in other.arguments):
            continue
        called = callee(linked, other) if linked is not None else None
        if called is None:
            return False
        home, index = called
        parameters = home.facts.functions[index].parameters
        parameter = other.given(name, parameters[other.spelled.startswith("self.") :])
        if not parameter or not _unattended(home.facts, index, parameter, enders, harmless):
            return False
    return True


def _proxy_escapes(facts: FileFacts, call: Call) -> bool:
    """Whether a manager in a local name is never shut down, and a proxy of it leaves."""
    made = [
        binding.name
        for binding in facts.bindings
        if binding.function == call.function and binding.value.text.startswith(f"{call.bound}.")
    ]
    ended = any(_on(other, call.bound) and other.method == "shutdown" for other in facts.calls)
    leaving = [*facts.functions[call.function].returns]
    leaving += [u.value for u in facts.uses if u.function == call.function and u.value]
    whole = (value for value in leaving if value.kind != "item")  # not a `proxy[0]`
    escapes = any(set(made) & {value.text, *value.plain} for value in whole)
    return call.fate == "bound" and "." not in call.bound and not ended and escapes


def figure_position(facts: FileFacts, function: int, asked: Call) -> int | None:
    """Return where in its result a function hands out a figure it made: 0 also for the whole.

    `asked`: the call of it, which may give it a figure to draw on: `if fig is None: fig = ...`.
    """
    calls = facts.calls_in(function)
    if ends_figures(facts, function):
        return None
    for call in calls:
        name = call.unpacked[0] if call.unpacked else call.bound
        if call.qualified not in _named("figures") or call.argument("num") or not name:
            continue
        if _is_given(facts.functions[function].parameters, name, asked):
            continue
        for value in facts.functions[function].returns:
            if value.kind == "name" and value.text == name:
                return 0
            if name in value.plain:
                return value.plain.index(name)
    return None


def _is_given(parameters: Sequence[str], name: str, call: Call) -> bool:
    """Whether a call gives a parameter of a function, or of a method of self, some value."""
    own = parameters[call.spelled.startswith("self.") :]
    value = call.argument(name, own.index(name)) if name in own else None
    return value is not None and value != Expr("constant", "None")


_FIGURE_ENDS = frozenset(
    f"{module}.{name}" for module in ("matplotlib.pyplot", "pylab") for name in ("close", "show")
)


def ends_figures(facts: FileFacts, function: int) -> bool:
    """Tell whether a function closes or shows figures, whichever they are."""
    return any(call.qualified in _FIGURE_ENDS for call in facts.calls_in(function))


def only_drawn(facts: FileFacts, made: Call, name: str) -> bool:
    """Tell whether the figure in a local name is saved or logged, and given to nobody else."""
    inside = set(within(facts, made.function))
    if any(name in _text_and_names(value) for value in _given_away(facts, inside)):
        return False
    drawn = False
    for call in facts.calls:
        if call.function not in inside:
            continue
        if _on(call, name):
            drawn |= call.method in _named("figure-renders")
        elif any(name in _text_and_names(given.value) for given in call.arguments):
            drawn = True
            if not {call.qualified, call.method} & _named("figure-readers"):
                return False
    return drawn


def within(facts: FileFacts, function: int) -> Iterator[int]:
    """Yield the indexes of a function and of those nested in it."""
    yield function
    for index, other in enumerate(facts.functions):
        if other.around == function:
            yield from within(facts, index)


def _on(call: Call, name: str) -> bool:
    return call.receiver is not None and call.receiver.text == name


def _follows(facts: FileFacts, made: Call, ender: str) -> bool:
    """Whether the ender is called on the very call: `connect(path).close()`."""
    return any(
        call.method == ender and (call.at.line, call.at.column) == (made.at.line, made.at.column)
        for call in facts.calls
    )


def _given_away(facts: FileFacts, inside: set[int]) -> Iterator[Expr]:
    for index in inside:
        yield from facts.functions[index].returns
        if facts.functions[index].yields:
            yield Expr("other", "", ())
    for use in (*facts.uses, *facts.local_uses):
        if use.function in inside and use.value is not None:
            yield use.value
    for binding in facts.bindings:
        if binding.function in inside and binding.value.kind in ("name", "other"):
            yield binding.value


def _text_and_names(value: Expr) -> tuple[str, ...]:
    spelled = value.kind in ("name", "item", "slice", "other", "lambda")
    return (value.text, *value.names) if spelled else value.names
