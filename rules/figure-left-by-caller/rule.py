"""fig = plot_samples(...); fig.savefig(...): who is given a figure has to close it."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.model import Evidence
from leakcheck.source.words import Pattern
from leakcheck.static.facts.model import Call, Expr, FileFacts
from leakcheck.static.facts.resources import (
    ends_figures,
    figure_position,
    only_drawn,
)
from leakcheck.static.facts.runs import runs_once
from leakcheck.static.facts.targets import callee
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule

# names of functions that may draw; only to look into no others
_DRAWS = Pattern(r"<draws>")


class FigureLeftByCaller(Rule):
    """Figures that a function of the project makes and returns, and that its caller leaves open."""

    code = "LK610"
    summary = "a function hands out a pyplot figure, and its caller leaves it open"
    help = "call plt.close(fig) when it is saved or logged"
    words = ("plot", "fig", "draw", "vis", "show")
    needs_torch = True

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each call of a function that returns a figure it made."""
        linked = module.facts
        for call in linked.facts.calls:
            if call.function < 0 or not _DRAWS.search(call.method.lower()):
                continue
            if ends_figures(linked.facts, call.function):
                continue
            called = callee(linked, call)
            if called is None:
                continue
            home, index = called
            position = figure_position(home.facts, index, call)
            if position is None or not _left(linked.facts, call, position):
                continue
            if call.loops or not runs_once(linked, call.function):
                made = linked.location(home.facts, home.facts.functions[index].at)
                yield self.hit(
                    call.at,
                    f"`{call.method}` returns a figure of pyplot, which nobody closes",
                    confidence="medium",
                    evidence=(Evidence(made, "returned", call.method),) if made else (),
                )


def _left(facts: FileFacts, call: Call, position: int) -> bool:
    """Whether the figure is thrown away, or only drawn from, where it is received."""
    if call.fate in ("dropped", "chained"):
        return True
    if call.fate != "bound":
        return False
    names = call.unpacked or (call.bound,)
    function = facts.function(call.function)
    if function is not None and any(Expr("name", each) in function.returns for each in names):
        return False  # through its axes the figure can be reached
    name = names[position] if position < len(names) else ""
    if name == "_" or (position == 0 and call.bound == "_"):
        return True
    return bool(name) and "." not in name and only_drawn(facts, call, name)
