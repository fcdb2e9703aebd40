"""How often a function runs: once in a process, or once for each object that is set up?"""

from __future__ import annotations

from leakcheck.static.facts.link import Linked, sets_up
from leakcheck.static.facts.model import MODULE, Call, FileFacts, FunctionFacts
from leakcheck.static.facts.targets import may_mean


def runs_once(file: Linked, index: int, above: frozenset[str] = frozenset()) -> bool:
    """Tell whether a script leads to a function by one call each, and through no loop."""
    function = file.facts.functions[index]
    calls = _calls(file, function)
    if function.owner or function.around >= 0 or function.name in above:
        return False
    if len(calls) != 1:
        return False
    [(facts, call)] = calls
    return not call.loops and (
        call.function == MODULE or runs_once(file.of(facts), call.function, above | {function.name})
    )


def runs_in_set_up(file: Linked, index: int) -> bool:
    """Tell whether a method is called only where objects are made or told what to be."""
    calls = _calls(file, file.facts.functions[index])
    within = [sets_up(facts, call.function) for facts, call in calls if call.function != MODULE]
    return bool(calls) and len(within) == len(calls) and all(within)


def _calls(file: Linked, function: FunctionFacts) -> list[tuple[FileFacts, Call]]:
    """Return the project's calls of a function; none if it is handed on, to be called by others."""
    handed = (function.name, f"self.{function.name}")
    found: list[tuple[FileFacts, Call]] = []
    for facts in file.everywhere(function.name):
        given = (argument.value.text for call in facts.calls for argument in call.arguments)
        if any(text in handed for text in given):
            return []
        home = file.of(facts)
        named = facts.calls_by_name.get(function.name, ())
        found += [(facts, call) for call in named if may_mean(home, call, file, function)]
    return found
