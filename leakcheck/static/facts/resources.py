"""Acquired here: ended, handed on to somebody who might end it, or left to itself?

Silence when unsure: whatever is returned, stored, or given to code that is not known to be harmless
is taken to be looked after.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import cast

from leakcheck.static.facts.model import Call, Expr, FileFacts
from leakcheck.static.names import table


@cache
def ends(group: str) -> Mapping[str, frozenset[str]]:
    """Return what is acquired, and the methods that end it: "ends" or "owned"."""
    listed = cast("dict[str, list[str]]", table("resource_api")[group])
    return {name: frozenset(methods) for name, methods in listed.items()}


def left_open(facts: FileFacts, call: Call, harmless: Collection[str]) -> bool:
    """Tell whether what a call in a function acquires is neither ended nor handed on."""
    if call.qualified in ends("proxied"):
        return _proxy_escapes(facts, call)
    enders = ends("ends")[call.qualified]
    if call.fate == "chained":
        return not any(_follows(facts, call, ender) for ender in enders)
    if call.fate != "bound" or "." in call.bound or not call.bound or call.function < 0:
        return False
    name = call.bound
    inside = set(within(facts, call.function))
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
        if not kept and any(name in _text_and_names(a.value) for a in other.arguments):
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
    escapes = any(set(made) & set(_text_and_names(value)) for value in leaving)
    return call.fate == "bound" and "." not in call.bound and not ended and escapes


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
    for use in facts.uses:
        if use.function in inside and use.value is not None:
            yield use.value
    for binding in facts.bindings:
        if binding.function in inside and binding.value.kind in ("name", "other"):
            yield binding.value


def _text_and_names(value: Expr) -> tuple[str, ...]:
    spelled = value.kind in ("name", "item", "slice", "other", "lambda")
    return (value.text, *value.names) if spelled else value.names
