"""Is a model only tried out: run on numbers made up here, to be exported, timed or compared?

Such a function sees no data, and a graph for each try is gone with the next. Numbers that are made
up say nothing by themselves: a sampler begins with noise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from leakcheck.static.facts.model import Call, Expr, FileFacts, Span

_MADE_UP = re.compile(r"torch\.(randn?|randint|zeros|ones|empty|full|arange)(_like)?$")
_TRIES = re.compile(
    r"^(torch\.onnx\.\w*export|torch\.jit\.trace|torch\.export\.export|torch\.cuda\.synchronize|"
    r"time\.(time|perf_counter)|torch\.allclose|(torch|np|numpy)\.testing\.assert_\w+)$"
)


def is_trial(facts: FileFacts, call: Call) -> bool:
    """Tell whether a call is given what was made up, where the outcome is exported or compared."""
    beside = facts.calls_in(call.function)
    if not any(_TRIES.match(other.qualified or other.spelled) for other in beside):
        return False
    made_up = _made_up(facts, call.function)
    return any(not made_up.isdisjoint(_roots(given.value)) for given in call.arguments)


def is_asked_about_made_up(facts: FileFacts, call: Call) -> bool:
    """Tell whether a call outside a loop is given nothing but what the function made up."""
    made_up = _made_up(facts, call.function)
    given = [each.value for each in call.arguments]
    return bool(given) and not call.loops and all(_is_made_up(each, made_up) for each in given)


def _is_made_up(value: Expr, names: set[str]) -> bool:
    made_here = value.kind == "call" and _MADE_UP.match(value.text) is not None
    return made_here or not names.isdisjoint(_roots(value))


def _made_up(facts: FileFacts, function: int) -> set[str]:
    """Name what a function makes of nothing but sizes, and what it cuts out of that."""
    calls = facts.calls_in(function)
    sources = [call.at for call in calls if _MADE_UP.match(call.qualified)]
    found = {call.bound for call in calls if call.bound and _holds_one(call.at, sources)}
    for binding in facts.bindings:
        if binding.function == function and not found.isdisjoint(_roots(binding.value)):
            found.add(binding.name)
    return found


def _holds_one(outer: Span, places: Iterable[Span]) -> bool:
    first, last = (outer.line, outer.column), (outer.end_line, outer.end_column)
    return any(
        first <= (at.line, at.column) and (at.end_line, at.end_column) <= last for at in places
    )


def _roots(value: Expr) -> set[str]:
    names = value.names if value.kind in ("other", "item", "slice") else ()
    return {each.partition(".")[0] for each in (value.text, *names) if each}
