"""fig = plot_samples(...); fig.savefig(...): who is given a figure has to close it."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.model import Evidence
from leakcheck.static.facts.link import Linked
from leakcheck.static.facts.model import Call, FileFacts
from leakcheck.static.facts.resources import ends_figures, figure_position, only_drawn, runs_once
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule


class FigureLeftByCaller(Rule):
    """Figures that a function of the project makes and returns, and that its caller leaves open."""

    code = "LK610"
    summary = "a function hands out a pyplot figure, and its caller leaves it open"
    help = "call plt.close(fig) when it is saved or logged"
    proof = "static only where matplotlib is not installed"
    words = ("plot", "fig", "draw", "vis", "show")
    needs_torch = True

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each call of a function that returns a figure it made."""
        linked = module.facts
        for call in linked.facts.calls:
            if call.function < 0 or ends_figures(linked.facts, call.function):
                continue
            for facts, index in _callees(linked, call):
                position = figure_position(facts, index)
                if position is None or not _left(linked.facts, call, position):
                    continue
                if call.loops or not runs_once(linked, call):
                    made = linked.location(facts, facts.functions[index].at)
                    yield self.hit(
                        call.at,
                        f"`{call.method}` returns a figure of pyplot, which nobody closes",
                        confidence="medium",
                        evidence=(Evidence(made, "returned", call.method),) if made else (),
                    )


def _callees(linked: Linked, call: Call) -> Iterator[tuple[FileFacts, int]]:
    """Yield the function that is called: one of the project by its name, or a method of self."""
    facts, name = linked.facts, call.spelled
    if name.startswith("self.") and name.count(".") == 1:
        method = facts.method_around(call.function)
        owner = linked.class_called(method.owner) if method is not None and method.owner else None
        for each in linked.lineage(owner) if owner is not None else ():
            if call.method in each.facts.methods:
                yield each.file.facts, each.facts.methods[call.method]
                return
        return
    home = (facts, name) if "." not in name else None
    if name in facts.imports:
        home = linked.imported(name)
    for index, function in enumerate(home[0].functions if home else ()):
        if home is not None and function.name == home[1] and not function.owner:
            yield home[0], index
            return


def _left(facts: FileFacts, call: Call, position: int) -> bool:
    """Whether the figure is thrown away, or only drawn from, where it is received."""
    if call.fate in ("dropped", "chained"):
        return True
    if call.fate != "bound":
        return False
    names = call.unpacked or (call.bound,)
    name = names[position] if position < len(names) else ""
    if name == "_" or (position == 0 and call.bound == "_"):
        return True
    return bool(name) and "." not in name and only_drawn(facts, call, name)
