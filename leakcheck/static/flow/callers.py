"""What callers show of a function: backward on its result means that its result has a graph.

Within one module only; a function that is learnt about is walked anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakcheck.static.flow.values import Value, join_all

if TYPE_CHECKING:
    from leakcheck.static.flow.analysis import Analysis
    from leakcheck.static.flow.definitions import Definition

MOST_ROUNDS = 3  # a loss that comes through more calls than this stays unknown


def learn(analysis: Analysis) -> None:
    """Carry evidence from callers into the functions they call, until nothing new is shown."""
    for _ in range(MOST_ROUNDS):
        shown = [d for origin in list(analysis.evident) if (d := _teach(analysis, origin))]
        for definition in shown:
            analysis.trained.add(id(definition.function))
            analysis.forget(definition.function)
            for caller in analysis.callers.pop(id(definition.function), ()):
                analysis.forget(caller)
        for definition in shown:
            analysis.flow(definition.function)
        if not shown:
            return


def _teach(analysis: Analysis, origin: int) -> Definition | None:
    """Return the function whose result has this origin, if that is news to it."""
    call, key = analysis.slot_of.get(origin, (origin, ""))
    definition = analysis.answered.get(call)
    flow = definition.flow if definition is not None else None
    if definition is None or flow is None:
        return None
    result = join_all(flow.returned)
    news = _origins(analysis, result, key) - analysis.evident
    analysis.evident |= news
    return definition if news else None


def _origins(analysis: Analysis, result: Value, key: str) -> frozenset[int]:
    """Return the origins of a result, or of the slot of it that callers ask for."""
    if not key:
        return result.origins if result.kind not in ("list", "dict", "tuple") else frozenset()
    for name, value in result.items:
        if key == f"{name!r}":
            return value.contents.origins
    if result.kind == "unknown":
        return frozenset(analysis.slot(origin, key) for origin in result.origins)
    return frozenset()
