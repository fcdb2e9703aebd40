"""pyplot.figure() or subplots() in a function that saves the figure and leaves it open."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.facts.model import MODULE, Call, FileFacts
from leakcheck.static.facts.runs import runs_once
from leakcheck.static.module import Module
from leakcheck.static.queries import lifetime
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import bindings, walk


class UnclosedFigure(Rule):
    """Figures of pyplot that are rendered and neither closed nor handed on."""

    code = "LK601"
    summary = "a pyplot figure is saved and never closed"
    help = "call plt.close(fig) when it is saved, or make it with matplotlib.figure.Figure"
    words = ("pyplot", "pylab")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each function that makes a figure."""
        for call in module.calls:
            if module.qualified(call.func) not in shape.api("figures") or _reuses(call):
                continue
            function = module.function_of(call)
            scope = function or module.loop_of(call)
            if scope is None or not _left_open(module, scope, call):
                continue
            once = _is_made_once(module, call)
            if once and module.loop_of(call) is None:
                continue
            few = once and _is_for_each_name(module.loop_of(call))
            few = few or _is_for_a_script(module, call) or _is_shown_by_caller(module, call)
            told = "pyplot keeps this figure until it is closed"
            yield self.hit(call, told, confidence="low" if few else "high")


def _is_made_once(module: Module, figure: cst.Call) -> bool:
    """Whether a script comes here by one call: its figure is as one that it made by itself."""
    at = module.location(figure)
    calls = module.facts.facts.calls
    here = (c for c in calls if (c.at.line, c.at.column) == (at.line, at.column - 1))
    return any(runs_once(module.facts, call.function) for call in here)


def _makes(module: Module, figure: cst.Call) -> list[tuple[FileFacts, Call]]:
    """Return the project's calls of the function that a figure is made in."""
    function = module.function_of(figure)
    return list(module.facts.calls_of(function.name.value)) if function is not None else []


def _is_for_a_script(module: Module, figure: cst.Call) -> bool:
    """Whether nobody but scripts want such figures, one by one: a handful each."""
    makes = _makes(module, figure)
    return bool(makes) and all(c.function == MODULE and not c.loops for _, c in makes)


def _is_shown_by_caller(module: Module, figure: cst.Call) -> bool:
    """Whether it is left for a caller that shows it, which may block and close it."""
    return any(
        other.method == "show" and other.qualified.startswith("matplotlib.")
        for facts, call in _makes(module, figure)
        if call.function != MODULE
        for other in facts.calls_in(call.function)
    )


def _is_for_each_name(loop: cst.CSTNode | None) -> bool:
    """Whether a loop goes over what was written down or named, which makes a handful."""
    match loop:
        case cst.For(iter=cst.List() | cst.Tuple()):
            return True
        case cst.For(iter=cst.Call(func=cst.Attribute(attr=cst.Name(value=name)))):
            return name in ("items", "keys", "values")
    return False


def _reuses(call: cst.Call) -> bool:
    """`figure(1)` and `figure(num="loss")` give the same figure each time."""
    position = 0 if shape.last_name(call) == "figure" else None
    return shape.keyword_value(call, "num", position) is not None or any(
        arg.star == "**" for arg in call.args
    )


def _left_open(
    module: Module, scope: cst.FunctionDef | cst.For | cst.While, call: cst.Call
) -> bool:
    nodes = list(walk(scope.body))
    calls = [node for node in nodes if isinstance(node, cst.Call)]
    ends = [other for other in calls if _closes_or_shows(module, other)]
    if _closed_by_file(module) or (ends and not _skipped(module, scope, ends)):
        return False
    if not (ends or any(_renders(module, other) for other in calls)):
        return False
    if isinstance(module.parent(call), cst.Expr):
        return not any(shape.last_name(other) in ("gcf", "gca") for other in calls)
    figure, axes = (lifetime.bound_name(module, call, position) for position in (0, 1))
    if not figure or (axes and _given_back(nodes, axes)):
        return False
    if not isinstance(scope, cst.FunctionDef):
        return True
    harmless = ("plt.", "matplotlib.", "len", "print", *_READERS)
    return lifetime.fate(module, scope, figure, _CLOSERS, harmless) == "left open"


def _skipped(module: Module, scope: cst.CSTNode, ends: list[cst.Call]) -> bool:
    """Whether all that ends a figure stands in one branch, and another writes the picture."""
    for above in module.ancestors(ends[0]):
        if above is scope:
            break
        if isinstance(above, cst.If) and above.orelse is None and _only_shows(module, above, ends):
            shown = list(walk(above.body))
            outside = (n for n in walk(scope) if not any(n is other for other in shown))
            return any(isinstance(n, cst.Call) and _writes(module, n) for n in outside)
        if isinstance(above, cst.If) and above.orelse is not None:
            branches = [list(walk(above.body)), list(walk(above.orelse))]
            inside = [sum(any(n is end for n in branch) for end in ends) for branch in branches]
            if sorted(inside) == [0, len(ends)]:
                other = branches[inside.index(0)]
                return any(isinstance(n, cst.Call) and _writes(module, n) for n in other)
    return False


def _only_shows(module: Module, branch: cst.If, ends: list[cst.Call]) -> bool:
    """`if show: plt.show()`, where nothing closes a figure that is not shown."""
    inside = list(walk(branch.body))
    named = isinstance(branch.test, (cst.Name, cst.Attribute))
    return named and all(
        module.qualified(end.func) not in _CLOSERS and any(n is end for n in inside) for end in ends
    )


def _writes(module: Module, call: cst.Call) -> bool:
    return _renders(module, call) or shape.last_name(call) in ("imwrite", "imsave")


def _renders(module: Module, call: cst.Call) -> bool:
    if shape.last_name(call) in shape.api("figure-renders"):
        return True
    return module.qualified(call.func) == "wandb.Image"


def _given_back(nodes: list[cst.CSTNode], axes: str) -> bool:
    """The axes are returned or stored, all or some, and the figure can be reached through them."""
    names, pairs = {axes}, [pair for node in nodes for pair in bindings(node)]
    for target, value in pairs:
        if isinstance(target, cst.Name) and _are_some(value, names):
            names.add(target.value)
    stored = [value for target, value in pairs if not isinstance(target, cst.Name)]
    ends = (node.value for node in nodes if isinstance(node, (cst.Return, cst.Yield)))
    returned = [value for value in ends if isinstance(value, cst.BaseExpression)]
    return any(_are_some(value, names) for value in (*stored, *returned))


def _are_some(value: cst.BaseExpression, names: set[str]) -> bool:
    """`axes`, `(fig, axes)`, `axes.flatten()[:n]`, or one of two such."""
    match value:
        case cst.Subscript(value=whole) | cst.Attribute(value=whole, attr=cst.Name(value="flat")):
            return _are_some(whole, names)
        case cst.Call(func=cst.Attribute(value=whole, attr=cst.Name(value=name))):
            return name in shape.api("same-axes") and _are_some(whole, names)
        case cst.IfExp(body=body, orelse=orelse):
            return _are_some(body, names) or _are_some(orelse, names)
    return any(lifetime.holds(value, name) for name in names)


def _closes_or_shows(module: Module, call: cst.Call) -> bool:
    """`show()` may block and close, or not: we can't tell. `pause()` shows it, to be looked at."""
    named = module.qualified(call.func)
    return named in _CLOSERS or named.endswith((".pyplot.show", "pylab.show", ".pyplot.pause"))


def _closed_by_file(module: Module) -> bool:
    """`plt.close("all")` anywhere in the file."""
    return any(
        call.args and isinstance(call.args[0].value, cst.SimpleString)
        for call in module.calls_of(*_CLOSERS)
    )


_CLOSERS = ("matplotlib.pyplot.close", "pylab.close")
_READERS = ("wandb.Image", "numpy.array", "numpy.asarray", "numpy.ravel", "enumerate", "zip")
